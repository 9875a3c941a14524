// What this machine can do at best, measured: the multiply-adds and the bytes read in a second.
#ifndef HEADWORK_KERNEL_LIMITS_H
#define HEADWORK_KERNEL_LIMITS_H

#include <time.h>

#include "../threads.h"
#include "tiles.h"

namespace headwork::HW_CPU {

inline double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Load {
    const char *data;
    int64_t bytes;   // of `data`, shared out among the threads
    int32_t threads, taken, sink;
};

// A result nobody needs, kept so that the work for it is not left out.
inline void keep(void *load, float sum) {
    __atomic_store_n(&static_cast<Load *>(load)->sink, sum != sum ? 1 : 0, __ATOMIC_RELAXED);
}

constexpr int64_t fma_rounds = 4000000;

// As many independent multiply-adds as there are accumulators, over and over.
inline void multiply_add(void *load) {
    Vec<float> sum[accumulators], by = splat<float>(0.999f), plus = splat<float>(1e-3f);
    HW_UNROLL for (int i = 0; i < accumulators; ++i) sum[i] = splat<float>(static_cast<float>(i));
    for (int64_t round = 0; round < fma_rounds; ++round)
        _Pragma("GCC unroll 32") for (int i = 0; i < accumulators; ++i) {
            sum[i] = sum[i] * by + plus;
            hold(sum[i]);
        }
    _Pragma("GCC unroll 32") for (int i = 1; i < accumulators; ++i) sum[0] += sum[i];
    keep(load, total<float>(sum[0]));
}

inline void read_all(void *data) {
    Load &load = *static_cast<Load *>(data);
    const int64_t mine = __atomic_fetch_add(&load.taken, 1, __ATOMIC_RELAXED);
    if (mine >= load.threads) return;
    const int64_t size = load.bytes / load.threads / 1024 * 1024;
    const float *from = reinterpret_cast<const float *>(load.data + mine * size);
    Vec<float> sum[8] = {};
    for (int64_t i = 0; i + 8 * W<float> <= size / 4; i += 8 * W<float>)
        HW_UNROLL for (int j = 0; j < 8; ++j) sum[j] += HW_CPU::load<float>(from + i + j * W<float>);
    HW_UNROLL for (int j = 1; j < 8; ++j) sum[0] += sum[j];
    keep(data, total<float>(sum[0]));
}

// Operations a second, the best of five.
inline double fma_limit(int threads) {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
        Load load{nullptr, 0, threads, 0, 0};
        const double start = seconds();
        in_parallel(threads, multiply_add, &load);
        best = most(best, 2.0 * threads * fma_rounds * accumulators * W<float> / (seconds() - start));
    }
    return best;
}

// Bytes a second.
inline double read_limit(const char *data, int64_t bytes, int threads) {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
        Load load{data, bytes, threads, 0, 0};
        const double start = seconds();
        in_parallel(threads, read_all, &load);
        best = most(best, static_cast<double>(bytes) / (seconds() - start));
    }
    return best;
}

} // namespace headwork::HW_CPU
#endif
