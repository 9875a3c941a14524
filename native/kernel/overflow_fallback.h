// Overflow fallback: one row at a time in wider arithmetic, for the rare rows whose scores or sums left the range of
// the fast path: scores that overflow then still give the limit of the exact formula, and a NaN that may be read comes
// through.
#ifndef HEADWORK_KERNEL_OVERFLOW_FALLBACK_H
#define HEADWORK_KERNEL_OVERFLOW_FALLBACK_H

#include <math.h>

#include "bias.h"
#include "dropout.h"

namespace headwork::HW_CPU {

// A row with scores below this has nothing but such numbers to read, and nothing else counts beside them.
template <class T> constexpr T deep = -largest<T> / (1 << 20);

// In the wider type, and in none wider still, which takes five times as long.
inline double binary_log(float x) { return log2(static_cast<double>(x)); }
inline long double binary_log(double x) { return log2l(x); }

template <class T> struct CarefulRow {
    using Wide = typename Shape<T>::Wider;
    const Group &group;
    const Lane &lane;
    const hw_attention &call = *group.call;

    Wide bias(int64_t key) const {
        if (lane.blocks && covered(call, lane.blocks, key, key + 1) == Cover::none) return -infinity<Wide>;
        const T distance = has_distances(call) ? Distances<T>(group, lane).at(key) : T(0);
        if (!lane.mask) return distance;
        const char *at = lane.mask + key * call.mask.column;
        if (call.mask.type == HW_BOOL) return *at ? Wide(distance) : -infinity<Wide>;
        return both_added(read_bias<T>(call.mask, at), distance);
    }

    // The score without a value that joins the row; −∞ for none.
    Wide sink() const {
        if (!call.sinks.data) return -infinity<Wide>;
        T x;
        __builtin_memcpy(&x, Group::place(call.sinks, group.sinks, lane.head, 0), sizeof x);
        return x;
    }

    Wide score(const char *k, Wide k_scale, Wide added) const {
        Wide sum = 0;
        for (int64_t c = 0; c < call.d_k; ++c)
            sum += Wide(read_number<T>(call.q, lane.q + c * call.q.column)) *
                   Wide(read_cached<T>(call.k, k + c * call.k.column));
        sum *= Wide(call.scale) * k_scale;
        if (call.softcap > 0) sum = Wide(call.softcap) * tanhl(sum / Wide(call.softcap));
        return sum + added;
    }

    // Calls body(key, score) for every key that may be read.
    template <class Body> void each(Body body) const {
        const KeyRows k = group.rows_of(call.k), scales = group.rows_of(call.k_scales);
        for (int64_t key = lane.first; key < lane.last; ++key) {
            const Wide added = bias(key);
            if (added != -infinity<Wide>) body(key, score(k.at(key), scales.scale_at(key), added));
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
    bool is_deep(T top) const { return top <= deep<T> && top > -infinity<T> && is_biased(call); }
    bool is_unsure(T top) const { return is_deep(top) && only_bias() != only_bias(); }

    // The natural log-sum-exp of a row from its sums, in powers of two.
    Wide log_sum(T top, T sum) const {
        constexpr Wide ln2 = 0.6931471805599453094172L;
        if (sum == 0) return -infinity<Wide>;
        if (!is_deep(top)) return (Wide(top) + binary_log(sum)) * ln2;
        const Wide only = only_bias();
        return only + (Wide(top) - Wide(bias_in_powers<T>(static_cast<T>(only))) + binary_log(sum)) * ln2;
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
        const Wide other = sink();
        if (other > -infinity<Wide> || other != other) {
            nan |= other != other;
            at_top = other > top ? 1 : at_top + (other == top);
            top = other > top ? other : top;
        }
        // Several scores at the same infinity have no limit.
        const bool infinite = top - top != 0, lost = nan || (infinite && at_top > 1);
        const auto weight = [&](Wide s) {
            return lost ? Wide(__builtin_nan("")) : infinite ? Wide(s == top) : static_cast<Wide>(expl(s - top));
        };
        const Dropout<T> dropout(call);
        const RowKey row = dropout.on ? dropout.key(group.item, lane.head, lane.token) : RowKey{};
        Wide sum = other > -infinity<Wide> ? weight(other) : Wide(0);
        for (int64_t c = 0; c < call.d_v; ++c) sums[c] = 0;
        const KeyRows values = group.rows_of(call.v), scales = group.rows_of(call.v_scales);
        each([&](int64_t key, Wide s) {
            const Wide p = weight(s);
            sum += p;
            const Wide kept = !dropout.on ? p : dropout.keeps(row, key)[0] ? p * Wide(dropout.gain) : p * Wide(0);
            weigh(key, static_cast<T>(kept));
            if (p == 0) return;
            const char *const v = values.at(key);
            const Wide scaled = kept * Wide(scales.scale_at(key));
            for (int64_t c = 0; c < call.d_v; ++c)
                sums[c] += scaled * Wide(read_cached<T>(call.v, v + c * call.v.column));
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
