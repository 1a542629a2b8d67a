// SPDX-License-Identifier: Apache-2.0
// A kernel of about 5,000 instructions for the bench of the audit: one warp copies for three others,
// four stages deep, by loops that are unrolled whole; a flag tells the next GPU at its end.
#include "common.cuh"

constexpr int STAGES = 4, ROWS = 104, DEPTH = 8;

KERNEL(128) pipeline(const float4* __restrict__ w, const float4* x, const int* lengths, float4* y,
                     uint32_t* flag, uint32_t epoch, int n) {
    __shared__ alignas(128) float4 near[STAGES][96];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(&full[s], 1);
            init(&empty[s], 96);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 96) {
        if (threadIdx.x == 96) {
            WAIT();
            for (int k = 0; k < n; ++k) {
                await(&empty[k % STAGES], ((k / STAGES) & 1) ^ 1);
                expect(&full[k % STAGES], sizeof(near[0]));
                bulk(near[k % STAGES], x + k * 96, sizeof(near[0]), &full[k % STAGES]);
            }
        }
    } else {
        float4 sum[DEPTH] = {};
        float4 rows[DEPTH];
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) rows[d] = w[d * 96 + threadIdx.x];
        WAIT();
        const int length = lengths[blockIdx.x];
        for (int k = 0; k < n; ++k) {
            await(&full[k % STAGES], (k / STAGES) & 1);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float4 part = near[k % STAGES][(threadIdx.x + r) % 96];
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                    if (r % 6 == d % 6) rows[d] = w[(k * ROWS + r) * 96 + threadIdx.x];
                    sum[d].x = fmaf(part.x, rows[d].x, sum[d].x);
                    sum[d].y = fmaf(part.y, rows[d].y, sum[d].y * 0.5f);
                    sum[d].z = fmaf(part.z, rows[d].z, fmaxf(sum[d].z, part.w));
                    sum[d].w = fmaf(part.w, rows[d].w, sum[d].x);
                }
            }
            arrive(&empty[k % STAGES]);
            NAMED(1, 96);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            if (d < length) y[(blockIdx.x * DEPTH + d) * 96 + threadIdx.x] = sum[d];
        }
        NAMED(1, 96);
        if (threadIdx.x == 0) release_sys(flag + blockIdx.x, epoch);
    }
}
