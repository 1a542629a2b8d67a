// SPDX-License-Identifier: Apache-2.0
// Flags, what they announce, and which of several a thread goes by: kernels that must be violated,
// and honest twins of them. What each must be judged as is in `announced.yaml`.
#include "controls/common.cuh"


#define SENDER const float* w, float* out, int* flag, int count
#define READER const float* rows, const int* flag, float* out, int count

__device__ inline int acquire(const int* flag) {
    int value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ inline void release(int* flag, int value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// Three warps store, the fourth sets the flag, and nobody meets.
KERNEL(128) sets_apart(SENDER) {
    int t = threadIdx.x;
    if (t >= 32)
        out[t] = w[t];
    else if (t == 0)
        release(flag, count);
}
KERNEL(128) arrives_and_sets(SENDER) {
    int t = threadIdx.x;
    if (t >= 32) {
        out[t] = w[t];
        asm volatile("barrier.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 128;" ::: "memory");
        if (t == 0) release(flag, count);
    }
}

// One of the warps that store does not come to the barrier.
KERNEL(128) one_warp_left_out(SENDER) {
    int t = threadIdx.x;
    if (t >= 96) {
        out[t] = w[t];
    } else if (t >= 32) {
        out[t] = w[t];
        asm volatile("barrier.arrive 1, 96;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 96;" ::: "memory");
        if (t == 0) release(flag, count);
    }
}

// The flag comes before what it announces.
KERNEL(128) sets_first(SENDER) {
    if (threadIdx.x == 0) release(flag, count);
    out[threadIdx.x] = w[threadIdx.x];
}

// More is stored by others once the flag was set.
KERNEL(128) stores_more(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 64) release(flag, count);
    if (t < 64) out[t + 128] = w[t];
}
KERNEL(128) sets_each_round(SENDER) {
    int t = threadIdx.x;
    for (int i = 0; i < count; ++i) {
        out[t + i * 128] = w[t];
        __syncthreads();
        if (t == 0) release(flag, i);
    }
}

// Whoever sets the flag may not come past the stores of the others.
KERNEL(128) sets_where_it_stored(SENDER) {
    int t = threadIdx.x;
    if (w[t] > 3) {
        out[t] = w[t];
        if (t == 0) release(flag, count);
    }
}

// Each warp's first thread sets the one flag for its warp alone.
KERNEL(128) sets_for_its_warp(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncwarp();
    if (t % 32 == 0) release(flag, count);
}
// The same with a flag for each warp.
KERNEL(128) sets_one_each(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncwarp();
    if (t % 32 == 0) release(flag + t / 32, count);
}

// Each warp counts at one flag.
KERNEL(128) counts_by_warps(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncwarp();
    if (t % 32 == 0)
        asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
}

// The last block sets the flag.
KERNEL(128) last_block_sets(const float* w, float* out, int* flag, int* counter, int count) {
    int t = threadIdx.x;
    out[blockIdx.x * 128 + t] = w[t];
    __syncthreads();
    if (t == 0) {
        int before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(before) : "l"(counter) : "memory");
        if (before == gridDim.x - 1)
            asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
    }
}
// A flag if the launch wants one.
KERNEL(128) sets_if_wanted(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0 && count > 0) release(flag, count);
}

// A flag whose pointer comes from memory, set by a plain store.
KERNEL(128) sets_a_pointer_from_memory(const int* const* table, const float* w, float* out, int* flag) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0) *const_cast<int*>(table[1]) = 1;
}
KERNEL(128) sets_from_a_table(int* const* table, const float* w, float* out, int* flag) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t < 8) release(table[t], 1);
}
// A flag picked at run time, set without a fence.
KERNEL(128) sets_what_it_picked(SENDER) {
    __shared__ int* chosen;
    int t = threadIdx.x;
    if (t == 0) chosen = flag;
    out[t] = w[t];
    __syncthreads();
    if (t == 0)
        asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(chosen), "r"(count) : "memory");
}

