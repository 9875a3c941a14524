// Overflow fallback: one row at a time in wider arithmetic, for the rare rows whose scores or sums left the range of
// the fast path: scores that overflow then still give the limit of the exact formula, and a NaN that may be read comes
// through.
#ifndef HEADWORK_KERNEL_OVERFLOW_FALLBACK_H
#define HEADWORK_KERNEL_OVERFLOW_FALLBACK_H

#include <math.h>

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

// A row with scores below this has nothing but such numbers to read, and nothing else counts beside them.
template <class T> constexpr T deep = -largest<T> / (1 << 20);

template <class T> struct CarefulRow {
    using Wide = typename Shape<T>::Wider;
    const Group &group;
    const Lane &lane;
    const hw_attention &call = *group.call;

    Wide bias(int64_t key) const {
        if (!lane.mask) return 0;
        const char *at = lane.mask + key * call.mask.column;
        if (call.mask.type == HW_BOOL) return *at ? Wide(0) : -infinity<Wide>;
        return read_bias<T>(call.mask, at);
    }

    Wide score(int64_t key, Wide added) const {
        Wide sum = 0;
        const char *k = group.k + key * call.k.row;
        for (int64_t c = 0; c < call.d_k; ++c)
            sum += Wide(read_number<T>(call.q, lane.q + c * call.q.column)) *
                   Wide(read_number<T>(call.k, k + c * call.k.column));
        sum *= Wide(call.scale);
        if (call.softcap > 0) sum = Wide(call.softcap) * tanhl(sum / Wide(call.softcap));
        return sum + added;
    }

    // Calls body(key, score) for every key that may be read.
    template <class Body> void each(Body body) const {
        for (int64_t key = lane.first; key < lane.last; ++key) {
            const Wide added = bias(key);
            if (added != -infinity<Wide>) body(key, score(key, added));
        }
    }

    // Where the mask adds one and the same number to every key that may be read: that number; otherwise NaN.
    Wide only_bias() const {
        Wide only = __builtin_nan("");
        for (int64_t key = lane.first; key < lane.last; ++key) {
            const Wide added = bias(key);
            if (added == -infinity<Wide> || added == only) continue;
            if (only == only || added != added) return __builtin_nan("");
            only = added;
        }
        return only;
    }

    // Whether nothing but the lowest numbers of an additive mask was read. Where they differ, the sums do not tell them
    // apart.
    bool is_deep(T top) const {
        return top <= deep<T> && top > -infinity<T> && call.mask.data && call.mask.type != HW_BOOL;
    }
    bool is_unsure(T top) const { return is_deep(top) && only_bias() != only_bias(); }

    // The natural log-sum-exp of a row from its sums, in powers of two.
    Wide log_sum(T top, T sum) const {
        constexpr Wide ln2 = 0.6931471805599453094172L;
        if (sum == 0) return -infinity<Wide>;
        if (!is_deep(top)) return (Wide(top) + log2l(Wide(sum))) * ln2;
        const Wide only = only_bias();
        return only + (Wide(top) - Wide(bias_in_powers<T>(static_cast<T>(only))) + log2l(Wide(sum))) * ln2;
    }

    // `sums` holds d_v wide numbers.
    void work(Wide *sums) const {
        Wide top = -infinity<Wide>;
        int64_t at_top = 0;
        bool nan = false;
        each([&](int64_t, Wide s) {
            nan |= s != s;
            at_top = s > top ? 1 : at_top + (s == top);
            top = s > top ? s : top;
        });
        // Several scores at the same infinity have no limit.
        const bool infinite = top - top != 0, lost = nan || (infinite && at_top > 1);
        Wide sum = 0;
        for (int64_t c = 0; c < call.d_v; ++c) sums[c] = 0;
        each([&](int64_t key, Wide s) {
            const Wide p = lost ? Wide(__builtin_nan("")) : infinite ? Wide(s == top) : expl(s - top);
            sum += p;
            weigh(key, static_cast<T>(p));
            if (p == 0) return;
            const char *v = group.v + key * call.v.row;
            for (int64_t c = 0; c < call.d_v; ++c) sums[c] += p * Wide(read_number<T>(call.v, v + c * call.v.column));
        });
        finish(sums, sum, top);
    }

  private:
    void weigh(int64_t key, T p) const {
        if (lane.weights) __builtin_memcpy(lane.weights + key * call.weights.column, &p, sizeof p);
    }

    void finish(Wide *sums, Wide sum, Wide top) const {
        const Wide inverse = sum == 0 ? 0 : 1 / sum;
        for (int64_t c = 0; c < call.d_v; ++c) {
            T padded[W<T>] = {static_cast<T>(sums[c] * inverse)};
            with_type<T>(call.out.type, [&](auto stored) {
                write_row<T, typename decltype(stored)::Type>(lane.out + c * call.out.column, 0, padded, 1);
            });
        }
        if (lane.lse) write_lse<T>(call.lse, lane.lse, sum == 0 ? -infinity<Wide> : static_cast<Wide>(top + logl(sum)));
        if (!lane.weights) return;
        for (int64_t key = 0; key < call.keys; ++key) {
            T p;
            __builtin_memcpy(&p, lane.weights + key * call.weights.column, sizeof p);
            p = bias_hides(key) ? 0 : static_cast<T>(p * inverse);
            __builtin_memcpy(lane.weights + key * call.weights.column, &p, sizeof p);
        }
    }

    bool bias_hides(int64_t key) const { return key < lane.first || key >= lane.last || bias(key) == -infinity<Wide>; }
};

} // namespace headwork::HW_CPU
#endif
