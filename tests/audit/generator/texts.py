# SPDX-License-Identifier: Apache-2.0
"""CUDA text that random kernels are put together from."""

HELPERS = """
struct Pointers {
    const void *w, *x, *m;
    void* y;
    int n;
};
template <class T> __device__ __forceinline__ float all(T v);
template <> __device__ __forceinline__ float all(float v) { return v; }
template <> __device__ __forceinline__ float all(float2 v) { return v.x + v.y; }
template <> __device__ __forceinline__ float all(float4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ float nc(const float* p) { return ldg(p); }
__device__ __forceinline__ float2 nc(const float2* p) {
    float2 v;
    asm("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p));
    return v;
}
__device__ __forceinline__ float4 nc(const float4* p) {
    float4 v;
    asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}
"""
CP_ASYNC = """{dent}asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
{dent}             ::"r"(at(&near[threadIdx.x])), "l"(x + {at}) : "memory");
{dent}asm volatile("cp.async.commit_group;\\ncp.async.wait_group 0;" ::: "memory");
"""
PIPELINE = """
    __shared__ alignas(128) float4 near[2][96];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {{
        for (int s = 0; s < 2; ++s) {{
            init(&full[s], 1);
            init(&empty[s], 96);
        }}
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }}
    __syncthreads();
    if (threadIdx.x >= 96) {{
        if (threadIdx.x == 96) {{
            {first}
            for (int k = 0; k < n; ++k) {{
                await(&empty[k & 1], ((k >> 1) & 1) ^ 1);
                expect(&full[k & 1], 1536);
                bulk(near[k & 1], x + k * 96, 1536, &full[k & 1]);
            }}
        }}
    }} else {{
        float sum = all(w[{index}]);
        for (int k = 0; k < n; ++k) {{
            await(&full[k & 1], (k >> 1) & 1);
            sum += all(near[k & 1][threadIdx.x]);
            arrive(&empty[k & 1]);
        }}
        {others}
        reinterpret_cast<float*>(y + {index})[0] = sum;
    }}"""
BULK_STORE = """    __shared__ alignas(128) float far[128];
    far[threadIdx.x] = sum;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    {meet}
    if (threadIdx.x == 0) {{
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                     ::"l"(y + blockIdx.x * 128), "r"(at(far)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group{read} 0;" ::: "memory");
    }}
"""
BEFORE = {"middle": "TRIGGER();", "part": "if (threadIdx.x < 32) TRIGGER();"}
AFTER = {"end": "TRIGGER();", "met": "TRIGGER();", "one": "if (threadIdx.x == 0) TRIGGER();"}
"""Statements that trigger before and after the result is stored."""
PROXY = 'asm volatile("fence.proxy.async.global;" ::: "memory");'