// Each thread has seen its own flag, and reads what all of them announce.
KERNEL(128) reads_all_after_its_own(READER) {
    int t = threadIdx.x;
    while (acquire(flag + t) != count) {}
    float sum = 0;
    for (int i = 0; i < 128; ++i) sum += rows[i];
    out[t] = sum;
}
KERNEL(128) reads_its_own_part(READER) {
    int t = threadIdx.x;
    while (acquire(flag + t) != count) {}
    out[t] = rows[t];
}
// Eight threads see a flag each, and a barrier tells all.
KERNEL(128) eight_acquire(READER) {
    int t = threadIdx.x;
    if (t < 8)
        while (acquire(flag + t) != count) {}
    __syncthreads();
    out[t] = rows[t] + rows[t ^ 64];
}
// Half of those who see a flag do not come to the barrier.
KERNEL(128) half_of_them_meet(READER) {
    int t = threadIdx.x;
    if (t % 64 < 4)
        while (acquire(flag + t / 16) != count) {}
    if (t < 64) {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        out[t] = rows[t] + rows[t + 64];
    }
}
// Lanes vote until each has seen its own.
KERNEL(128) votes_on_all(READER) {
    int t = threadIdx.x, seen;
    do {
        seen = acquire(flag + t % 32);
    } while (!__all_sync(~0u, seen == count));
    out[t] = rows[t];
}
// One thread goes through all flags, and a barrier tells the others.
KERNEL(128) one_goes_through_all(READER) {
    int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < 8; ++i)
            while (acquire(flag + i) != count) {}
    __syncthreads();
    out[t] = rows[t];
}
// What is stored for others is announced; what is read from them is not.
KERNEL(128) exchanges(const float* w, float* theirs, int* full, const float* rows,
                      const int* flag, float* out, int count) {
    int t = threadIdx.x;
    theirs[t] = w[t];
    __syncthreads();
    if (t == 0) {
        release(full, count);
        while (acquire(flag) != count) {}
    }
    __syncthreads();
    out[t] = rows[t];
}

