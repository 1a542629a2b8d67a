// SPDX-License-Identifier: Apache-2.0
// Words that the controls share. What each kernel must be judged as is in the YAML beside its file.
#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define TRIGGER() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define NAMED(id, threads) asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(threads) : "memory")

__device__ __forceinline__ uint32_t at(const void* smem) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(smem));
}
__device__ __forceinline__ void init(uint64_t* bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(bar)) : "memory");
}
__device__ __forceinline__ void expect(uint64_t* bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void await(uint64_t* bar, uint32_t parity) {
    asm volatile(
        "{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra L;\n}"
        ::"r"(at(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk(void* to, const void* from, uint32_t bytes, uint64_t* bar) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(bar)) : "memory");
}
struct alignas(64) Descriptor {
    unsigned char bytes[128];
};
__device__ __forceinline__ void tile(void* to, const Descriptor* of, int x, int y, uint64_t* bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];"
        ::"r"(at(to)), "l"(of), "r"(at(bar)), "r"(x), "r"(y) : "memory");
}
// What `__ldg` compiles to, without the intrinsic, whose name differs between header versions.
__device__ __forceinline__ float ldg(const float* from) {
    float value;
    asm("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
    return value;
}
__device__ __forceinline__ bool elected() {
    uint32_t yes;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(yes));
    return yes != 0;
}
__device__ __forceinline__ uint32_t acquire_sys(const uint32_t* flag) {
    uint32_t seen;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ __forceinline__ uint32_t acquire_gpu(const uint32_t* flag) {
    uint32_t seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ __forceinline__ uint32_t relaxed_sys(const uint32_t* flag) {
    uint32_t seen;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ __forceinline__ void release_sys(uint32_t* flag, uint32_t value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ void release_gpu(uint32_t* flag, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ void relaxed_store(uint32_t* flag, uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
