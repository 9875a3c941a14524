// What is added to the scores of a row: an additive mask, and by distance an ALiBi slope and a relative-position table.
#ifndef HEADWORK_KERNEL_BIAS_H
#define HEADWORK_KERNEL_BIAS_H

#include "lanes.h"

namespace headwork::HW_CPU {

template <class T, class S> HW_INLINE T read_as(const char *from) {
    char some[W<T> * sizeof(S)] = {};
    __builtin_memcpy(some, from, sizeof(S));
    return load_as<T, S>(some)[0];
}

template <class T> HW_INLINE T read_number(const hw_array &array, const char *from) {
    T x = 0;
    with_type<T>(array.type, [&](auto stored) { x = read_as<T, typename decltype(stored)::Type>(from); });
    return x;
}

// A key's number or a value's, in a cache or not.
template <class T> HW_INLINE T read_cached(const hw_array &array, const char *from) {
    T x = 0;
    with_cached_type<T>(array.type, [&](auto stored) { x = read_as<T, typename decltype(stored)::Type>(from); });
    return x;
}

// What an additive mask says at one place. Masks of every float type go with calls of every type; −∞ alone is −∞.
template <class T> HW_INLINE T read_bias(const hw_array &mask, const char *from) {
    if (mask.type == HW_FLOAT64) {
        double x;
        __builtin_memcpy(&x, from, sizeof x);
        if (sizeof(T) == 4 && x < -largest<T> && x > -infinity<double>) return -largest<T>;
        return static_cast<T>(x);
    }
    return static_cast<T>(read_number<float>(mask, from));
}

// What a mask adds, in powers of two. −∞ hides, and is known by the mask's own number; the lowest of the others, such
// as finfo.min, are held at the lowest number there is, and not made −∞ by the factor.
template <class T> HW_INLINE Vec<T> bias_in_powers(Vec<T> bias) {
    return larger<T>(splat<T>(-largest<T>), bias * static_cast<T>(1.4426950408889634074));
}
template <class T> HW_INLINE T bias_in_powers(T bias) { return bias_in_powers<T>(splat<T>(bias))[0]; }

HW_INLINE bool has_additive_mask(const hw_attention &call) { return call.mask.data && call.mask.type != HW_BOOL; }
HW_INLINE bool has_distances(const hw_attention &call) { return call.slopes.data || call.table.data; }
HW_INLINE bool is_biased(const hw_attention &call) { return has_additive_mask(call) || has_distances(call); }
// Whether anything but causal order, windows and lengths may hide a key.
HW_INLINE bool may_hide(const hw_attention &call) { return call.mask.data || call.table.data || call.blocks.data; }

// The sum of two that are added to a score: −∞ only where one of them is.
template <class T> HW_INLINE T both_added(T a, T b) {
    const T sum = a + b;
    return a == -infinity<T> || b == -infinity<T> ? -infinity<T> : sum < -largest<T> ? -largest<T> : sum;
}

// What the distance between a row's own position and a key adds to the score.
template <class T> struct Distances {
    T slope = 0;
    const char *table = nullptr; // at distance 0
    int64_t column = 0, reach = 0, position = 0;

    Distances(const Group &group, const Lane &lane) {
        const hw_attention &call = *group.call;
        position = lane.token + group.span.offset;
        column = call.table.column;
        reach = call.reach;
        if (call.slopes.data)
            __builtin_memcpy(&slope, Group::place(call.slopes, group.slopes, lane.head, 0), sizeof slope);
        if (call.table.data) table = Group::place(call.table, group.table, lane.head, 0) + reach * column;
    }

    int64_t held(int64_t key) const { return most(-reach, least(reach, key - position)); }
    T entry(int64_t key) const {
        T x;
        __builtin_memcpy(&x, table + held(key) * column, sizeof x);
        return x;
    }
    T sloped(int64_t key) const {
        const T off = -slope * static_cast<T>(key < position ? position - key : key - position);
        return off < -largest<T> ? -largest<T> : off;
    }
    T at(int64_t key) const {
        const T off = slope != 0 ? sloped(key) : T(0);
        return table ? both_added(off, entry(key)) : off;
    }

    // row[i] += what is added at key `from` + i
    void add(T *row, int64_t from, int64_t count) const {
        if (slope != 0)
            for (int64_t i = 0; i < count; ++i) row[i] = both_added(row[i], sloped(from + i));
        if (!table) return;
        const int64_t low = most<int64_t>(0, least(count, position - reach - from)),
                      high = most(low, least(count, position + reach + 1 - from));
        for (int64_t i = 0; i < low; ++i) row[i] = both_added(row[i], entry(from + i));
        const char *const here = table + (from - position) * column;
        if (column == sizeof(T)) {
            for (int64_t i = low; i < high; ++i) {
                T x;
                __builtin_memcpy(&x, here + i * static_cast<int64_t>(sizeof(T)), sizeof x);
                row[i] = both_added(row[i], x);
            }
        } else {
            for (int64_t i = low; i < high; ++i) row[i] = both_added(row[i], entry(from + i));
        }
        for (int64_t i = high; i < count; ++i) row[i] = both_added(row[i], entry(from + i));
    }
};

} // namespace headwork::HW_CPU
#endif
