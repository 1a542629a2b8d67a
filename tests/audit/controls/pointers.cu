// SPDX-License-Identifier: Apache-2.0
// Where a pointer comes from: structs, selects, arrays, tables, descriptors, bulk copies.
#include "common.cuh"

#define I (blockIdx.x * 128 + threadIdx.x)

struct Both {
    const float* w;
    const float* x;
    float* y;
    int n;
};
struct Many {
    const float* tables[4];
    float* y;
};

KERNEL(128) struct_good(Both p) {
    float a = p.w[I];
    WAIT();
    p.y[I] = a * p.x[I];
}
KERNEL(128) struct_bad(Both p) {
    float a = p.x[I];
    WAIT();
    p.y[I] = a * p.w[I];
}
KERNEL(128) select_static(const float* w, const float* v, const float* x, float* y, int c) {
    float a = (c ? w : v)[I];
    WAIT();
    y[I] = a * x[I];
}
KERNEL(128) select_dynamic(const float* w, const float* x, float* y, int c) {
    float a = (c ? w : x)[I];
    WAIT();
    y[I] = a;
}
KERNEL(128) array_static(Many p, const float* x) {
    float a = p.tables[blockIdx.y & 3][I];
    WAIT();
    p.y[I] = a * x[I];
}
KERNEL(128) array_dynamic(Many p) {
    float a = p.tables[blockIdx.y][I];
    WAIT();
    p.y[I] = a;
}
KERNEL(128) array_dynamic_after(Many p) {
    WAIT();
    p.y[I] = p.tables[blockIdx.y][I];
}
KERNEL(128) table_static(const float* const* experts, const float* x, float* y) {
    float a = experts[blockIdx.y][I];
    WAIT();
    y[I] = a * x[I];
}
KERNEL(128) table_dynamic(const float* const* inputs, float* y) {
    float a = inputs[blockIdx.y][I];
    WAIT();
    y[I] = a;
}
KERNEL(128) table_dynamic_after(const float* const* inputs, float* y) {
    const float* from = inputs[blockIdx.y];
    WAIT();
    y[I] = from[I];
}
KERNEL(128) table_dynamic_ldg(const float* const* inputs, float* y) {
    const float* from = inputs[blockIdx.y];
    if (threadIdx.x == 0) WAIT();
    __syncthreads();
    y[I] = ldg(from + I);
}
KERNEL(128) bulk_before(const float* w, const float* x, float* y) {
    __shared__ alignas(128) float tileof[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&bar, 512);
        bulk(tileof, x + blockIdx.x * 128, 512, &bar);
    }
    __syncthreads();
    WAIT();
    await(&bar, 0);
    y[I] = tileof[threadIdx.x] * w[I];
}
KERNEL(128) bulk_after(const float* w, const float* x, float* y) {
    __shared__ alignas(128) float tileof[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    float a = w[I];
    if (threadIdx.x == 0) {
        WAIT();
        expect(&bar, 512);
        bulk(tileof, x + blockIdx.x * 128, 512, &bar);
    }
    await(&bar, 0);
    y[I] = tileof[threadIdx.x] * a;
}
KERNEL(128) bulk_static(const float* w, const float* x, float* y) {
    __shared__ alignas(128) float tileof[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&bar, 512);
        bulk(tileof, w + blockIdx.x * 128, 512, &bar);
    }
    __syncthreads();
    WAIT();
    await(&bar, 0);
    y[I] = tileof[threadIdx.x] * x[I];
}
KERNEL(128) tensor_good(const __grid_constant__ Descriptor w, const __grid_constant__ Descriptor x,
                        float* y) {
    __shared__ alignas(128) float a[512], b[512];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&bar, 4096);
        tile(a, &w, 0, blockIdx.x, &bar);
        WAIT();
        tile(b, &x, 0, blockIdx.x, &bar);
    }
    __syncthreads();
    await(&bar, 0);
    y[I] = a[threadIdx.x] * b[threadIdx.x];
}
KERNEL(128) tensor_bad(const __grid_constant__ Descriptor w, const __grid_constant__ Descriptor x,
                       float* y) {
    __shared__ alignas(128) float a[512], b[512];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&bar, 4096);
        tile(a, &x, 0, blockIdx.x, &bar);
        WAIT();
        tile(b, &w, 0, blockIdx.x, &bar);
    }
    __syncthreads();
    await(&bar, 0);
    y[I] = a[threadIdx.x] * b[threadIdx.x];
}
__device__ __forceinline__ void bulk_out(void* to, const void* from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
                 ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
KERNEL(128) bulk_store_fenced(const float* x, float* y) {
    __shared__ alignas(128) float part[128];
    WAIT();
    part[threadIdx.x] = x[I] * 2.f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) bulk_out(y + blockIdx.x * 128, part, 512);
}
KERNEL(128) bulk_store_unfenced(const float* x, float* y) {
    __shared__ alignas(128) float part[128];
    WAIT();
    part[threadIdx.x] = x[I] * 2.f;
    __syncthreads();
    if (threadIdx.x == 0) bulk_out(y + blockIdx.x * 128, part, 512);
}
KERNEL(128) bulk_store_unmet(const float* x, float* y) {
    __shared__ alignas(128) float part[128];
    WAIT();
    part[threadIdx.x] = x[I] * 2.f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) bulk_out(y + blockIdx.x * 128, part, 512);
}
KERNEL(128) bulk_store_before_wait(const float* w, float* y) {
    __shared__ alignas(128) float part[128];
    part[threadIdx.x] = w[I] * 2.f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) bulk_out(y + blockIdx.x * 128, part, 512);
    WAIT();
}
__device__ __forceinline__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copied() {
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
}
KERNEL(128) cp_async_good(const float4* w, const float4* x, float4* y) {
    __shared__ alignas(16) float4 a[128], b[128];
    copy16(&a[threadIdx.x], w + I);
    WAIT();
    copy16(&b[threadIdx.x], x + I);
    copied();
    float4 u = a[threadIdx.x], v = b[threadIdx.x];
    y[I] = make_float4(u.x * v.x, u.y * v.y, u.z * v.z, u.w * v.w);
}
KERNEL(128) cp_async_bad(const float4* w, const float4* x, float4* y) {
    __shared__ alignas(16) float4 a[128], b[128];
    copy16(&a[threadIdx.x], x + I);
    WAIT();
    copy16(&b[threadIdx.x], w + I);
    copied();
    float4 u = a[threadIdx.x], v = b[threadIdx.x];
    y[I] = make_float4(u.x * v.x, u.y * v.y, u.z * v.z, u.w * v.w);
}
KERNEL(160) pipeline(const float* x, float* y, int n) {
    __shared__ alignas(128) float stage[2][128];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            init(&full[s], 1);
            init(&empty[s], 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            WAIT();
            for (int k = 0; k < n; ++k) {
                await(&empty[k & 1], ((k >> 1) & 1) ^ 1);
                expect(&full[k & 1], 512);
                bulk(stage[k & 1], x + k * 128, 512, &full[k & 1]);
            }
        }
    } else {
        float sum = 0.f;
        for (int k = 0; k < n; ++k) {
            await(&full[k & 1], (k >> 1) & 1);
            sum += stage[k & 1][threadIdx.x];
            arrive(&empty[k & 1]);
        }
        WAIT();
        y[I] = sum;
    }
}
KERNEL(160) pipeline_producer_never_waits(const float* x, float* y, int n) {
    __shared__ alignas(128) float stage[2][128];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            init(&full[s], 1);
            init(&empty[s], 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            for (int k = 0; k < n; ++k) {
                await(&empty[k & 1], ((k >> 1) & 1) ^ 1);
                expect(&full[k & 1], 512);
                bulk(stage[k & 1], x + k * 128, 512, &full[k & 1]);
            }
        }
    } else {
        float sum = 0.f;
        WAIT();
        for (int k = 0; k < n; ++k) {
            await(&full[k & 1], (k >> 1) & 1);
            sum += stage[k & 1][threadIdx.x];
            arrive(&empty[k & 1]);
        }
        y[I] = sum;
    }
}
#define CLUSTER_SYNC()                                                             \
    asm volatile("barrier.cluster.arrive.release.aligned;\n"                       \
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory")
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    cluster_good(const float* x, float* y) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (rank == 0) WAIT();
    CLUSTER_SYNC();
    y[I] = x[I];
    CLUSTER_SYNC();
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    cluster_all_wait(const float* x, float* y) {
    WAIT();
    CLUSTER_SYNC();
    y[I] = x[I];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    cluster_block_barrier_only(const float* x, float* y) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (rank == 0) WAIT();
    __syncthreads();
    y[I] = x[I];
}
