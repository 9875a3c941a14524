// Flash-decoding, split over keys: a call worked row by row, few queries on many keys, its parts combined at the end.
#ifndef HEADWORK_KERNEL_DECODE_SPLIT_KEYS_H
#define HEADWORK_KERNEL_DECODE_SPLIT_KEYS_H

#include "decode_microkernel.h"
#include "epilogue.h"
#include "merge.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

constexpr int64_t few_groups = 256; // with fewer than these, the keys are cut, whatever the number of threads
constexpr int64_t least_row_part = 512;

// What the panels do not read: a block table, scales, 8-bit numbers.
inline bool is_cached(const hw_attention &of) {
    return of.block_table || of.k_scales.data || of.v_scales.data || is_eight_bit(of.k.type) || is_eight_bit(of.v.type);
}

// The most tokens that a batch item has.
inline int64_t most_tokens(const hw_attention &of) {
    int64_t tokens = of.spans ? 0 : of.tokens;
    for (int64_t b = 0, items = of.spans ? batch_items(of) : 0; b < items; ++b)
        tokens = most(tokens, of.spans[b].tokens);
    return tokens;
}

// Few queries in every batch item, and keys and values that can be read as whole vectors.
template <class T> bool suits_rows(const hw_attention &of) {
    if (is_cached(of)) return true;
    // A log-sum-exp finer than the sums is for gradients, which work the scores out again as panels do, to the last
    // bit.
    if (of.lse.data && of.lse.type == HW_FLOAT64 && sizeof(T) == 4) return false;
    return most_tokens(of) * (of.heads / of.kv_heads) <= max_rows && reads_whole<T>(of.k, of.d_k) &&
           reads_whole<T>(of.v, of.d_v) && !of.weights.data && !(of.dropout > 0) && !of.blocks.data;
}

template <class T> struct RowCall {
    const hw_attention &of;
    int64_t lanes = most_tokens(of) * (of.heads / of.kv_heads);
    int64_t chunks = (lanes + max_rows - 1) / max_rows; // of rows, each of which reads the keys anew
    int64_t groups = batch_items(of) * of.kv_heads * chunks;
    int64_t parts =
        groups == 0 ? 1 : most<int64_t>(1, least((few_groups + groups - 1) / groups, of.keys / least_row_part));
    int64_t d_k = (of.d_k + W<T> - 1) / W<T> * W<T>, d_v = (of.d_v + W<T> - 1) / W<T> * W<T>; // in whole vectors
    Team<T> team{groups * parts, parts, RowState<T>::size(d_v)};
};

