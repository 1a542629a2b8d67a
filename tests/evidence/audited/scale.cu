// SPDX-License-Identifier: Apache-2.0
// The one kernel of a toy unit: it waits before it reads rows. With -DEARLY the read comes first.
//
//     nvcc -arch=sm_90a -cubin [-DEARLY] -o scale.sm_90a.cubin scale.cu    (13.0.88)

extern "C" __global__ void __launch_bounds__(128)
    scale(const float* weights, const float* rows, float* result) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float weight = weights[i];
#ifdef EARLY
    float row = rows[i];
#endif
    asm volatile("griddepcontrol.wait;" ::: "memory");
#ifndef EARLY
    float row = rows[i];
#endif
    result[i] = weight * row;
}
