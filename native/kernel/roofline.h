// Roofline probes, what this machine can do at best: the multiply-adds that are not held up by anything, and reading
// that does no more.
#ifndef HEADWORK_KERNEL_ROOFLINE_H
#define HEADWORK_KERNEL_ROOFLINE_H

#include "../threads.h"
#include "microkernel.h"

namespace headwork::HW_CPU {

struct Load {
    const char *data;
    int64_t amount; // bytes of `data`, or rounds of multiply-adds, for each thread
    int32_t threads, taken, sink;
};

// A result nobody needs, kept so that the work for it is not left out.
inline void keep(void *load, float sum) {
    __atomic_store_n(&static_cast<Load *>(load)->sink, sum != sum ? 1 : 0, __ATOMIC_RELAXED);
}

// Independent multiply-adds, more than any CPU has under way at once, and all of them in registers.
constexpr int in_flight = HW_BYTES == 64 ? 16 : 12;

inline void multiply_add_rounds(void *data) {
    const int64_t rounds = static_cast<Load *>(data)->amount;
    const Vec<float> by = splat<float>(0.999f), plus = splat<float>(1e-3f);
    Vec<float> sum[in_flight];
    HW_EACH(i, 0, in_flight) sum[i] = plus; // a loop that is not unrolled would leave them in memory
    for (int64_t round = 0; round < rounds; ++round)
        HW_EACH(i, 0, in_flight) {
            sum[i] = sum[i] * by + plus;
            hold(sum[i]);
        }
    HW_EACH(i, 1, in_flight) sum[0] += sum[i];
    keep(data, total<float>(sum[0]));
}

inline void read_all(void *data) {
    Load &load = *static_cast<Load *>(data);
    const int64_t mine = __atomic_fetch_add(&load.taken, 1, __ATOMIC_RELAXED);
    if (mine >= load.threads) return;
    const float *from = reinterpret_cast<const float *>(load.data + mine * load.amount);
    Vec<float> sum[8] = {};
    for (int64_t i = 0; i + 8 * W<float> <= load.amount / 4; i += 8 * W<float>)
        HW_EACH(j, 0, 8) sum[j] += HW_CPU::load<float>(from + i + j * W<float>);
    HW_EACH(j, 1, 8) sum[0] += sum[j];
    keep(data, total<float>(sum[0]));
}

} // namespace headwork::HW_CPU
#endif