template <class T> struct RowWorker {
    RowCall<T> &call;
    const hw_attention &of = call.of;
    RowBlock<T> block{};
    T *memory_of_state = nullptr;
    typename Shape<T>::Wider *wide = nullptr;
    Aside<T> aside{};

    int64_t carve(char *memory) {
        Carve from{memory};
        block.call = &of;
        block.d_k = call.d_k;
        block.d_v = call.d_v;
        block.q = from.take<T>(max_rows * call.d_k);
        block.p = from.take<T>(max_rows * word);
        memory_of_state = from.take<T>(RowState<T>::size(call.d_v));
        block.k_copy = from.take<T>(reads_whole<T>(of.k, of.d_k) ? 0 : word * call.d_k);
        block.v_copy = from.take<T>(reads_whole<T>(of.v, of.d_v) ? 0 : word * call.d_v);
        wide = from.take<typename Shape<T>::Wider>(of.d_v);
        aside.carve(from, of, max_rows);
        return from.used;
    }

    // While the last keys of an item are worked, the first of the next one come from memory.
    void work(int64_t index, int64_t upcoming) {
        const Item item = item_at(index, block.lane);
        const Group &group = item.group;
        T *const memory = call.parts > 1 ? call.team.state(item.result, item.part) : memory_of_state;
        const RowState<T> state(memory, call.d_v);
        begin(item, memory, state);
        const CachedRows rows(group);
        const SomeKeys after = first_keys(upcoming);
        const int64_t last = item.last;
        if (item.first < last)
            list_rows<T>(block.k, rows.k, of.k, of.d_k, block.k_copy, item.first, least(word, last - item.first));
        for (int64_t start = item.first; start < last; start += word) {
            const int64_t next = start + word;
            work_rows<T>(state, block, group, rows, start, least(word, last - start),
                         next < last ? SomeKeys{rows.k, next, least(word, last - next)} : after);
        }
        if (call.parts == 1) return finish(group, state);
        if (!call.team.last_of(item.result)) return;
        const RowState<T> sum(call.team.state(item.result, 0), call.d_v);
        for (int64_t other = 1; other < call.parts; ++other)
            add(sum, RowState<T>(call.team.state(item.result, other), call.d_v));
        finish(group, sum);
    }

  private:
    // Some rows of a group, and the keys [first, last) of it that they read.
    struct Item {
        Group group;
        int64_t result, part, rows, first, last;
    };

    Item item_at(int64_t index, Lane *lanes) const {
        const int64_t result = index / call.parts, part = index % call.parts;
        const int64_t chunk = result % call.chunks, kv_head = result / call.chunks % of.kv_heads;
        const Group group(of, result / (call.chunks * of.kv_heads), kv_head);
        const int64_t rows = most<int64_t>(0, least(max_rows, group.lanes - chunk * max_rows));
        group.lanes_from(lanes, chunk * max_rows, rows);
        int64_t first = group.span.keys, last = 0;
        for (int64_t r = 0; r < rows; ++r) {
            if (lanes[r].first == lanes[r].last) continue;
            first = least(first, lanes[r].first);
            last = most(last, lanes[r].last);
        }
        const int64_t each = ((group.span.keys + call.parts - 1) / call.parts + word - 1) / word * word;
        return {group, result, part, rows, most(first / word * word, part * each), least(last, (part + 1) * each)};
    }

    // None where the item does not exist, or where keys are copied as they are listed.
    SomeKeys first_keys(int64_t index) const {
        if (index >= call.team.items || !reads_whole<T>(of.k, of.d_k)) return {};
        Lane lanes[max_rows];
        const Item item = item_at(index, lanes);
        return {item.group.rows_of(of.k), item.first, most<int64_t>(0, least(word, item.last - item.first))};
    }

    void begin(const Item &item, T *memory, RowState<T> state) {
        const T factor = static_cast<T>(of.scale * 1.4426950408889634074);
        block.rows = static_cast<int>(item.rows);
        for (int64_t i = 0; i < RowState<T>::size(call.d_v); ++i) memory[i] = 0;
        for (int64_t i = 0; i < max_rows * call.d_k; ++i) block.q[i] = 0;
        for (int r = 0; r < block.rows; ++r) {
            state.top[r] = -infinity<T>;
            T *const q = block.q + r * call.d_k;
            with_type<T>(of.q.type, [&](auto stored) {
                read_row<T, typename decltype(stored)::Type>(q, block.lane[r].q, of.q.column, of.d_k);
            });
            for (int64_t c = 0; c < of.d_k; ++c) q[c] *= factor;
        }
    }

    // The rows of `state` += those of another part.
    void add(RowState<T> state, RowState<T> other) const {
        for (int r = 0; r < block.rows; ++r) {
            const T a = state.top[r], b = other.top[r], top = most(a, b);
            const T scale_a = a == -infinity<T> ? 0 : exp2<T>(splat<T>(a - top))[0];
            const T scale_b = b == -infinity<T> ? 0 : exp2<T>(splat<T>(b - top))[0];
            // A sum that is NaN says that a score overflowed, also where nothing else was read.
            const bool lost = state.sum[r] != state.sum[r] || other.sum[r] != other.sum[r];
            state.sum[r] = lost ? static_cast<T>(__builtin_nan("")) : state.sum[r] * scale_a + other.sum[r] * scale_b;
            state.top[r] = top;
            T *const o = state.o + r * call.d_v;
            const T *const added = other.o + r * call.d_v;
            for (int64_t c = 0; c < call.d_v; c += W<T>)
                store<T>(o + c, load<T>(o + c) * scale_a + load<T>(added + c) * scale_b);
        }
    }

    void finish(const Group &group, RowState<T> state) {
        const auto written = [&](const Group &where) { write(where, state); };
        of.merges ? aside.merge(block.lane, block.rows, group, written) : written(group);
    }

    void write(const Group &group, RowState<T> state) {
        const hw_array &out = group.call->out;
        for (int r = 0; r < block.rows; ++r) {
            const Lane &lane = block.lane[r];
            T *const o = state.o + r * call.d_v;
            if (of.sinks.data) {
                const T factor = join_sink<T>(sink_in_powers<T>(group, lane), state.top[r], state.sum[r]);
                for (int64_t c = 0; c < of.d_v && factor != 1; ++c) o[c] *= factor;
            }
            const T sum = state.sum[r], inverse = sum == 0 ? 0 : 1 / sum;
            bool odd = sum - sum != 0;
            for (int64_t c = 0; c < of.d_v; ++c) {
                o[c] *= inverse;
                odd = odd || o[c] - o[c] != 0;
            }
            const CarefulRow<T> careful{group, lane};
            if (odd || careful.is_unsure(state.top[r])) {
                careful.work(wide);
                continue;
            }
            with_type<T>(out.type, [&](auto stored) {
                write_row<T, typename decltype(stored)::Type>(lane.out, out.column, o, of.d_v);
            });
            if (lane.lse) write_lse<T>(group.call->lse, lane.lse, careful.log_sum(state.top[r], sum));
        }
    }
};

template <class T> int forward_in_rows(const hw_attention &of, int threads) {
    RowCall<T> call{of};
    if (!call.team.reserve(call.groups)) return 1;
    const double work = static_cast<double>(call.groups * least(call.lanes, max_rows)) *
                        static_cast<double>(of.keys * (of.d_k + of.d_v));
    return run_team<RowWorker<T>>(call, threads, work);
}

} // namespace headwork::HW_CPU
#endif
