// Main loop of the backward pass: the gradients of queries, keys and values. A worker holds a block of keys and their
// gradients still and passes the queries by; the gradient of the queries grows from block to block.
#ifndef HEADWORK_KERNEL_BACKWARD_MAINLOOP_H
#define HEADWORK_KERNEL_BACKWARD_MAINLOOP_H

#include "backward_softmax.h"
#include "prefetch.h"

namespace headwork::HW_CPU {

// With fewer key heads than these, the blocks of keys are dealt out to about as many items. Not to more: every one of
// them reads all the queries and has sums of its own for their gradients.
constexpr int64_t few_items = 8;

// The cut depends on the shapes alone, as the rounding depends on it: a part of a key head has every `parts`th block of
// keys, which causal order leaves balanced, and gradients of the queries of its own, added up in order at the end.
template <class T> struct BackwardCall {
    const hw_gradients &of;
    const hw_attention &call = of.call;
    int64_t rows = 0; // of the largest group
    double work = 0;
    Team<T> team{};

    explicit BackwardCall(const hw_gradients &gradients) : of(gradients) {
        const int64_t batch = batch_items(call), each = call.heads / call.kv_heads;
        for (int64_t b = 0; b < batch; ++b) {
            const hw_span span = span_of(call, b);
            rows = most(rows, span.tokens * each);
            work += static_cast<double>(span.tokens * call.heads) *
                    static_cast<double>(span.keys * (3 * call.d_k + 2 * call.d_v));
        }
        const int64_t groups = batch * call.kv_heads, blocks = (call.keys + tile_keys - 1) / tile_keys;
        team.parts = groups > 0 ? most<int64_t>(1, least((few_items + groups - 1) / groups, blocks / 2)) : 1;
        team.items = groups * team.parts;
        team.state_size = (rows + row_step) * rounded(call.d_k, W<T>);
    }
};

template <class T> struct BackwardWorker {
    BackwardCall<T> &shared;
    const hw_gradients &of = shared.of;
    const hw_attention &call = of.call;
    const int64_t d_k = rounded(call.d_k, W<T>), d_v = rounded(call.d_v, W<T>);
    Queries<T> queries{};
    Keys<T> keys{};
    Tile<T> tile{};
    T *dq = nullptr, *own_dq = nullptr, *dk = nullptr, *dv = nullptr;

    int64_t carve(char *memory) {
        Carve from{memory};
        queries.carve(from, call, shared.rows);
        keys.carve(from, call);
        tile.carve(from, call);
        own_dq = shared.team.parts == 1 ? from.take<T>(shared.team.state_size) : nullptr;
        dk = from.take<T>(tile_keys * d_k);
        dv = from.take<T>(tile_keys * d_v);
        return from.used;
    }

    // While an item is worked, what the next one reads comes from farther away.
    void work(int64_t index, int64_t upcoming) {
        const int64_t parts = shared.team.parts, part = index % parts, result = index / parts;
        const int64_t item = result / call.kv_heads, kv_head = result % call.kv_heads;
        constexpr T ln2 = static_cast<T>(0.69314718055994530942);
        const Group group(call, item, kv_head);
        tile.group = &group;
        int64_t at[HW_BATCH_AXES];
        batch_place(call, item, at);
        queries.read(of, group, item, 0, group.lanes);
        dq = own_dq ? own_dq : shared.team.state(result, part);
        clear(dq, (group.lanes + row_step) * d_k);
        const KeyBlocks<T> blocks(group.span.keys);
        for (int64_t block = part; block < blocks.count; block += parts) {
            keys.read(call, group, blocks.start(block), blocks.start(block + 1));
            if (block + parts >= blocks.count && upcoming < shared.team.items) ask_for(upcoming);
            work_block();
            const int64_t key = group.span.key0 + keys.start;
            write(of.dk, place(of.dk, at, kv_head, key), dk, d_k, call.d_k, keys.count,
                  ln2); // of queries that are scaled
            write(of.dv, place(of.dv, at, kv_head, key), dv, d_v, call.d_v, keys.count, 1);
        }
        if (parts > 1 && !shared.team.last_of(result)) return;
        finish_queries(group, at, result);
    }

    void ask_for(int64_t index) const {
        const int64_t result = index / shared.team.parts, item = result / call.kv_heads;
        const Group group(call, item, result % call.kv_heads);
        int64_t at[HW_BATCH_AXES];
        batch_place(call, item, at);
        const int64_t rows = least(group.span.tokens, tile_rows);
        for (int64_t head = 0; head < group.heads && head * rows < tile_rows; ++head) {
            const auto first = [&](const hw_array &array) {
                return place(array, at, group.head0 + head, group.span.token0);
            };
            ask_for_rows(call.q, first(call.q), call.d_k, rows);
            ask_for_rows(of.dout, first(of.dout), call.d_v, rows);
            ask_for_rows(call.out, first(call.out), call.d_v, rows);
        }
        const KeyBlocks<T> blocks(group.span.keys);
        const int64_t key0 = blocks.count ? blocks.start(index % shared.team.parts) : 0;
        const int64_t count = least(group.span.keys - key0, tile_keys);
        ask_for_rows(call.k, group.k + key0 * call.k.row, call.d_k, count);
        ask_for_rows(call.v, group.v + key0 * call.v.row, call.d_v, count);
    }

    void work_block() {
        clear(dk, keys.padded * d_k);
        clear(dv, keys.padded * d_v);
        for (int64_t from = 0; tile.next(queries, keys, from); from = tile.row0 + tile_rows) {
            if (!tile.work(queries, keys)) continue;
            tile.bend();
            if (tile.clean) add_tile();
            else add_visible();
        }
    }

    void add_tile() {
        const T *const q = queries.q + tile.row0 * d_k, *const dout = queries.dout + tile.row0 * d_v;
        const auto of_keys = [this](int64_t first, int64_t) { return Span{tile.first_row[first], tile.rows}; };
        const auto of_rows = [this](int64_t, int64_t last) { return Span{0, tile.last_key[last]}; };
        if (of.dv.data) add_product<T>(dv, d_v, keys.padded, d_v, {tile.p, 1, tile_keys}, dout, d_v, of_keys);
        if (of.dk.data) add_product<T>(dk, d_k, keys.padded, d_k, {tile.ds, 1, tile_keys}, q, d_k, of_keys);
        if (of.dq.data)
            add_product<T>(dq + tile.row0 * d_k, d_k, tile.rows, d_k, {tile.ds, tile_keys, 1}, keys.k, d_k, of_rows);
    }

    // The same where a row is not finite and some keys are hidden from some queries: 0 · NaN is not 0.
    void add_visible() {
        for (int64_t r = 0; r < tile.rows; ++r)
            for (int64_t j = 0; j < keys.count; ++j) {
                const T p = tile.p[r * tile_keys + j], ds = tile.ds[r * tile_keys + j];
                const int64_t row = tile.row0 + r;
                if (p == 0 && ds == 0) continue; // hidden; a weight that was dropped has a slope
                for (int64_t c = 0; c < d_v; ++c) dv[j * d_v + c] += p * queries.dout[row * d_v + c];
                for (int64_t c = 0; c < d_k; ++c) dk[j * d_k + c] += ds * queries.q[row * d_k + c];
                for (int64_t c = 0; c < d_k; ++c) dq[row * d_k + c] += ds * keys.k[j * d_k + c];
            }
    }

    void finish_queries(const Group &group, const int64_t (&at)[HW_BATCH_AXES], int64_t result) {
        if (!of.dq.data) return;
        T *const sum = own_dq ? own_dq : shared.team.state(result, 0);
        for (int64_t part = 1; part < shared.team.parts; ++part) {
            const T *const other = shared.team.state(result, part);
            for (int64_t i = 0; i < group.lanes * d_k; i += W<T>) add_to<T>(sum + i, load<T>(other + i));
        }
        for (int64_t head = 0; head < group.heads; ++head)
            write(of.dq, place(of.dq, at, group.head0 + head, group.span.token0), sum + head * group.span.tokens * d_k,
                  d_k, call.d_k, group.span.tokens, static_cast<T>(call.scale));
    }

    static void clear(T *rows, int64_t count) {
        for (int64_t i = 0; i < count; i += W<T>) store<T>(rows + i, Vec<T>{});
    }

    static char *place(const hw_array &array, const int64_t (&at)[HW_BATCH_AXES], int64_t head, int64_t row) {
        return Group::place(array, batch_offset(array, at), head, row);
    }

    // Rows times a factor, in the type of the array, added to what stands there if so asked.
    void write(const hw_array &array, char *to, const T *rows, int64_t d, int64_t width, int64_t count,
               T factor) const {
        if (!array.data) return;
        if (whole_rows<T>(array, width)) {
            for (int64_t j = 0; j < count; ++j, to += array.row, rows += d)
                for (int64_t c = 0; c < width; c += W<T>) {
                    T *const here = reinterpret_cast<T *>(to) + c;
                    const Vec<T> times = load<T>(rows + c) * factor;
                    store<T>(here, of.adds ? load<T>(here) + times : times);
                }
            return;
        }
        with_type<T>(array.type, [&](auto stored) {
            using S = typename decltype(stored)::Type;
            for (int64_t j = 0; j < count; ++j, to += array.row, rows += d)
                for (int64_t c = 0; c < width; c += W<T>) {
                    T part[W<T>];
                    const int64_t columns = least<int64_t>(W<T>, width - c);
                    const Vec<T> here = load<T>(rows + c) * factor;
                    if (of.adds) read_row<T, S>(part, to + c * array.column, array.column, columns);
                    store<T>(part, of.adds ? load<T>(part) + here : here);
                    write_row<T, S>(to + c * array.column, array.column, part, columns);
                }
        });
    }
};

template <class T> int backward_in_keys(const hw_gradients &of, int threads) {
    BackwardCall<T> shared(of);
    if (!shared.team.reserve(shared.team.items / shared.team.parts)) return 1;
    return run_team<BackwardWorker<T>>(shared, threads, shared.work);
}

} // namespace headwork::HW_CPU
#endif
