// Few queries on many keys (decoding): a handful of rows cannot fill the lanes, so here the lanes run along d, keys and
// values are read as vectors, once, and the speed is that of memory. Rows are the queries of every head of a group.
#ifndef HEADWORK_KERNEL_ROWS_H
#define HEADWORK_KERNEL_ROWS_H

#include "exp2.h"
#include "visible.h"

namespace headwork::HW_CPU {

constexpr int64_t max_rows = 8;
constexpr int row_tile = 4;

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
    T *q;                   // rows × d_k, times scale · log2 e
    T *dots;                // rows × 32 keys × one vector, to be summed over its lanes
    T (*p)[word];           // rows × 32 keys: scores, then weights
    uint32_t seen[max_rows]; // bits of the 32 keys each row may read
};

// Asks for the block after this one, a line for every few products, in the order of memory: without it memory waits for
// arithmetic, and asked for column by column it comes at two thirds of the speed.
struct Ahead {
    const char *line;
    int64_t between, lines, in_row, left; // bytes from the end of a row to the next; lines of 64 bytes in a row

    Ahead(const char *from, int64_t row, int64_t bytes, int64_t rows) : line(from) {
        in_row = lines = (bytes + 63) / 64;
        between = row - lines * 64;
        left = rows * lines;
    }

    HW_INLINE void fetch() {
        if (left <= 0) return;
        __builtin_prefetch(line, 0, 3);
        line += 64;
        --left;
        if (--in_row > 0) return;
        in_row = lines;
        line += between;
    }
};

// dots[r][j] = the products of row r and key j, summed lane by lane.
template <class T, class S, int R, int KT>
HW_INLINE void dot_rows(T *dots, const T *q, const char *k, int64_t k_row, int64_t d_k, Ahead &ahead) {
    Vec<T> sum[R][KT] = {};
    for (int64_t c = 0; c < d_k; c += W<T>) {
        ahead.fetch();
        Vec<T> key[KT];
        HW_UNROLL for (int j = 0; j < KT; ++j) key[j] = load_as<T, S>(k + j * k_row + c * sizeof(S));
        HW_UNROLL for (int r = 0; r < R; ++r) {
            Vec<T> query = load<T>(q + r * d_k + c);
            hold(query);
            HW_UNROLL for (int j = 0; j < KT; ++j) sum[r][j] += query * key[j];
        }
    }
    HW_UNROLL for (int r = 0; r < R; ++r)
        HW_UNROLL for (int j = 0; j < KT; ++j) store<T>(dots + (r * word + j) * W<T>, sum[r][j]);
}

template <class T, class S, int R>
void score_rows(const RowBlock<T> &block, int row0, const char *k, int64_t keys, Ahead ahead) {
    constexpr int KT = R == 1 ? 8 : R == 2 ? 4 : 2;
    const hw_attention &call = *block.call;
    const T *q = block.q + row0 * call.d_k;
    T *const dots = block.dots + row0 * word * W<T>;
    int64_t j = 0;
    for (; j + KT <= keys; j += KT)
        dot_rows<T, S, R, KT>(dots + j * W<T>, q, k + j * call.k.row, call.k.row, call.d_k, ahead);
    for (; j < keys; ++j) dot_rows<T, S, R, 1>(dots + j * W<T>, q, k + j * call.k.row, call.k.row, call.d_k, ahead);
    for (int r = 0; r < R; ++r)
        for (int64_t i = 0; i < word; i += W<T>) {
            Vec<T> part[W<T>], sum{};
            HW_UNROLL for (int n = 0; n < W<T>; ++n) part[n] = load<T>(dots + (r * word + i + n) * W<T>);
            transpose<T>(part);
            HW_UNROLL for (int n = 0; n < W<T>; ++n) sum += part[n];
            store<T>(block.p[row0 + r] + i, sum);
        }
}

// o[r] += Σ_j p[r][j] · v[j] for R rows and CV vectors of columns
template <class T, class S, int R, int CV>
HW_INLINE void mix_rows_tile(T *o, int64_t d_v, const T (*p)[word], const char *v, int64_t v_row, int64_t keys, Ahead &ahead) {
    Vec<T> sum[R][CV] = {};
    for (int64_t j = 0; j < keys; ++j) {
        const char *row = v + j * v_row;
        ahead.fetch();
        Vec<T> value[CV];
        HW_UNROLL for (int c = 0; c < CV; ++c) value[c] = load_as<T, S>(row + c * W<T> * sizeof(S));
        HW_UNROLL for (int r = 0; r < R; ++r)
            HW_UNROLL for (int c = 0; c < CV; ++c) sum[r][c] += value[c] * p[r][j];
    }
    HW_UNROLL for (int r = 0; r < R; ++r)
        HW_UNROLL for (int c = 0; c < CV; ++c) add_to<T>(o + r * d_v + c * W<T>, sum[r][c]);
}

template <class T, class S, int R>
void mix_rows(T *o, const RowBlock<T> &block, int row0, const char *v, int64_t keys, Ahead ahead) {
    constexpr int CV = R == 1 ? 8 : R == 2 ? 4 : 2;
    const hw_attention &call = *block.call;
    int64_t c = 0;
    for (; c + CV * W<T> <= call.d_v; c += CV * W<T>)
        mix_rows_tile<T, S, R, CV>(o + row0 * call.d_v + c, call.d_v, block.p + row0, v + c * sizeof(S), call.v.row, keys, ahead);
    for (; c < call.d_v; c += W<T>)
        mix_rows_tile<T, S, R, 1>(o + row0 * call.d_v + c, call.d_v, block.p + row0, v + c * sizeof(S), call.v.row, keys, ahead);
}

