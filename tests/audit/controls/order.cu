// SPDX-License-Identifier: Apache-2.0
// The dependency wait, and loads that the compiler or the author put before it.
#include "common.cuh"

#define I (blockIdx.x * 128 + threadIdx.x)

KERNEL(128) good(const float* w, const float* x, float* y) {
    float a = w[I];
    WAIT();
    y[I] = a * x[I];
}
KERNEL(128) bad_act(const float* w, const float* x, float* y) {
    float a = x[I];
    WAIT();
    y[I] = a * w[I];
}
KERNEL(128) v1_all_wait_restrict(const float* __restrict__ x, float* __restrict__ y) {
    WAIT();
    y[I] = x[I] * 2.f;
}
KERNEL(128) v1_all_wait_plain(const float* x, float* y) {
    WAIT();
    y[I] = x[I] * 2.f;
}
KERNEL(128) static_restrict(const float* __restrict__ w, const float* x, float* y) {
    float a = w[I];
    WAIT();
    y[I] = a + w[I + 1] * x[I];
}
KERNEL(128) v4_wait_in_loop_restrict(const float* __restrict__ x, float* __restrict__ y, int n) {
    for (int k = 0; k < n; ++k) {
        WAIT();
        y[k * 4096 + I] = x[I] * k;
    }
    WAIT();
}
KERNEL(128) wait_in_loop_plain(const float* x, float* y, int n) {
    for (int k = 0; k < n; ++k) {
        WAIT();
        y[k * 4096 + I] = x[I] * k;
    }
    WAIT();
}
KERNEL(128) v6_reread_clobber(const float* __restrict__ x, float* __restrict__ y) {
    int i = threadIdx.x;
    if (x[i] > 1e30f) __nanosleep(10);
    WAIT();
    y[i] = x[i];
}
KERNEL(128) v7_reread_api(const float* __restrict__ x, float* __restrict__ y) {
    int i = threadIdx.x;
    if (x[i] > 1e30f) __nanosleep(10);
    cudaGridDependencySynchronize();
    y[i] = x[i];
}
KERNEL(128) v8_reread_ldg(const float* x, float* y) {
    int i = threadIdx.x;
    if (ldg(x + i) > 1e30f) __nanosleep(10);
    WAIT();
    y[i] = ldg(x + i);
}
KERNEL(128) s2_warp_waits_restrict(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * n + threadIdx.x;
    if (threadIdx.x < 32) WAIT();
    __syncthreads();
    y[i] = x[i] * 2.f;
}
KERNEL(128) s2_warp_waits_plain(const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    __syncthreads();
    y[I] = x[I] * 2.f;
}
KERNEL(128) s4_first_restrict(const float* __restrict__ w, const float* __restrict__ x,
                              float* __restrict__ y, int n) {
    float sum = 0.f;
    for (int k = 0; k < n; ++k) {
        float a = w[k * 128 + threadIdx.x];
        if (k == 0) WAIT();
        sum += a * x[k * 128 + threadIdx.x];
    }
    WAIT();
    y[I] = sum;
}
KERNEL(128) s4_first_plain(const float* w, const float* x, float* y, int n) {
    float sum = 0.f;
    for (int k = 0; k < n; ++k) {
        float a = w[k * 128 + threadIdx.x];
        if (k == 0) WAIT();
        sum += a * x[k * 128 + threadIdx.x];
    }
    WAIT();
    y[I] = sum;
}
KERNEL(128) nested_first(const float* w, const float* x, float* y, int n, int m) {
    float sum = 0.f;
    bool done = false;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < m; ++k) {
            sum += w[(i * m + k) * 128 + threadIdx.x];
            if (!done) {
                if (threadIdx.x < 32) WAIT();
                __syncthreads();
                done = true;
            }
            sum *= x[(k * n + i) * 128 + threadIdx.x];
        }
    }
    WAIT();
    y[I] = sum;
}
KERNEL(128) nested_last(const float* w, const float* x, float* y, int n, int m) {
    float sum = 0.f;
    bool done = false;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < m; ++k) {
            sum += w[(i * m + k) * 128 + threadIdx.x];
            sum *= x[(k * n + i) * 128 + threadIdx.x];
            if (!done) {
                if (threadIdx.x < 32) WAIT();
                __syncthreads();
                done = true;
            }
        }
    }
    WAIT();
    y[I] = sum;
}
KERNEL(128) second_iteration_waits(const float* w, const float* x, float* y, int n) {
    float sum = 0.f;
    for (int k = 0; k < n; ++k) {
        float a = w[k * 128 + threadIdx.x];
        if (k == 1) WAIT();
        sum += a * x[k * 128 + threadIdx.x];
    }
    WAIT();
    y[I] = sum;
}
KERNEL(128) s5_invariant(const float* __restrict__ w, const float* __restrict__ x,
                         float* __restrict__ y, int n) {
    for (int k = 0; k < n; ++k) {
        WAIT();
        y[k * 4096 + I] = x[blockIdx.x] * w[k * 128 + threadIdx.x];
    }
    WAIT();
}
KERNEL(128) r1_warp_named_16(const float4* __restrict__ x, float4* __restrict__ y) {
    int i = threadIdx.x;
    if (i < 32) WAIT();
    NAMED(1, 128);
    float4 a = x[i], b = x[i + 128];
    y[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
KERNEL(128) warp_named_16_plain(const float4* x, float4* y) {
    if (threadIdx.x < 32) WAIT();
    NAMED(1, 128);
    float4 a = x[I], b = x[I + 4096];
    y[I] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
KERNEL(128) r2_thread_ldg(const float* x, float* y) {
    int i = threadIdx.x;
    if (i == 0) WAIT();
    __syncthreads();
    y[i] = ldg(x + i) * 2.f;
}
KERNEL(128) r2_thread_plain(const float* x, float* y) {
    if (threadIdx.x == 0) WAIT();
    __syncthreads();
    y[I] = x[I] * 2.f;
}
KERNEL(128) r3_lengths(const int* __restrict__ lengths, const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    __syncthreads();
    int n = lengths[blockIdx.x];
    float sum = 0.f;
    for (int k = threadIdx.x; k < n; k += 128) sum += x[k];
    y[I] = sum;
}
KERNEL(128) lengths_plain(const int* lengths, const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    __syncthreads();
    int n = lengths[blockIdx.x];
    float sum = 0.f;
    for (int k = threadIdx.x; k < n; k += 128) sum += x[k];
    y[I] = sum;
}
KERNEL(128) slot_before_wait(const int* slots, const float* pool, const float* x, float* y) {
    float a = pool[slots[blockIdx.x] * 128 + threadIdx.x];
    WAIT();
    y[I] = a * x[I];
}
KERNEL(128) slot_after_wait(const int* slots, const float* pool, const float* x, float* y) {
    WAIT();
    y[I] = pool[slots[blockIdx.x] * 128 + threadIdx.x] * x[I];
}
KERNEL(128) r4_mbarrier_restrict(const float* __restrict__ x, float* __restrict__ y) {
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        WAIT();
        arrive(&bar);
    }
    await(&bar, 0);
    y[I] = x[I] * 2.f;
}
KERNEL(128) mbarrier_plain(const float* x, float* y) {
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        WAIT();
        arrive(&bar);
    }
    await(&bar, 0);
    y[I] = x[I] * 2.f;
}
KERNEL(128) other_mbarrier(const float* x, float* y) {
    __shared__ uint64_t bar[2];
    if (threadIdx.x == 0) {
        init(&bar[0], 1);
        init(&bar[1], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive(&bar[1]);
        WAIT();
        arrive(&bar[0]);
    }
    await(&bar[1], 0);
    y[I] = x[I] * 2.f;
}
KERNEL(128) no_wait(const float* w, const float* x, float* y) { y[I] = w[I] * x[I]; }
KERNEL(128) no_wait_static(const float* w, float* y) { y[I] = w[I] * 2.f; }
KERNEL(128) not_pdl(const float* __restrict__ w, const float* __restrict__ x,
                    float* __restrict__ y) {
    y[I] = w[I] * x[I];
}
KERNEL(128) no_side_effect(const float* w, const float* x, float* y) {
    float a = w[I];
    uint32_t unused;
    asm("griddepcontrol.wait;\n mov.u32 %0, 0;" : "=r"(unused));
    (void)unused;
    y[I] = a * x[I];
}
KERNEL(128) no_clobber_plain(const float* w, const float* x, float* y) {
    float a = w[I];
    asm volatile("griddepcontrol.wait;");
    y[I] = a * x[I];
}
KERNEL(128) store_first(const float* x, float* y, float* zero) {
    zero[I] = 0.f;
    WAIT();
    y[I] = x[I];
}
KERNEL(128) atomic_first(const float* x, float* y, int* count) {
    atomicAdd(count, 1);
    WAIT();
    y[I] = x[I];
}
KERNEL(128) atomic_after(const float* x, float* y, int* count) {
    WAIT();
    if (atomicAdd(count, 1) >= 0) y[I] = x[I];
}
KERNEL(128) block_waits(const float* x, float* y) {
    if (blockIdx.x == 0) WAIT();
    __syncthreads();
    y[I] = x[I];
}
KERNEL(128) thread_waits_alone(const float* x, float* y) {
    if (threadIdx.x == 0) WAIT();
    y[I] = x[I];
}
KERNEL(128) maybe_waits(const float* x, float* y, int n) {
    if (n > 0) WAIT();
    y[I] = x[I];
}
KERNEL(128) barrier_before_wait(const float* x, float* y) {
    __syncthreads();
    if (threadIdx.x == 0) WAIT();
    y[I] = x[I];
}
KERNEL(128) waiter_takes_no_part(const float* x, float* y) {
    if (threadIdx.x < 32) {
        WAIT();
        y[I] = x[I];
    } else {
        NAMED(1, 96);
        y[I] = x[I] * 2.f;
    }
}
KERNEL(128) wrong_barrier(const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    if (threadIdx.x < 64) {
        NAMED(1, 64);
    } else {
        NAMED(2, 64);
    }
    y[I] = x[I];
}
KERNEL(128) roles_right_barrier(const float* w, const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    if (threadIdx.x < 64) {
        NAMED(1, 64);
        y[I] = x[I];
    } else {
        NAMED(2, 64);
        asm volatile("" ::"f"(w[I]) : "memory");
    }
}
KERNEL(128) early_exit_first(const float* x, float* y, int n) {
    if (I >= n) return;
    WAIT();
    y[I] = x[I];
}
KERNEL(128) early_exit_after(const float* x, float* y, int n) {
    WAIT();
    if (I >= n) return;
    y[I] = x[I];
}
KERNEL(128) two_waits(const float* w, const float* x, float* y) {
    WAIT();
    float a = x[I];
    WAIT();
    y[I] = a + x[I] * w[I];
}
KERNEL(128) read_between(const float* x, float* y) {
    if (threadIdx.x < 32) WAIT();
    float a = x[I];
    WAIT();
    y[I] = a + x[I + 128];
}
extern "C" __device__ __noinline__ void wait_here(volatile int* spare) {
    WAIT();
    *spare = 1;
}
KERNEL(128) wait_in_function(const float* w, const float* x, float* y, int* spare) {
    float a = w[I];
    wait_here(spare);
    y[I] = a * x[I];
}
KERNEL(128) wait_in_function_maybe(const float* w, const float* x, float* y, int* spare, int n) {
    float a = w[I];
    if (n > 5) wait_here(spare);
    y[I] = a * x[I];
}
KERNEL(128) elected_wait_alone(const float* x, float* y) {
    if (threadIdx.x < 32 && elected()) WAIT();
    __syncwarp();
    y[I] = x[I];
}
KERNEL(128) elected_wait_barrier(const float* x, float* y) {
    if (threadIdx.x < 32 && elected()) WAIT();
    __syncthreads();
    y[I] = x[I];
}
KERNEL(128) trigger_then_store(const float* x, float* y) {
    WAIT();
    float a = x[I];
    TRIGGER();
    y[I] = a;
}
KERNEL(128) trigger_then_read(const float* x, float* y, int n) {
    WAIT();
    y[I] = 1.f;
    TRIGGER();
    if (x[I] > 3.f) __trap();
}
KERNEL(128) trigger_last(const float* w, const float* x, float* y) {
    float a = w[I];
    WAIT();
    y[I] = a * x[I];
    TRIGGER();
}
KERNEL(128) trigger_first_by_leave(const float* w, const float* x, float* y) {
    TRIGGER();
    float a = w[I];
    WAIT();
    y[I] = a * x[I];
}
KERNEL(128) trigger_after_barrier(const float* x, float* y) {
    WAIT();
    y[I] = x[I];
    __syncthreads();
    if (threadIdx.x == 0) TRIGGER();
}
KERNEL(128) thread_triggers_then_stores(const float* x, float* y) {
    WAIT();
    float a = x[I];
    __syncthreads();
    if (threadIdx.x == 0) TRIGGER();
    __syncthreads();
    y[I] = a;
}
KERNEL(256) widths(const unsigned char* a, const uint16_t* b, const uint2* c, const uint4* d,
                   uint4* y) {
    WAIT();
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    uint4 v = d[i];
    uint2 u = c[i];
    y[i] = make_uint4(v.x + u.x, v.y + u.y, v.z + a[i], v.w + b[i]);
}
