// SPDX-License-Identifier: Apache-2.0
// What is done later than its instruction: bulk stores, what triggers let begin, data thrown away.
// What each kernel must be judged as is in `late.yaml`.
#include "controls/common.cuh"

#define ARGUMENTS const float* w, float* rows, float* out, int count
#define SENDING const float* w, float* out, uint32_t* flag, int count
#define FILLED                                                             \
    __shared__ alignas(128) float part[256];                               \
    int t = threadIdx.x;                                                   \
    part[t] = w[t];                                                        \
    part[t + 128] = w[t + 128];                                            \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");           \
    __syncthreads();
#define COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define GROUPS(most) asm volatile("cp.async.bulk.wait_group " #most ";" ::: "memory")
#define GROUPS_READ(most) asm volatile("cp.async.bulk.wait_group.read " #most ";" ::: "memory")

__device__ inline void store(float* to, const float* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}

KERNEL(128) bulk_released_at_once(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    release_sys(flag, 1);
    GROUPS(0);
}
KERNEL(128) bulk_read_alone(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    GROUPS_READ(0);
    release_sys(flag, 1);
}
// A fence drops what was cached, too, and is no wait.
KERNEL(128) bulk_read_and_fenced(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    GROUPS_READ(0);
    __threadfence_system();
    release_sys(flag, 1);
}
KERNEL(128) bulk_in_no_group(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    GROUPS(0);
    release_sys(flag, 1);
    COMMIT();
    GROUPS(0);
}
KERNEL(128) bulk_newest_left(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    store(out + 128, part + 128, 512);
    COMMIT();
    GROUPS(1);
    release_sys(flag, 1);
    GROUPS(0);
}
KERNEL(128) bulk_waited_on_one_way(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    if (count > 3) GROUPS(0);
    release_sys(flag, 1);
    GROUPS(0);
}
KERNEL(128) bulk_waited_by_another(SENDING) {
    FILLED
    if (t == 0) {
        store(out, part, 512);
        COMMIT();
    }
    __syncthreads();
    if (t == 32) {
        GROUPS(0);
        release_sys(flag, 1);
    }
    if (t == 0) GROUPS(0);
}
// The wait is too late for whoever sets the flag.
KERNEL(128) bulk_waited_after_they_met(SENDING) {
    FILLED
    if (t == 0) {
        store(out, part, 512);
        COMMIT();
    }
    __syncthreads();
    if (t == 0) GROUPS(0);
    if (t == 32) release_sys(flag, 1);
}
KERNEL(128) bulk_left_by_one_that_ended(SENDING) {
    FILLED
    if (t == 0) {
        store(out, part, 512);
        COMMIT();
    }
    __syncthreads();
    if (t == 0) {
        GROUPS_READ(0);
        return;
    }
    __syncthreads();
    if (t == 32) release_sys(flag, 1);
}
KERNEL(128) bulk_fenced_too_early(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    __threadfence_system();
    GROUPS(0);
    relaxed_store(flag, 1);
}
KERNEL(128) bulk_added_at_once(SENDING) {
    FILLED
    if (t) return;
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 512;"
                 ::"l"(out), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS_READ(0);
    release_sys(flag, 1);
}
KERNEL(128) tile_read_alone(const float* w, const __grid_constant__ Descriptor out, uint32_t* flag, int count) {
    FILLED
    if (t) return;
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&out), "r"(0), "r"(count), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS_READ(0);
    release_sys(flag, 1);
}
KERNEL(128) tile_added_at_once(const float* w, const __grid_constant__ Descriptor out, uint32_t* flag,
                          int count) {
    FILLED
    if (t) return;
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                 " [%0, {%1, %2}], [%3];"
                 ::"l"(&out), "r"(0), "r"(count), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS_READ(0);
    release_sys(flag, 1);
}
KERNEL(128) tile_unfenced(const float* w, const __grid_constant__ Descriptor out, int count) {
    __shared__ alignas(128) float part[128];
    part[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    if (threadIdx.x) return;
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&out), "r"(0), "r"(count), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS_READ(0);
}
KERNEL(128) tile_before_the_wait(const float* w, const __grid_constant__ Descriptor out,
                                 int count) {
    FILLED
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                     " [%0, {%1, %2}], [%3];"
                     ::"l"(&out), "r"(0), "r"(count), "r"(at(part)) : "memory");
        COMMIT();
        GROUPS_READ(0);
    }
    WAIT();
}
KERNEL(128) bulk_never_read(SENDING) {
    FILLED
    if (t == 0) store(out, part, 512);
}
KERNEL(128) bulk_then_triggers(ARGUMENTS) {
    WAIT();
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    GROUPS_READ(0);
    TRIGGER();
}