// The same where a value is not finite and some row may not read it: only the rows that may do.
template <class T, class S> void mix_rows_hidden(T *o, const RowBlock<T> &block, const char *v, int64_t keys) {
    const hw_attention &call = *block.call;
    for (int r = 0; r < block.rows; ++r)
        for (int64_t c = 0; c < call.d_v; c += W<T>) {
            Vec<T> sum{};
            for (int64_t j = 0; j < keys; ++j)
                if (block.seen[r] >> j & 1) sum += load_as<T, S>(v + j * call.v.row + c * sizeof(S)) * block.p[r][j];
            add_to<T>(o + r * call.d_v + c, sum);
        }
}

template <class T, class S> bool finite_rows(const char *v, int64_t v_row, int64_t keys, int64_t d_v) {
    Vec<T> sum{};
    for (int64_t j = 0; j < keys; ++j)
        for (int64_t c = 0; c < d_v; c += W<T>) sum += load_as<T, S>(v + j * v_row + c * sizeof(S)) * T(0);
    return !any<T>(sum != sum);
}

// What softcap and mask do to the 32 scores of a row from key `start` on; hidden ones become −∞.
template <class T> void adjust_row(RowBlock<T> &block, int r, int64_t start, int64_t keys) {
    const hw_attention &call = *block.call;
    const Lane &lane = block.lane[r];
    T *const s = block.p[r];
    uint32_t seen = range_word(lane.first, lane.last, start) & range_word(0, keys, 0);
    const T cap = static_cast<T>(call.softcap * 1.4426950408889634074);
    if (cap > 0)
        for (int64_t i = 0; i < word; i += W<T>) store<T>(s + i, tanh<T>(load<T>(s + i) / cap) * cap);
    if (lane.mask && call.mask.type == HW_BOOL) {
        seen &= mask_word(lane.mask + start * call.mask.column, call.mask.column, keys);
    } else if (lane.mask) {
        for (int64_t j = 0; j < keys; ++j) {
            const T added = read_bias<T>(call.mask, lane.mask + (start + j) * call.mask.column);
            s[j] += added * static_cast<T>(1.4426950408889634074);
            if (added == -infinity<T>) seen &= ~(uint32_t(1) << j);
        }
    }
    block.seen[r] = seen;
    if (seen == every_bit) return;
    for (int64_t j = 0; j < word; ++j)
        if (!(seen >> j & 1)) s[j] = -infinity<T>;
}

// Scores to weights; the sums so far are scaled down when the largest score rises.
template <class T> void weigh_row(RowState<T> state, const RowBlock<T> &block, int r, int64_t d_v) {
    T *const s = block.p[r];
    Vec<T> high = load<T>(s);
    for (int64_t i = W<T>; i < word; i += W<T>) high = larger<T>(load<T>(s + i), high);
    T top = state.top[r];
    for (int i = 0; i < W<T>; ++i) top = high[i] > top ? high[i] : top;
    if (top == -infinity<T>) {
        for (int64_t i = 0; i < word; i += W<T>) store<T>(s + i, Vec<T>{});
        // Keys to read, and all their scores −∞: an overflow, which the careful path sorts out.
        if (block.seen[r]) state.sum[r] = static_cast<T>(__builtin_nan(""));
        return;
    }
    const T factor = exp2<T>(splat<T>(state.top[r] - top))[0];
    if (factor != 1)
        for (int64_t c = 0; c < d_v; c += W<T>) store<T>(state.o + r * d_v + c, load<T>(state.o + r * d_v + c) * factor);
    Vec<T> sum{};
    for (int64_t i = 0; i < word; i += W<T>) {
        const Vec<T> p = exp2<T>(load<T>(s + i) - top);
        store<T>(s + i, p);
        sum += p;
    }
    state.top[r] = top;
    state.sum[r] = state.sum[r] * factor + total<T>(sum);
}

// Calls body with 1 … 4 as a constant.
template <class Body> HW_INLINE void with_rows(int rows, Body body) {
    switch (rows) {
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 3: return body.template operator()<3>();
    default: return body.template operator()<4>();
    }
}

// The keys [start, start + keys) of a group, 32 at most; `more` if the block after them will be worked too.
template <class T, class K, class V>
void work_rows(RowState<T> state, RowBlock<T> &block, const Group &group, int64_t start, int64_t keys, bool more) {
    const hw_attention &call = *block.call;
    const char *k = group.k + start * call.k.row, *v = group.v + start * call.v.row;
    const auto ahead = [&](const char *from, const hw_array &array, int64_t bytes, int row0) {
        return Ahead(from + word * array.row, array.row, bytes, more && row0 == 0 ? word : 0);
    };
    for (int r = 0; r < block.rows; r += row_tile)
        with_rows(least(row_tile, block.rows - r), [&]<int R>() {
            score_rows<T, K, R>(block, r, k, keys, ahead(k, call.k, call.d_k * sizeof(K), r));
        });
    const uint32_t whole = range_word(0, keys, 0);
    bool hidden = false;
    for (int r = 0; r < block.rows; ++r) {
        adjust_row(block, r, start, keys);
        weigh_row(state, block, r, call.d_v);
        hidden = hidden || block.seen[r] != whole;
    }
    if (hidden && !finite_rows<T, V>(v, call.v.row, keys, call.d_v)) return mix_rows_hidden<T, V>(state.o, block, v, keys);
    for (int r = 0; r < block.rows; r += row_tile)
        with_rows(least(row_tile, block.rows - r), [&]<int R>() {
            mix_rows<T, V, R>(state.o, block, r, v, keys, ahead(v, call.v, call.d_v * sizeof(V), r));
        });
}

} // namespace headwork::HW_CPU
#endif
