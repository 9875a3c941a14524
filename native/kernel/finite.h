// NaN guard, whether numbers are finite: what is not must not reach a sum that may not read it, even as 0 · NaN.
#ifndef HEADWORK_KERNEL_FINITE_H
#define HEADWORK_KERNEL_FINITE_H

#include "convert.h"

namespace headwork::HW_CPU {

// For `count` rows, `row` bytes apart, of `width` numbers stored as S: the sum of all, times 0, is then 0.
template <class T, class S> bool all_finite(const char *rows, int64_t row, int64_t count, int64_t width) {
    constexpr int64_t chains = 4, step = W<T> * static_cast<int64_t>(sizeof(S)); // a sum waits for the one before it
    const int64_t bytes = width * static_cast<int64_t>(sizeof(S));
    Vec<T> sum[chains] = {};
    for (int64_t r = 0; r < count; ++r) {
        const char *const from = rows + r * row;
        int64_t at = 0;
        for (; at + chains * step <= bytes; at += chains * step)
            HW_EACH(i, 0, chains) sum[i] += load_as<T, S>(from + at + i * step) * T(0);
        for (; at + step <= bytes; at += step) sum[0] += load_as<T, S>(from + at) * T(0);
        if (at == bytes) continue;
        char rest[step] = {};
        __builtin_memcpy(rest, from + at, static_cast<size_t>(bytes - at));
        sum[1] += load_as<T, S>(rest) * T(0);
    }
    sum[0] += sum[1] + (sum[2] + sum[3]);
    return !any<T>(sum[0] != sum[0]);
}

template <class T> bool all_finite(const T *row, int64_t width) {
    return all_finite<T, T>(reinterpret_cast<const char *>(row), 0, 1, width);
}

} // namespace headwork::HW_CPU
#endif