KERNEL(128) bulk_released(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    GROUPS(0);
    release_sys(flag, 1);
}
KERNEL(128) bulk_oldest_released(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    COMMIT();
    GROUPS(1);
    release_sys(flag, 1);
}
KERNEL(128) bulk_rounds_released(SENDING) {
    FILLED
    if (t) return;
    for (int i = 0; i < count; i++) {
        store(out + 128 * i, part + 128 * (i & 1), 512);
        COMMIT();
        GROUPS_READ(1);
    }
    GROUPS(0);
    release_sys(flag, 1);
}
KERNEL(128) bulk_by_each_warp_released(SENDING) {
    FILLED
    if (t % 32 == 0) {
        store(out + t, part + t, 128);
        COMMIT();
        GROUPS(0);
    }
    __syncthreads();
    if (t == 0) release_sys(flag, 1);
}
KERNEL(128) bulk_met_twice_released(SENDING) {
    FILLED
    if (t == 0) {
        store(out, part, 512);
        COMMIT();
        GROUPS_READ(0);
    }
    __syncthreads();
    if (t == 0) GROUPS(0);
    __syncthreads();
    if (t == 32) release_sys(flag, 1);
}
KERNEL(128) bulk_added_released(SENDING) {
    FILLED
    if (t) return;
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 512;"
                 ::"l"(out), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS(0);
    release_sys(flag, 1);
}
KERNEL(128) tile_released(const float* w, const __grid_constant__ Descriptor out, uint32_t* flag, int count) {
    FILLED
    if (t) return;
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&out), "r"(0), "r"(count), "r"(at(part)) : "memory");
    COMMIT();
    GROUPS(0);
    release_sys(flag, 1);
}
KERNEL(128) bulk_no_one_told(SENDING) {
    FILLED
    if (t) return;
    store(out, part, 512);
    COMMIT();
    GROUPS_READ(0);
}
KERNEL(128) bulk_done_before_trigger(ARGUMENTS) {
    WAIT();
    FILLED
    if (t == 0) {
        store(out, part, 512);
        COMMIT();
        GROUPS(0);
    }
    __syncthreads();
    TRIGGER();
}

