// SPDX-License-Identifier: Apache-2.0
// Kernels that read what others write before all have waited, in ways that were once proved.
#define KERNEL extern "C" __global__ void __launch_bounds__(128)
#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define ARGUMENTS const float* w, float* rows, float* out, int count
#define MAILBOX const float* w, const float* rows, const int* flag, float* out, int count

__device__ inline int acquire(const int* flag) {
    int value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

// The warp that waits may have ended, and the barrier does without it.
KERNEL ended(ARGUMENTS) {
    int t = threadIdx.x;
    if (t < 32 && count > 3) return;
    if (t < 32) WAIT();
    __syncthreads();
    float value = rows[t];
    WAIT();
    out[t] = value;
}

// Two counts of one barrier are two numbers.
KERNEL counted(ARGUMENTS) {
    int t = threadIdx.x;
    int first = __syncthreads_count(w[t] > 0);
    if (first == 0) {
        WAIT();
        out[t] = 0;
        return;
    }
    int second = __syncthreads_count(w[t + 128] > 0);
    float value = 0;
    if (second == 0) value = rows[t];
    WAIT();
    out[t] = value;
}

// The vote of a warp whose leader alone has waited.
KERNEL voted(ARGUMENTS) {
    int t = threadIdx.x;
    bool ready = false;
    if (t % 32 == 0) {
        WAIT();
        ready = true;
    }
    float value = 0;
    if (__any_sync(~0u, ready)) value = rows[t];
    WAIT();
    out[t] = value;
}

// One parameter's rows by their distance from another's.
KERNEL distant(ARGUMENTS) {
    int t = threadIdx.x;
    long between = rows - w;
    float value = w[t + between];
    WAIT();
    out[t] = value;
}

// The spin ends by a number of its own, too.
KERNEL bounded(MAILBOX) {
    int left = count, more;
    do {
        more = min((unsigned)(acquire(flag) ^ 7), (unsigned)left--);
    } while (more);
    out[threadIdx.x] = rows[threadIdx.x];
}

// The spin ends by a word that is no flag, too.
KERNEL aborted(MAILBOX) {
    int seen;
    do {
        seen = (acquire(flag) == count) | (w[threadIdx.x] > 3.f);
    } while (!seen);
    out[threadIdx.x] = rows[threadIdx.x];
}
