// Micro-kernels and online softmax of decoding (matrix × a few vectors, bound by memory): a handful of rows cannot fill
// the lanes, so here the lanes run along d, keys and values are read as vectors, once, and the speed is that of memory.
// Rows are the queries of every head of a group.
#ifndef HEADWORK_KERNEL_DECODE_MICROKERNEL_H
#define HEADWORK_KERNEL_DECODE_MICROKERNEL_H

#include "exp2.h"
#include "finite.h"
#include "mask.h"
#include "prefetch.h"

namespace headwork::HW_CPU {

constexpr int64_t max_rows = 8;
template <class T> constexpr int row_tile = least(4, W<T>); // rows worked at once; 1, 2 or 4, the last of them zeros

// What a group's rows have summed so far: rows × d_v, then `top` and `sum` for every row, in powers of two.
template <class T> struct RowState {
    T *o, *top, *sum;
    static constexpr int64_t size(int64_t d_v) { return max_rows * (d_v + 2); }
    RowState(T *memory, int64_t d_v) : o(memory), top(memory + max_rows * d_v), sum(top + max_rows) {}
};

template <class T> struct RowBlock {
    const hw_attention *call;
    Lane lane[max_rows];
    int rows;
    int64_t d_k, d_v;        // in whole vectors
    T *q;                    // rows × d_k, times scale · log2 e
    T *p;                    // for every tile of rows: 32 keys × its rows, scores, then weights
    uint32_t seen[max_rows]; // bits of the 32 keys each row may read
    // Where the 32 keys and their values lie, and what they are multiplied by.
    const char *k[word], *v[word];
    T k_scale[word], v_scale[word];
    T *k_copy, *v_copy; // 32 rows each, where the caller's cannot be read as whole vectors

    // Rows of the tile that starts with row0.
    int tile(int row0) const {
        const int left = least(row_tile<T>, rows - row0);
        return left == 3 ? 4 : left;
    }
    T *place(int r, int64_t j) const {
        const int row0 = r / row_tile<T> * row_tile<T>;
        return p + row0 * word + j * tile(row0) + r - row0;
    }
};

// How many lines so many vectors of S fill.
template <class T, class S> constexpr int lines_of(int vectors) {
    return most<int>(1, vectors * W<T> * static_cast<int>(sizeof(S)) / static_cast<int>(Ahead::line));
}

// Independent sums that keep the multipliers busy, and fill whole vectors when each is summed over its lanes.
template <class T> constexpr int row_sums = most(8, W<T>);

// p[j][r] = row r · key j, for the keys from `first` on, as many as fill the sums. Past the last key: the last one
// again.
template <class T, class S, int R>
HW_INLINE void dot_rows(T *p, const T *q, const char *const *k, int64_t d_k, int64_t first, int64_t last,
                        Ahead &ahead) {
    constexpr int KT = row_sums<T> / R;
    const char *key[2 * KT]; // those that follow, too, where they are asked for
    HW_EACH(j, 0, KT) key[j] = k[least(first + j, last)];
    if (ahead.into_first_level)
        HW_EACH(j, KT, 2 * KT) key[j] = k[least(first + j, last)];
    Vec<T> sum[row_sums<T>] = {};
    for (int64_t c = 0; c < d_k; c += W<T>) {
        const int64_t byte = c * static_cast<int64_t>(sizeof(S));
        ahead.fetch_from_afar<lines_of<T, S>(KT)>();
        if (byte % Ahead::line == 0)
            HW_EACH(j, 0, KT) ahead.fetch_again<1>(key[KT + j] + byte);
        Vec<T> part[KT];
        HW_EACH(j, 0, KT) part[j] = load_as<T, S>(key[j] + byte);
        HW_EACH(r, 0, R) {
            Vec<T> query = load<T>(q + r * d_k + c);
            hold(query);
            HW_EACH(j, 0, KT) sum[j * R + r] += query * part[j];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < row_sums<T>; i += W<T>) {
        Vec<T> some[W<T>];
        HW_EACH(n, 0, W<T>) some[n] = sum[i + n];
        sum_each<T>(some);
        store<T>(p + first * R + i, some[0]);
    }
}

template <class T, class S, int R> void score_rows(const RowBlock<T> &block, int row0, int64_t keys, Ahead ahead) {
    constexpr int KT = row_sums<T> / R;
    const T *const q = block.q + row0 * block.d_k;
    for (int64_t j = 0; j < keys; j += KT)
        dot_rows<T, S, R>(block.p + row0 * word, q, block.k, block.d_k, j, keys - 1, ahead);
}

// o[r] += Σ_j p[j][r] · v[j] for R rows and CV vectors of columns
template <class T, class S, int R, int CV>
HW_INLINE void mix_rows_tile(T *o, int64_t d_v, const T *p, const char *const *v, int64_t at, int64_t keys,
                             Ahead &ahead) {
    Vec<T> sum[R][CV] = {};
#pragma GCC unroll 2
    for (int64_t j = 0; j < keys; ++j) {
        ahead.fetch_from_afar<lines_of<T, S>(CV)>();
        ahead.fetch_again<lines_of<T, S>(CV)>(v[least(j + 4, keys - 1)] + at);
        Vec<T> value[CV];
        HW_EACH(c, 0, CV) value[c] = load_as<T, S>(v[j] + at + c * W<T> * static_cast<int64_t>(sizeof(S)));
        HW_EACH(r, 0, R)
            HW_EACH(c, 0, CV) sum[r][c] += value[c] * p[j * R + r];
    }
    HW_EACH(r, 0, R)
        HW_EACH(c, 0, CV) add_to<T>(o + r * d_v + c * W<T>, sum[r][c]);
}

// As many columns at once as there are registers for, then half as many for those that are left, down to one vector.
template <class T, class S, int R, int CV>
HW_INLINE void mix_columns(T *o, const RowBlock<T> &block, int row0, int64_t keys, int64_t c, Ahead &ahead) {
    for (; c + CV * W<T> <= block.d_v; c += CV * W<T>)
        mix_rows_tile<T, S, R, CV>(o + c, block.d_v, block.p + row0 * word, block.v,
                                   c * static_cast<int64_t>(sizeof(S)), keys, ahead);
    if constexpr (CV > 1) mix_columns<T, S, R, CV / 2>(o, block, row0, keys, c, ahead);
}

template <class T, class S, int R> void mix_rows(T *o, const RowBlock<T> &block, int row0, int64_t keys, Ahead ahead) {
    mix_columns<T, S, R, row_sums<T> / R>(o + row0 * block.d_v, block, row0, keys, 0, ahead);
}

// The same where a value is not finite and some row may not read it: only the rows that may do.
template <class T, class S> void mix_rows_hidden(T *o, const RowBlock<T> &block, int64_t keys) {
    for (int r = 0; r < block.rows; ++r)
        for (int64_t c = 0; c < block.d_v; c += W<T>) {
            Vec<T> sum{};
            for (int64_t j = 0; j < keys; ++j)
                if (block.seen[r] >> j & 1)
                    sum += load_as<T, S>(block.v[j] + c * static_cast<int64_t>(sizeof(S))) * *block.place(r, j);
            add_to<T>(o + r * block.d_v + c, sum);
        }
}

template <class T, class S> bool values_finite(const RowBlock<T> &block, int64_t keys) {
    bool finite = true;
    if (block.call->v_scales.data) finite = all_finite<T>(block.v_scale, keys);
    if constexpr (!__is_same(S, int8_t))
        for (int64_t j = 0; j < keys; ++j) finite = finite && all_finite<T, S>(block.v[j], 0, 1, block.d_v);
    return finite;
}

// p[j][r] ·= scale[j]: scores by those of the keys, weights by those of the values.
template <class T, int R> void scale_rows(const RowBlock<T> &block, int row0, const T *scale, int64_t keys) {
    T *const p = block.p + row0 * word;
    for (int64_t j = 0; j < keys; ++j)
        for (int r = 0; r < R; ++r) p[j * R + r] *= scale[j];
}

template <class T, int R> void cap_rows(const RowBlock<T> &block, int row0) {
    const T cap = cap_in_powers<T>(block.call->softcap);
    T *const s = block.p + row0 * word;
    for (int64_t i = 0; i < R * word; i += W<T>) store<T>(s + i, capped<T>(load<T>(s + i), cap));
}

// Which of the 32 keys from `start` on each row may read by its range and a Boolean mask; false where it is none.
template <class T> bool see_rows(RowBlock<T> &block, int64_t start, int64_t keys) {
    const hw_array &mask = block.call->mask;
    uint32_t some = 0;
    for (int r = 0; r < block.rows; ++r) {
        const Lane &lane = block.lane[r];
        block.seen[r] = range_word(lane.first, lane.last, start) & range_word(0, keys, 0);
        if (lane.mask && mask.type == HW_BOOL)
            block.seen[r] &= mask_word(lane.mask + start * mask.column, mask.column, keys);
        some |= block.seen[r];
    }
    return some != 0;
}

// What a mask does to the 32 scores of a row from key `start` on; hidden ones become −∞.
template <class T> void adjust_row(RowBlock<T> &block, const Group &group, int r, int64_t start, int64_t keys) {
    const hw_attention &call = *block.call;
    const Lane &lane = block.lane[r];
    uint32_t seen = block.seen[r];
    if (is_biased(call)) {
        const bool masked = has_additive_mask(call);
        T row[word] = {};
        for (int64_t j = 0; j < keys && masked; ++j)
            row[j] = read_bias<T>(call.mask, lane.mask + (start + j) * call.mask.column);
        if (has_distances(call)) Distances<T>(group, lane).add(row, start, keys);
        for (int64_t j = 0; j < keys; ++j) {
            const T added = row[j];
            *block.place(r, j) += bias_in_powers<T>(added);
            if (added == -infinity<T>) seen &= ~(uint32_t(1) << j);
        }
    }
    block.seen[r] = seen;
    if (seen == every_bit) return;
    for (int64_t j = 0; j < word; ++j)
        if (!(seen >> j & 1)) *block.place(r, j) = -infinity<T>;
}

// Every second, every fourth … lane holds the same row: their largest, or their sum, in all of them.
template <class T, int R, int step = W<T> / 2, class Join> HW_INLINE Vec<T> join_lanes(Vec<T> v, Join join) {
    if constexpr (step < R) return v;
    else {
        Vec<T> low = v, high = v;
        swap_pieces<T, step>(low, high, std::make_integer_sequence<int, W<T>>{});
        return join_lanes<T, R, step / 2>(join(low, high), join);
    }
}

// Scores to weights, R rows at a time; the sums so far are scaled down when the largest score rises.
template <class T, int R> void weigh_rows(RowState<T> state, const RowBlock<T> &block, int row0, int64_t d_v) {
    T *const s = block.p + row0 * word;
    T tops[W<T>], sums[W<T>], factors[W<T>];
    for (int i = 0; i < W<T>; ++i) tops[i] = state.top[row0 + i % R], sums[i] = state.sum[row0 + i % R];
    const Vec<T> old = load<T>(tops);
    Vec<T> high = old, sum{};
    for (int64_t i = 0; i < R * word; i += W<T>) high = larger<T>(load<T>(s + i), high);
    const Vec<T> top = join_lanes<T, R>(high, [](Vec<T> a, Vec<T> b) { return larger<T>(a, b); });
    const IVec<T> none = top == -infinity<T>;
    const Vec<T> factor = none ? splat<T>(1) : exp2<T>(old - top);
    for (int64_t i = 0; i < R * word; i += W<T>) {
        const Vec<T> p = none ? Vec<T>{} : exp2<T>(load<T>(s + i) - top);
        store<T>(s + i, p);
        sum += p;
    }
    sum = join_lanes<T, R>(sum, [](Vec<T> a, Vec<T> b) { return a + b; });
    store<T>(tops, top);
    store<T>(sums, load<T>(sums) * factor + sum);
    store<T>(factors, factor);
    for (int r = 0; r < R; ++r) {
        // Keys to read, and all their scores −∞: an overflow, which the careful path sorts out.
        const bool lost = tops[r] == -infinity<T> && block.seen[row0 + r];
        state.top[row0 + r] = tops[r];
        state.sum[row0 + r] = lost ? static_cast<T>(__builtin_nan("")) : sums[r];
        T *const o = state.o + (row0 + r) * d_v;
        if (factors[r] != 1)
            for (int64_t c = 0; c < d_v; c += W<T>) store<T>(o + c, load<T>(o + c) * factors[r]);
    }
}

// Calls body with 1, 2 or 4 as a constant, and the first row, for every tile of rows.
template <class T, class Body> HW_INLINE void each_tile(const RowBlock<T> &block, Body body) {
    for (int row0 = 0; row0 < block.rows; row0 += row_tile<T>) {
        const int rows = block.tile(row0);
        if (rows == 1) body.template operator()<1>(row0);
        else if (rows == 2) body.template operator()<2>(row0);
        else if constexpr (row_tile<T> == 4) body.template operator()<4>(row0);
    }
}

// Whether rows can be read where they lie: as whole vectors.
template <class T> bool reads_whole(const hw_array &array, int64_t width) {
    return array.column == bytes_of(array.type) && width % W<T> == 0;
}

// Calls body with the type that keys or values are read as: the caller's, or T where they are copied first.
template <class T, class Body> HW_INLINE void with_read_type(const hw_array &array, int64_t width, Body body) {
    if (reads_whole<T>(array, width)) with_cached_type<T>(array.type, body);
    else body(Stored<T>{});
}

// list[j] = where row start + j lies, or its copy.
template <class T>
void list_rows(const char **list, const KeyRows &rows, const hw_array &array, int64_t width, T *copy, int64_t start,
               int64_t count) {
    const bool whole = reads_whole<T>(array, width);
    const int64_t padded = (width + W<T> - 1) / W<T> * W<T>;
    rows.stretches(start, count, [&](int64_t i, const char *from, int64_t n) {
        for (int64_t j = 0; j < n && whole; ++j) list[i + j] = from + j * rows.row;
        for (int64_t j = 0; j < n && !whole; ++j) {
            T *const to = copy + (i + j) * padded;
            with_cached_type<T>(array.type, [&](auto stored) {
                read_row<T, typename decltype(stored)::Type>(to, from + j * rows.row, array.column, width);
            });
            list[i + j] = reinterpret_cast<const char *>(to);
        }
    });
}

template <class T> void list_scales(T *scale, const KeyRows &rows, int64_t start, int64_t count) {
    rows.stretches(start, count, [&](int64_t i, const char *from, int64_t n) {
        for (int64_t j = 0; j < n; ++j) {
            float x;
            __builtin_memcpy(&x, from + j * rows.row, sizeof x);
            scale[i + j] = x;
        }
    });
}

// What to ask for ahead: the rows of `list`, one after another unless there are blocks.
HW_INLINE Ahead ahead_of(const hw_attention &call, const char *const *list, const hw_array &array, int64_t width,
                         int64_t count) {
    const int64_t bytes = width * bytes_of(array.type);
    return call.block_table ? Ahead(list, bytes, count) : Ahead(*list, array.row, bytes, count);
}

// The keys, values and scales of a group.
struct CachedRows {
    KeyRows k, v, k_scales, v_scales;
    explicit CachedRows(const Group &group)
        : k(group.rows_of(group.call->k)), v(group.rows_of(group.call->v)),
          k_scales(group.rows_of(group.call->k_scales)), v_scales(group.rows_of(group.call->v_scales)) {}
};

// Some keys, 32 at most, of the group being worked or of another one.
struct SomeKeys {
    KeyRows rows;
    int64_t start, count;
};

// The keys [start, start + keys) of a group, 32 at most, before those that are worked `then`, which may be none.
// block.k lists the keys, and is left with those that follow.
template <class T>
void work_rows(RowState<T> state, RowBlock<T> &block, const Group &group, const CachedRows &rows, int64_t start,
               int64_t keys, const SomeKeys &then) {
    const hw_attention &call = *block.call;
    const auto list_next = [&] {
        if (then.count) list_rows<T>(block.k, then.rows, call.k, call.d_k, block.k_copy, then.start, then.count);
    };
    if (!see_rows(block, start, keys)) return list_next(); // these keys and values need not come from memory
    list_rows<T>(block.v, rows.v, call.v, call.d_v, block.v_copy, start, keys);
    const Ahead values = ahead_of(call, block.v, call.v, call.d_v, keys);
    with_read_type<T>(call.k, call.d_k, [&](auto stored) {
        using K = typename decltype(stored)::Type;
        each_tile(block, [&]<int R>(int row0) { score_rows<T, K, R>(block, row0, keys, values); });
    });
    if (call.k_scales.data) {
        list_scales<T>(block.k_scale, rows.k_scales, start, keys);
        each_tile(block, [&]<int R>(int row0) { scale_rows<T, R>(block, row0, block.k_scale, keys); });
    }
    const uint32_t whole = range_word(0, keys, 0);
    bool hidden = false;
    if (call.softcap > 0) each_tile(block, [&]<int R>(int row0) { cap_rows<T, R>(block, row0); });
    for (int r = 0; r < block.rows; ++r) {
        adjust_row(block, group, r, start, keys);
        hidden = hidden || block.seen[r] != whole;
    }
    each_tile(block, [&]<int R>(int row0) { weigh_rows<T, R>(state, block, row0, block.d_v); });
    if (call.v_scales.data) {
        list_scales<T>(block.v_scale, rows.v_scales, start, keys);
        each_tile(block, [&]<int R>(int row0) { scale_rows<T, R>(block, row0, block.v_scale, keys); });
    }
    list_next();
    const Ahead next = ahead_of(call, block.k, call.k, call.d_k, then.count ? then.count : keys);
    with_read_type<T>(call.v, call.d_v, [&](auto stored) {
        using V = typename decltype(stored)::Type;
        if (hidden && !values_finite<T, V>(block, keys)) return mix_rows_hidden<T, V>(state.o, block, keys);
        each_tile(block, [&]<int R>(int row0) { mix_rows<T, V, R>(state.o, block, row0, keys, next); });
    });
}

} // namespace headwork::HW_CPU
#endif
