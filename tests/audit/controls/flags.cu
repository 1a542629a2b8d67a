// SPDX-License-Identifier: Apache-2.0
// Mailboxes that another GPU or kernel fills, and the flags that say so. None of these waits: the
// kernels that fill them are not their predecessors, and the launch is not a dependent one.
#include "common.cuh"

#define I (blockIdx.x * 128 + threadIdx.x)

KERNEL(128) spin_acquire(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    while (acquire_sys(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) spin_acquire_gpu(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    while (acquire_gpu(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) spin_gpu_for_sys(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    while (acquire_gpu(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) spin_relaxed(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    while (relaxed_sys(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) spin_relaxed_then_fence(const float* box, const uint32_t* flag, float* y,
                                    uint32_t epoch) {
    while (relaxed_sys(flag) != epoch) {}
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    y[I] = box[I];
}
KERNEL(128) spin_pure(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    uint32_t seen = 0;
    for (int tries = 0; tries < 1000 && seen != epoch; ++tries)
        asm("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag));
    y[I] = box[I];
}
KERNEL(128) s9_volatile(const float* box, const volatile uint32_t* flag, float* y,
                        uint32_t epoch) {
    while (*flag != epoch) {}
    y[I] = box[I];
}
KERNEL(128) s6_all_spin_restrict(const float* __restrict__ box, const uint32_t* flag,
                                 float* __restrict__ y, uint32_t epoch) {
    while (acquire_sys(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) r5_thread_spins_restrict(const float* __restrict__ box, const uint32_t* flag,
                                     float* __restrict__ y, uint32_t epoch) {
    int i = threadIdx.x;
    if (i == 0)
        while (acquire_sys(flag) != epoch) {}
    __syncthreads();
    y[i] = box[i];
}
KERNEL(128) r6_thread_spins_plain(const float* box, const uint32_t* flag, float* y,
                                  uint32_t epoch) {
    if (threadIdx.x == 0)
        while (acquire_sys(flag) != epoch) {}
    __syncthreads();
    y[I] = box[I];
}
KERNEL(128) thread_spins_alone(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    if (threadIdx.x == 0)
        while (acquire_sys(flag) != epoch) {}
    y[I] = box[I];
}
KERNEL(128) box_before_spin(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    float a = box[I];
    while (acquire_sys(flag) != epoch) {}
    y[I] = a;
}
KERNEL(128) wrong_flag(const float* box, const uint32_t* flag, const uint32_t* other, float* y,
                       uint32_t epoch) {
    while (acquire_sys(other) != epoch) {}
    y[I] = box[I];
    while (acquire_sys(flag) != epoch) {}
}
KERNEL(128) s7_two_rounds_restrict(const float* __restrict__ box, const uint32_t* flag,
                                   float* __restrict__ y, uint32_t epoch) {
    while (acquire_sys(flag) != epoch) {}
    y[I] = box[I];
    while (acquire_sys(flag) != epoch + 1) {}
    y[I + 4096] = box[I];
}
KERNEL(128) s11_two_rounds_plain(const float* box, const uint32_t* flag, float* y,
                                 uint32_t epoch) {
    while (acquire_sys(flag) != epoch) {}
    y[I] = box[I];
    while (acquire_sys(flag) != epoch + 1) {}
    y[I + 4096] = box[I];
}
KERNEL(128) s12_wait_rounds_plain(const float* x, float* y) {
    WAIT();
    float a = x[I];
    WAIT();
    y[I] = a;
    y[I + 4096] = x[I];
}
KERNEL(128) send_release(const float* w, float* y, uint32_t* flag, uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) release_sys(flag, epoch);
}
KERNEL(128) send_release_gpu(const float* w, float* y, uint32_t* flag, uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) release_gpu(flag, epoch);
}
KERNEL(128) send_gpu_for_sys(const float* w, float* y, uint32_t* flag, uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) release_gpu(flag, epoch);
}
KERNEL(128) send_relaxed(const float* w, float* y, uint32_t* flag, uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) relaxed_store(flag, epoch);
}
KERNEL(128) send_without_barrier(const float* w, float* y, uint32_t* flag, uint32_t epoch) {
    y[I] = w[I];
    if (threadIdx.x == 0) release_sys(flag, epoch);
}
KERNEL(128) send_fence_volatile(const float* w, float* y, volatile uint32_t* flag,
                                uint32_t epoch) {
    y[I] = w[I];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *flag = epoch;
}
KERNEL(128) send_fence_by_thread(const float* w, float* y, volatile uint32_t* flag,
                                 uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *flag = epoch;
    }
}
KERNEL(128) send_threadfence_gpu_for_sys(const float* w, float* y, volatile uint32_t* flag,
                                         uint32_t epoch) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *flag = epoch;
    }
}
KERNEL(128) send_red_release(const float* w, float* y, uint32_t* flag) {
    y[I] = w[I];
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
}
KERNEL(128) sentinel_strong(const float* box, float* y) {
    float seen;
    do {
        asm volatile("ld.relaxed.sys.global.f32 %0, [%1];" : "=f"(seen) : "l"(box + I) : "memory");
    } while (seen != seen);
    y[I] = seen;
}
KERNEL(128) sentinel_weak(const float* box, float* y) {
    float seen;
    do {
        asm volatile("ld.relaxed.sys.global.f32 %0, [%1];" : "=f"(seen) : "l"(box + I) : "memory");
    } while (seen != seen);
    y[I] = box[I];
}
KERNEL(128) sentinel_constant(const float* box, float* y) {
    float seen = ldg(box + I);
    y[I] = seen;
}
KERNEL(128) bulk_box_fenced(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    __shared__ alignas(128) float part[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        while (acquire_sys(flag) != epoch) {}
        asm volatile("fence.proxy.async.global;" ::: "memory");
        expect(&bar, 512);
        bulk(part, box + blockIdx.x * 128, 512, &bar);
    }
    __syncthreads();
    await(&bar, 0);
    y[I] = part[threadIdx.x];
}
KERNEL(128) bulk_box_unfenced(const float* box, const uint32_t* flag, float* y, uint32_t epoch) {
    __shared__ alignas(128) float part[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        while (acquire_sys(flag) != epoch) {}
        expect(&bar, 512);
        bulk(part, box + blockIdx.x * 128, 512, &bar);
    }
    __syncthreads();
    await(&bar, 0);
    y[I] = part[threadIdx.x];
}
KERNEL(128) bulk_box_before_spin(const float* box, const uint32_t* flag, float* y,
                                 uint32_t epoch) {
    __shared__ alignas(128) float part[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&bar, 512);
        bulk(part, box + blockIdx.x * 128, 512, &bar);
        while (acquire_sys(flag) != epoch) {}
    }
    __syncthreads();
    await(&bar, 0);
    y[I] = part[threadIdx.x];
}
