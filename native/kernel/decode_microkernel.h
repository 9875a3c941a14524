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
    T *q;                    // rows × d_k, times scale · log2 e
    T *p;                    // for every tile of rows: 32 keys × its rows, scores, then weights
    uint32_t seen[max_rows]; // bits of the 32 keys each row may read

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
HW_INLINE void dot_rows(T *p, const T *q, const char *k, int64_t k_row, int64_t d_k, int64_t first, int64_t last,
                        Ahead &ahead) {
    constexpr int KT = row_sums<T> / R;
    const char *key[KT];
    HW_EACH(j, 0, KT) key[j] = k + least(first + j, last) * k_row;
    Vec<T> sum[row_sums<T>] = {};
    for (int64_t c = 0; c < d_k; c += W<T>) {
        ahead.fetch<lines_of<T, S>(KT)>();
        Vec<T> part[KT];
        HW_EACH(j, 0, KT) part[j] = load_as<T, S>(key[j] + c * static_cast<int64_t>(sizeof(S)));
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

template <class T, class S, int R>
void score_rows(const RowBlock<T> &block, int row0, const char *k, int64_t keys, Ahead ahead) {
    constexpr int KT = row_sums<T> / R;
    const hw_attention &call = *block.call;
    const T *const q = block.q + row0 * call.d_k;
    for (int64_t j = 0; j < keys; j += KT)
        dot_rows<T, S, R>(block.p + row0 * word, q, k, call.k.row, call.d_k, j, keys - 1, ahead);
}

// o[r] += Σ_j p[j][r] · v[j] for R rows and CV vectors of columns
template <class T, class S, int R, int CV>
HW_INLINE void mix_rows_tile(T *o, int64_t d_v, const T *p, const char *v, int64_t v_row, int64_t keys, Ahead &ahead) {
    Vec<T> sum[R][CV] = {};
#pragma GCC unroll 2
    for (int64_t j = 0; j < keys; ++j) {
        ahead.fetch<lines_of<T, S>(CV)>();
        Vec<T> value[CV];
        HW_EACH(c, 0, CV) value[c] = load_as<T, S>(v + j * v_row + c * W<T> * static_cast<int64_t>(sizeof(S)));
        HW_EACH(r, 0, R)
            HW_EACH(c, 0, CV) sum[r][c] += value[c] * p[j * R + r];
    }
    HW_EACH(r, 0, R)
        HW_EACH(c, 0, CV) add_to<T>(o + r * d_v + c * W<T>, sum[r][c]);
}

template <class T, class S, int R>
void mix_rows(T *o, const RowBlock<T> &block, int row0, const char *v, int64_t keys, Ahead ahead) {
    constexpr int CV = 8 / R;
    const hw_attention &call = *block.call;
    const int64_t d_v = call.d_v, size = sizeof(S);
    const T *const p = block.p + row0 * word;
    o += row0 * d_v;
    int64_t c = 0;
    for (; c + CV * W<T> <= d_v; c += CV * W<T>)
        mix_rows_tile<T, S, R, CV>(o + c, d_v, p, v + c * size, call.v.row, keys, ahead);
    for (; c < d_v; c += W<T>) mix_rows_tile<T, S, R, 1>(o + c, d_v, p, v + c * size, call.v.row, keys, ahead);
}

// The same where a value is not finite and some row may not read it: only the rows that may do.
template <class T, class S> void mix_rows_hidden(T *o, const RowBlock<T> &block, const char *v, int64_t keys) {
    const hw_attention &call = *block.call;
    for (int r = 0; r < block.rows; ++r)
        for (int64_t c = 0; c < call.d_v; c += W<T>) {
            Vec<T> sum{};
            for (int64_t j = 0; j < keys; ++j)
                if (block.seen[r] >> j & 1)
                    sum += load_as<T, S>(v + j * call.v.row + c * sizeof(S)) * *block.place(r, j);
            add_to<T>(o + r * call.d_v + c, sum);
        }
}

template <class T, int R> void cap_rows(const RowBlock<T> &block, int row0) {
    const T cap = cap_in_powers<T>(block.call->softcap);
    T *const s = block.p + row0 * word;
    for (int64_t i = 0; i < R * word; i += W<T>) store<T>(s + i, capped<T>(load<T>(s + i), cap));
}

// What a mask does to the 32 scores of a row from key `start` on; hidden ones become −∞.
template <class T> void adjust_row(RowBlock<T> &block, const Group &group, int r, int64_t start, int64_t keys) {
    const hw_attention &call = *block.call;
    const Lane &lane = block.lane[r];
    uint32_t seen = range_word(lane.first, lane.last, start) & range_word(0, keys, 0);
    if (lane.mask && call.mask.type == HW_BOOL) {
        seen &= mask_word(lane.mask + start * call.mask.column, call.mask.column, keys);
    }
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

// The keys [start, start + keys) of a group, 32 at most, while `after` keys follow.
template <class T, class K, class V>
void work_rows(RowState<T> state, RowBlock<T> &block, const Group &group, int64_t start, int64_t keys, int64_t after) {
    const hw_attention &call = *block.call;
    const int64_t k_bytes = call.d_k * static_cast<int64_t>(sizeof(K)),
                  v_bytes = call.d_v * static_cast<int64_t>(sizeof(V));
    const char *const k = group.k + start * call.k.row, *const v = group.v + start * call.v.row;
    const Ahead values(v, call.v.row, v_bytes, keys);
    each_tile(block, [&]<int R>(int row0) { score_rows<T, K, R>(block, row0, k, keys, values); });
    const uint32_t whole = range_word(0, keys, 0);
    bool hidden = false;
    if (call.softcap > 0) each_tile(block, [&]<int R>(int row0) { cap_rows<T, R>(block, row0); });
    for (int r = 0; r < block.rows; ++r) {
        adjust_row(block, group, r, start, keys);
        hidden = hidden || block.seen[r] != whole;
    }
    each_tile(block, [&]<int R>(int row0) { weigh_rows<T, R>(state, block, row0, call.d_v); });
    if (hidden && !all_finite<T, V>(v, call.v.row, keys, call.d_v))
        return mix_rows_hidden<T, V>(state.o, block, v, keys);
    const Ahead next(k + (after ? word : 0) * call.k.row, call.k.row, k_bytes, after ? least(word, after) : keys);
    each_tile(block, [&]<int R>(int row0) { mix_rows<T, V, R>(state.o, block, row0, v, keys, next); });
}

} // namespace headwork::HW_CPU
#endif
