// Operand packing of the backward pass: what it reads, laid out for its micro-kernel; the rows of some queries, and a
// block of keys and values.
#ifndef HEADWORK_KERNEL_BACKWARD_PACK_H
#define HEADWORK_KERNEL_BACKWARD_PACK_H

#include "backward_microkernel.h"
#include "finite.h"
#include "overflow_fallback.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

constexpr int64_t tile_keys = HW_BYTES == 64 ? 64 : 48, tile_rows = 96; // of one tile of scores, at most
template <class T> constexpr int64_t key_step = most<int64_t>(W<T>, row_step);

constexpr int64_t rounded(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Row r of a group is token r % tokens of its head r / tokens, so that neighbours read nearly the same keys.
template <class T> struct Queries {
    T *q, *dout;           // q times scale · log2 e
    T *lse, *rest;         // the log-sum-exp in powers of two, and what rounding to T left out of it
    T *only;               // where nothing but the lowest numbers of a mask is read: the largest of them; otherwise NaN
    T *delta, *out;        // delta = Σ dout·out − dlse; `out` is one row of scratch
    int64_t *first, *last; // the keys each may read
    const char **mask, **blocks; // rows of the mask and of the table of blocks
    RowKey *key;                 // of dropout
    Lane *lane;                  // where distances are counted
    int64_t count;
    bool finite, every; // every: each of them may read every key

    void carve(Carve &from, const hw_attention &call, int64_t rows) {
        const int64_t room = rows + row_step; // a tile may run past the last row: zeros there
        q = from.take<T>(room * rounded(call.d_k, W<T>));
        dout = from.take<T>(room * rounded(call.d_v, W<T>));
        lse = from.take<T>(room);
        rest = from.take<T>(room);
        only = from.take<T>(room);
        delta = from.take<T>(room);
        out = from.take<T>(rounded(call.d_v, W<T>));
        first = from.take<int64_t>(room);
        last = from.take<int64_t>(room);
        mask = from.take<const char *>(room);
        blocks = from.take<const char *>(room);
        key = from.take<RowKey>(call.dropout > 0 ? room : 0);
        lane = from.take<Lane>(has_distances(call) ? room : 0);
    }

    void read(const hw_gradients &of, const Group &group, int64_t item, int64_t from, int64_t rows) {
        const hw_attention &call = of.call;
        int64_t at[HW_BATCH_AXES];
        batch_place(call, item, at);
        const int64_t dout_at = batch_offset(of.dout, at), dlse_at = batch_offset(of.dlse, at);
        const int64_t delta_at = batch_offset(of.delta, at);
        const int64_t d_k = rounded(call.d_k, W<T>), d_v = rounded(call.d_v, W<T>);
        const T factor = static_cast<T>(call.scale * 1.4426950408889634074);
        count = rows;
        every = true;
        const Dropout<T> dropout(call);
        const bool distances = has_distances(call);
        const bool q_whole = whole_rows<T>(call.q, call.d_k), dout_whole = whole_rows<T>(of.dout, call.d_v);
        const bool out_whole = whole_rows<T>(call.out, call.d_v), slopes = !of.delta.data;
        // Until something that is not finite makes them NaN; two, as a sum waits for the one before it.
        Vec<T> zeros{}, more_zeros{};
        const int64_t tokens = most<int64_t>(1, group.span.tokens);
        int64_t head = from / tokens, token = from % tokens - 1;
        for (int64_t r = 0; r < rows; ++r) {
            if (++token == tokens) token = 0, ++head;
            const Lane here = group.lane(token, head);
            if (dropout.on) key[r] = dropout.key(group.item, here.head, token);
            if (distances) lane[r] = here;
            const int64_t row = group.span.token0 + token;
            T *const q_row = q + r * d_k, *const dout_row = dout + r * d_v;
            const T *const q_from = row_of(q_whole, q_row, call.q, here.q, call.d_k);
            // Scaled here and not in the keys, as in the forward pass: the same scores to the last bit.
            for (int64_t c = 0; c < d_k; c += W<T>) {
                const Vec<T> scaled = load<T>(q_from + c) * factor;
                store<T>(q_row + c, scaled);
                zeros += scaled * T(0);
            }
            const char *const dout_at_row = Group::place(of.dout, dout_at, group.head0 + head, row);
            const T *const dout_from = row_of(dout_whole, dout_row, of.dout, dout_at_row, call.d_v);
            const T *const out_from = slopes ? row_of(out_whole, out, call.out, here.out, call.d_v) : dout_from;
            Vec<T> sum{};
            for (int64_t c = 0; c < d_v; c += W<T>) {
                const Vec<T> upward = load<T>(dout_from + c);
                store<T>(dout_row + c, upward);
                more_zeros += upward * T(0);
                sum += load<T>(out_from + c) * upward;
            }
            delta[r] = total<T>(sum);
            if (!slopes)
                __builtin_memcpy(&delta[r], Group::place(of.delta, delta_at, group.head0 + head, row), sizeof *delta);
            T dlse = 0;
            if (of.dlse.data)
                __builtin_memcpy(&dlse, Group::place(of.dlse, dlse_at, group.head0 + head, row), sizeof dlse);
            const auto whole = read_lse<T>(call.lse, here.lse) * typename Shape<T>::Wider(1.4426950408889634074L);
            lse[r] = static_cast<T>(whole);
            rest[r] = whole - whole == 0 ? static_cast<T>(whole - lse[r]) : 0;
            only[r] = static_cast<T>(__builtin_nan(""));
            if (whole <= deep<T> && whole - whole == 0) see_deep(group, here, r);
            delta[r] -= dlse;
            first[r] = here.first;
            last[r] = here.last;
            mask[r] = here.mask;
            blocks[r] = here.blocks;
            every = every && here.first == 0 && here.last == group.span.keys;
        }
        zeros += more_zeros;
        finite = !any<T>(zeros != zeros);
        const int64_t past = row_step;
        for (int64_t i = 0; i < past * d_k; i += W<T>) store<T>(q + rows * d_k + i, Vec<T>{});
        for (int64_t i = 0; i < past * d_v; i += W<T>) store<T>(dout + rows * d_v + i, Vec<T>{});
        for (int64_t r = rows; r < rows + past; ++r)
            lse[r] = rest[r] = delta[r] = 0, only[r] = static_cast<T>(__builtin_nan("")), first[r] = last[r] = 0,
            mask[r] = blocks[r] = nullptr;
        for (int64_t r = rows; r < rows + past && dropout.on; ++r) key[r] = {};
    }

  private:
    // A row in whole vectors: where it lies, or a copy.
    static const T *row_of(bool whole, T *room, const hw_array &array, const char *from, int64_t width) {
        if (whole) return reinterpret_cast<const T *>(from);
        read_padded(room, array, from, width);
        return room;
    }

    // The log-sum-exp of such a row is the mask's number, without a trace of how many keys share it: they are counted.
    void see_deep(const Group &group, const Lane &here, int64_t r) {
        if (!is_biased(*group.call)) return;
        const CarefulRow<T> row{group, here};
        int64_t sharing = 0;
        T most_added = -infinity<T>;
        for (int64_t at = here.first; at < here.last; ++at) {
            const T added = static_cast<T>(row.bias(at));
            sharing = added > most_added ? 1 : sharing + (added == most_added);
            most_added = most(most_added, added);
        }
        if (bias_in_powers<T>(most_added) > deep<T>) return;
        only[r] = most_added;
        lse[r] = -largest<T>;
        rest[r] = static_cast<T>(log2l(static_cast<long double>(sharing)));
    }
};

template <class T> struct Keys {
    const T *k;             // rows, for the gradient of the queries: where they lie, or the copy
    T *k_turned, *v_turned; // d × keys for every so many vectors of keys as are worked at once
    T *k_copy, *v_copy;     // of rows that are no whole vectors side by side
    int64_t start, count, padded;
    bool finite;

    void carve(Carve &from, const hw_attention &call) {
        const int64_t d_k = rounded(call.d_k, W<T>), d_v = rounded(call.d_v, W<T>);
        k_copy = from.take<T>(tile_keys * d_k);
        v_copy = from.take<T>(tile_keys * d_v);
        k_turned = from.take<T>(tile_keys * d_k);
        v_turned = from.take<T>(tile_keys * d_v);
    }

    void read(const hw_attention &call, const Group &group, int64_t first, int64_t last) {
        const int64_t d_k = rounded(call.d_k, W<T>), d_v = rounded(call.d_v, W<T>);
        start = first;
        count = least(last, group.span.keys) - first;
        padded = rounded(count, key_step<T>);
        k = rows_of(k_copy, call.k, group.k, call.d_k, d_k);
        finite = all_finite(k, count * d_k);
        turn(k_turned, k, d_k);
        turn(v_turned, rows_of(v_copy, call.v, group.v, call.d_v, d_v), d_v);
    }

  private:
    const T *rows_of(T *room, const hw_array &array, const char *base, int64_t width, int64_t d) const {
        const char *const from = base + start * array.row;
        const bool side_by_side = array.row == d * static_cast<int64_t>(sizeof(T)); // others meet in the cache
        if (side_by_side && count == padded && whole_rows<T>(array, width)) return reinterpret_cast<const T *>(from);
        for (int64_t j = 0; j < count; ++j) read_padded(room + j * d, array, from + j * array.row, width);
        for (int64_t i = count * d; i < padded * d; i += W<T>) store<T>(room + i, Vec<T>{});
        return room;
    }

    void turn(T *to, const T *from, int64_t d) const {
        for (int64_t j = 0, width; j < padded; j += width) {
            width = vectors_at_once((padded - j) / W<T>) * W<T>;
            turn_rows(to + j * d, from + j * d, d, width, d);
        }
    }
};

// The cut of the keys into blocks, nearly alike: a last block of a few would cost nearly as much as a whole one.
template <class T> struct KeyBlocks {
    int64_t steps, count;
    explicit KeyBlocks(int64_t keys)
        : steps((keys + key_step<T> - 1) / key_step<T>), count((keys + tile_keys - 1) / tile_keys) {}
    int64_t start(int64_t block) const { return (steps / count * block + least(block, steps % count)) * key_step<T>; }
};

} // namespace headwork::HW_CPU
#endif