// The last round's store is behind the flag of the round before.
KERNEL(128) leaves_the_last_round(SENDER) {
    int t = threadIdx.x;
    for (int i = 0; i < count; ++i) {
        __syncthreads();
        if (t == 0) release(flag, i);
        out[t + i * 128] = w[t];
    }
}
// What is stored after the first release is behind the second.
KERNEL(128) sets_anew(SENDER) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0) release(flag, count);
    out[t + 128] = w[t];
    __syncthreads();
    if (t == 0) release(flag, count + 1);
}
// The second time, one flag of two.
#define TWO const float* w, float* out, float* more, int* flag, int* other, int count
KERNEL(128) sets_the_other(TWO) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0) release(flag, count);
    more[t] = w[t];
    __syncthreads();
    if (t == 0) release(other, count);
}
KERNEL(128) sets_each_its_own(TWO) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0) release(flag, count);
    more[t] = w[t];
    __syncthreads();
    if (t == 0) release(other, count);
}
// Warps store and arrive; the one that waits for them sets the flag.
KERNEL(128) arrives_at_an_mbarrier(SENDER) {
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 96);
    __syncthreads();
    if (t >= 32) {
        out[t] = w[t];
        arrive(&bar);
    } else {
        await(&bar, 0);
        if (t == 0) release(flag, count);
    }
}
KERNEL(128) stores_behind_its_arrival(SENDER) {
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 96);
    __syncthreads();
    if (t >= 32) {
        arrive(&bar);
        out[t] = w[t];
    } else {
        await(&bar, 0);
        if (t == 0) release(flag, count);
    }
}
// All threads set one flag, each behind its own store.
KERNEL(128) all_set_one(SENDER) {
    out[threadIdx.x] = w[threadIdx.x];
    release(flag, count);
}
KERNEL(128) all_meet_and_set_one(SENDER) {
    out[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    release(flag, count);
}
// A warp's lanes have parted before they store, and its first one sets the flag.
KERNEL(128) parted_lanes(SENDER) {
    int t = threadIdx.x;
    if (w[t] > 3) {
        for (int i = 0; i < count; ++i) asm volatile("nanosleep.u32 20;" ::: "memory");
        out[t] = w[t];
        if (t % 32 == 0) release(flag + t / 32, count);
    }
}
// A flag at an index that is read from memory.
KERNEL(128) at_an_index(const float* w, float* out, int* flag, const int* step) {
    int t = threadIdx.x;
    out[t] = w[t];
    __syncthreads();
    if (t == 0) release(flag + (*step & 1), 1);
}
// Sets the flag back once it has read, and stores its own result then.
KERNEL(128) sets_back(const float* rows, int* flag, float* out, int count) {
    int t = threadIdx.x;
    if (t == 0)
        while (acquire(flag) != count) {}
    __syncthreads();
    float value = rows[t];
    __syncthreads();
    if (t == 0) release(flag, 0);
    out[t] = value;
}
// The same before the others have read.
KERNEL(128) sets_back_at_once(const float* rows, int* flag, float* out, int count) {
    int t = threadIdx.x;
    if (t == 0)
        while (acquire(flag) != count) {}
    __syncthreads();
    out[t] = rows[t];
    if (t == 0) release(flag, 0);
}
// The warp that acquires does not wait for those that read.
KERNEL(128) sets_back_apart(const float* rows, int* flag, float* out, int count) {
    int t = threadIdx.x;
    if (t == 0)
        while (acquire(flag) != count) {}
    __syncthreads();
    if (t >= 32)
        out[t] = rows[t];
    else if (t == 0)
        release(flag, 0);
}
KERNEL(128) sets_back_behind_them(const float* rows, int* flag, float* out, int count) {
    int t = threadIdx.x;
    if (t == 0)
        while (acquire(flag) != count) {}
    __syncthreads();
    if (t >= 32) {
        float value = rows[t];
        asm volatile("barrier.arrive 1, 128;" ::: "memory");
        out[t] = value;
    } else {
        asm volatile("barrier.sync 1, 128;" ::: "memory");
        if (t == 0) release(flag, 0);
    }
}
// Rounds of a mailbox, each set back when it was read.
KERNEL(128) sets_back_each_round(const float* rows, int* flag, float* out, int count) {
    int t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        if (t == 0)
            while (acquire(flag) != i) {}
        __syncthreads();
        sum += rows[t];
        __syncthreads();
        if (t == 0) release(flag, -1);
    }
    out[t] = sum;
}
// A credit for the sender, before and after all have read.
KERNEL(128) gives_credit_at_once(const float* rows, const int* flag, int* credit, float* out,
                                 int count) {
    int t = threadIdx.x;
    while (acquire(flag) != count) {}
    out[t] = rows[t];
    if (t == 0) release(credit, count);
}
KERNEL(128) gives_credit(const float* rows, const int* flag, int* credit, float* out, int count) {
    int t = threadIdx.x;
    while (acquire(flag) != count) {}
    out[t] = rows[t];
    __syncthreads();
    if (t == 0) release(credit, count);
}
// An unrolled end of rows, which the compiler stores under as many guards.
KERNEL(128) stores_under_guards(SENDER) {
    int t = threadIdx.x;
    float sum[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = w[i * 128 + t];
    for (int k = 1; k < count; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[i] = sum[i] * 0.5f + w[(k * 8 + i) * 128 + t];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (i < count) out[(blockIdx.x * 8 + i) * 128 + t] = sum[i];
    __syncthreads();
    if (t == 0) release(flag + blockIdx.x, count);
}

// Threads past the end leave; who acquires for the rest is there if any of them is.
KERNEL(128) leave_past_the_end(READER) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    if (threadIdx.x < 32)
        while (acquire(flag) != count) {}
    __syncthreads();
    out[i] = rows[i];
}
KERNEL(128) leave_past_the_end_elected(READER) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    if (threadIdx.x < 32 && elected())
        while (acquire(flag) != count) {}
    __syncthreads();
    out[i] = rows[i];
}
// The last warp may leave without the others; so may the first one where those before a row leave.
KERNEL(128) leave_with_the_last_warp(READER) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    if (threadIdx.x >= 96)
        while (acquire(flag) != count) {}
    __syncthreads();
    out[i] = rows[i];
}
KERNEL(128) leave_before_a_row(READER) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) return;
    if (threadIdx.x < 32)
        while (acquire(flag) != count) {}
    __syncthreads();
    out[i] = rows[i];
}
// Too large an index may leave a block without its first threads alone.
KERNEL(128) leave_by_a_scaled_index(READER) {
    unsigned i = blockIdx.x * count + threadIdx.x;
    if (i >= count) return;
    if (threadIdx.x < 32)
        while (acquire(flag) != count) {}
    __syncthreads();
    out[i] = rows[i];
}

// Whether a thread has waited is kept in a byte, of a register that held a pointer.
#define ROUNDS(who) \
    float sum = w[m[blockIdx.x] * 128 + threadIdx.x]; \
    if (sum > 1e30f) __nanosleep(5); \
    bool done = false; \
    for (int i = 0; i < count; ++i) { \
        for (int k = 0; k < count; ++k) { \
            if (!done) { \
                if (who) while (acquire(flag) != count) {} \
                NAMED(1, 128); \
                done = true; \
            } \
            sum += (count > 4 ? w : rows)[threadIdx.x + (i * count + k) * 128]; \
        } \
    } \
    out[threadIdx.x] = sum;
KERNEL(128) waits_in_the_first_of_all_rounds(const float* w, const int* m, READER) {
    ROUNDS(threadIdx.x < 32)
}
KERNEL(128) waits_in_the_first_of_all_rounds_at_times(const float* w, const int* m, READER) {
    ROUNDS(blockIdx.x == 0)
}