// One thread triggers for its block, while others are still to store.
KERNEL(128) warp_triggers_at_once(ARGUMENTS) {
    WAIT();
    int t = threadIdx.x;
    if (t < 32) {
        TRIGGER();
        return;
    }
    float v = rows[t];
    for (int i = 0; i < count; i++) v = v * v + w[i];
    out[t] = v;
}
KERNEL(128) each_triggers_after_its_own(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    TRIGGER();
}
KERNEL(128) thread_triggers_after_its_own(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    if (threadIdx.x == 0) TRIGGER();
}
KERNEL(128) barrier_of_one_half(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    if (threadIdx.x < 64) {
        NAMED(1, 64);
        TRIGGER();
    }
}
KERNEL(128) barrier_on_one_way(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    if (count > 3) __syncthreads();
    TRIGGER();
}
KERNEL(128) barrier_before_the_last_round(ARGUMENTS) {
    WAIT();
    for (int i = 0; i < count; i++) {
        __syncthreads();
        out[threadIdx.x + 128 * i] = rows[threadIdx.x + 128 * i];
    }
    TRIGGER();
}
// Those that only arrive do not wait for the others.
KERNEL(128) arrives_and_triggers(ARGUMENTS) {
    WAIT();
    if (threadIdx.x < 64) {
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        TRIGGER();
    } else {
        out[threadIdx.x] = rows[threadIdx.x];
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
}
KERNEL(128) reads_late_in_another_warp(ARGUMENTS) {
    WAIT();
    if (threadIdx.x < 32) TRIGGER();
    if (threadIdx.x >= 32 && rows[threadIdx.x] > 3.f) __trap();
}
KERNEL(128) bulk_by_another_warp(ARGUMENTS) {
    WAIT();
    FILLED
    if (t == 64) {
        store(out, part, 512);
        COMMIT();
        GROUPS(0);
    }
    if (t == 0) TRIGGER();
}

KERNEL(128) meet_and_all_trigger(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    TRIGGER();
}
KERNEL(128) meet_and_one_triggers(ARGUMENTS) {
    WAIT();
    if (threadIdx.x < count) {
        out[threadIdx.x] = rows[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) TRIGGER();
    }
}
KERNEL(128) rounds_then_meet(ARGUMENTS) {
    WAIT();
    for (int i = 0; i < count; i++) {
        __syncthreads();
        out[threadIdx.x + 128 * i] = rows[threadIdx.x + 128 * i];
    }
    __syncthreads();
    if (threadIdx.x < 32) TRIGGER();
}
// Rounds within rounds, and halves that are added up: all by numbers of the launch.
KERNEL(128) nested_rounds_then_meet(ARGUMENTS) {
    __shared__ float part[128];
    WAIT();
    int t = threadIdx.x;
    for (int j = blockIdx.x; j < count; j += gridDim.x) {
        part[t] = rows[j * 128 + t];
        __syncthreads();
        for (int k = 64; k; k >>= 1) {
            if (t < k) part[t] += part[t + k];
            __syncthreads();
        }
        out[j * 128 + t] = part[0];
        __syncthreads();
    }
    __syncthreads();
    TRIGGER();
}
// Some threads may leave the rounds before others.
KERNEL(128) rounds_of_each_then_meet(ARGUMENTS) {
    WAIT();
    for (int i = 0; i < count && w[threadIdx.x + i] < 3.f; i++) {
        asm volatile("bar.sync 0;" ::: "memory");
        out[i * 128 + threadIdx.x] = rows[threadIdx.x + i];
    }
    asm volatile("bar.sync 0;" ::: "memory");
    TRIGGER();
}
KERNEL(128) half_is_waited_for(ARGUMENTS) {
    WAIT();
    if (threadIdx.x < 64) {
        NAMED(1, 128);
        TRIGGER();
    } else {
        out[threadIdx.x] = rows[threadIdx.x];
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    }
}
KERNEL(128) lone_thread_stores_and_triggers(ARGUMENTS) {
    WAIT();
    if (threadIdx.x == 0) {
        for (int i = 0; i < count; i++) out[i] = rows[i];
        TRIGGER();
    }
}
KERNEL(128) __cluster_dims__(2) cluster_meets_and_triggers(ARGUMENTS) {
    WAIT();
    out[blockIdx.x * 128 + threadIdx.x] = rows[threadIdx.x];
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0) TRIGGER();
}
KERNEL(128) __cluster_dims__(2) cluster_triggers_between(ARGUMENTS) {
    WAIT();
    if (threadIdx.x >= 32) out[blockIdx.x * 128 + threadIdx.x] = rows[threadIdx.x];
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    if (threadIdx.x == 0) TRIGGER();
    asm volatile("barrier.cluster.wait;" ::: "memory");
}

// Data that is thrown away is written.
#define DISCARD(from) asm volatile("discard.global.L2 [%0], 128;" ::"l"(from) : "memory")
KERNEL(128) discards_before_the_wait(ARGUMENTS) {
    DISCARD(out + threadIdx.x * 32);
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x] + w[threadIdx.x];
}
KERNEL(128) discards_after_the_trigger(ARGUMENTS) {
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    TRIGGER();
    DISCARD(rows + threadIdx.x * 32);
}
KERNEL(128) discards_behind_the_fence(SENDING) {
    out[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence_system();
    DISCARD(out + 256);
    relaxed_store(flag, 1);
}
KERNEL(128) discards_in_time(ARGUMENTS) {
    WAIT();
    DISCARD(out + threadIdx.x * 32);
    out[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    TRIGGER();
}
KERNEL(128) prefetches_before_the_wait(ARGUMENTS) {
    asm volatile("prefetch.global.L2 [%0];\nprefetch.global.L1 [%0];" ::"l"(rows) : "memory");
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(rows) : "memory");
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(rows) : "memory");
    WAIT();
    out[threadIdx.x] = rows[threadIdx.x];
}
