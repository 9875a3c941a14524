// The binding of decoding from a cache: paged, of 8 bits, or neither. Nothing that it is given may lead out of the
// arrays.
#ifndef HEADWORK_DECODE_FROM_CACHE_H
#define HEADWORK_DECODE_FROM_CACHE_H

#include <vector>

#include "given.h"

namespace headwork {

constexpr Axes keys_before_heads{1, 2, 0}; // of scales, which have no columns

// A cache as decoding reads it: keys and values of any type, 8-bit floats told apart by `kind` since they come as
// bytes, their scales, and the block table, copied: nobody can change it between the check and the reading.
struct CacheViews {
    const View k, v, k_scales, v_scales, block_table;
    std::vector<int64_t> blocks{};

    CacheViews(nb::handle k, nb::handle v, nb::handle k_scales, nb::handle v_scales, nb::handle block_table)
        : k(k, false), v(v, false), k_scales(k_scales, false), v_scales(v_scales, false),
          block_table(block_table, false) {}

    static hw_array rows(const View &view, Axes axes, int kind) {
        if (!kind) {
            const hw_array array = array_of(view, axes, 3);
            if (array.type >= HW_BOOL) throw nb::type_error("keys and values are no numbers");
            return array;
        }
        if (view.item_size() != 1) throw nb::type_error("8-bit numbers are not of 8 bits");
        hw_array array{};
        array.data = static_cast<char *>(view.data());
        array.type = kind == 1 ? HW_INT8 : kind == 2 ? HW_FLOAT8_E4M3 : HW_FLOAT8_E5M2;
        array.batch[HW_BATCH_AXES - 1] = view.stride(4);
        array.head = view.stride(axes.head);
        array.row = view.stride(axes.row);
        array.column = view.size(1) == 1 ? 1 : view.stride(1);
        return array;
    }

    // Scales have the shape of what they scale, without its last axis; every axis of size 1 speaks for all.
    static hw_array scales(const View &view, const View &of, bool swapped) {
        if (!view.there()) return {};
        if (view.known_type() != HW_FLOAT32 || view.rank() != 3) throw nb::type_error("scales are no float32 table");
        for (int axis = 1; axis <= 3; ++axis)
            if (view.size(axis) != 1 && view.size(axis) != of.size(axis + 1))
                throw nb::value_error("scales do not fit");
        return array_of(view, swapped ? keys_before_heads : rows_only, 2);
    }

    // How many keys an item may have; the blocks of those it has are checked one by one.
    void read_table(hw_attention &call, int64_t items, Axes axes) {
        const int64_t all = k.size(4);
        call.block_size = k.size(axes.row);
        call.item_blocks = block_table.size(1);
        if (block_table.rank() != 2 || block_table.size(2) != items || !block_table.is_table(call.item_blocks) ||
            v.size(4) != all || v.size(axes.row) != call.block_size)
            throw nb::value_error("the block table does not fit");
        if (call.block_size > 0 && call.item_blocks > INT64_MAX / call.block_size)
            throw nb::value_error("the block table is too large");
        call.keys = call.item_blocks * call.block_size;
        const int64_t *const given = static_cast<const int64_t *>(block_table.data());
        blocks.assign(given, given + items * call.item_blocks);
        call.block_table = blocks.data();
    }

    void check_blocks(const hw_attention &call, int64_t items) const {
        for (int64_t item = 0; item < items; ++item) {
            const int64_t used = (call.spans[item].keys + call.block_size - 1) / most_one(call.block_size);
            for (int64_t i = 0; i < used; ++i) {
                const int64_t block = blocks[static_cast<size_t>(item * call.item_blocks + i)];
                if (block < 0 || block >= k.size(4)) throw nb::value_error("the block table leads out of the blocks");
            }
        }
    }
    static int64_t most_one(int64_t size) { return size > 0 ? size : 1; }
};

// What stands for every head, and the log-sum-exp, are of the type of the sums; float64 goes with float64 alone.
inline bool numbers_fit(const hw_attention &call, const Given &given, const View &lse) {
    const int64_t items = call.batch[HW_BATCH_AXES - 1];
    const bool fine = call.q.type == HW_FLOAT64;
    const hw_type sums = fine ? HW_FLOAT64 : HW_FLOAT32;
    const auto one_or = [](int64_t size, int64_t all) { return size == 1 || size == all; };
    const auto per_head = [&](const View &view, int head) {
        return !view.there() || (view.known_type() == sums && view.rank() <= head + 1 &&
                                 one_or(view.size(head), call.heads) && one_or(view.size(head + 1), items));
    };
    const bool row = !lse.there() || (lse.known_type() == sums && lse.rank() == 3 && lse.size(3) == items &&
                                      lse.size(2) == call.heads && lse.size(1) == call.tokens);
    const auto floating = [&](const hw_array &array) {
        return array.type < HW_BOOL && (array.type == HW_FLOAT64) == fine;
    };
    return per_head(given.sinks, 1) && per_head(given.slopes, 1) && per_head(given.table, 2) && row &&
           floating(call.q) && floating(call.out) && (call.k.type == HW_FLOAT64) == fine &&
           (call.v.type == HW_FLOAT64) == fine;
}

// Decoding from a cache. Batch items have one axis; `spans` has a row for every one.
inline void decode(nb::handle q, nb::handle k, nb::handle v, nb::handle k_scales, nb::handle v_scales,
                   nb::handle block_table, nb::handle out, nb::handle lse, nb::handle spans, nb::handle sinks,
                   nb::handle slopes, nb::handle table, int k_kind, int v_kind, bool swapped, int64_t left,
                   int64_t right, double scale, double softcap, int threads) {
    const View q_view(q, false), out_view(out, true), lse_view(lse, true);
    CacheViews cache(k, v, k_scales, v_scales, block_table);
    const Given given(nb::none(), spans, sinks, slopes, table, nb::none(), 0, 0);
    if (q_view.rank() != 4 || cache.k.rank() != 4 || cache.v.rank() != 4) throw nb::value_error("four axes, please");
    const Axes axes = swapped ? tokens_first : heads_first;
    const int64_t items = q_view.size(4);
    hw_attention call{};
    for (int64_t &size : call.batch) size = 1;
    call.batch[HW_BATCH_AXES - 1] = items;
    call.heads = q_view.size(axes.head);
    call.kv_heads = cache.k.size(axes.head);
    call.tokens = q_view.size(axes.row);
    call.keys = cache.k.size(axes.row);
    call.d_k = q_view.size(1);
    call.d_v = cache.v.size(1);
    call.q = array_of(q_view, axes, 3);
    call.k = CacheViews::rows(cache.k, axes, k_kind);
    call.v = CacheViews::rows(cache.v, axes, v_kind);
    call.k_scales = CacheViews::scales(cache.k_scales, cache.k, swapped);
    call.v_scales = CacheViews::scales(cache.v_scales, cache.v, swapped);
    call.out = array_of(out_view, axes, 3);
    call.lse = array_of(lse_view, rows_only, 2);
    call.sinks = array_of(given.sinks, heads_only, 1);
    call.slopes = array_of(given.slopes, heads_only, 1);
    call.table = array_of(given.table, heads_and_columns, 2);
    call.reach = given.table.size(1) / 2;
    const bool paged = cache.block_table.there();
    const bool fits = cache.k.size(1) == call.d_k && cache.v.size(axes.head) == call.kv_heads &&
                      cache.v.size(axes.row) == cache.k.size(axes.row) && call.kv_heads > 0 &&
                      call.heads % call.kv_heads == 0 &&
                      (paged || (cache.k.size(4) == items && cache.v.size(4) == items)) && out_view.rank() == 4 &&
                      out_view.size(4) == items && out_view.size(axes.head) == call.heads &&
                      out_view.size(axes.row) == call.tokens && out_view.size(1) == call.d_v;
    if (!fits || !numbers_fit(call, given, lse_view)) throw nb::value_error("the cache does not fit the queries");
    if (paged) cache.read_table(call, items, axes);
    if (!given.spans.there() || !given.spans.is_table(sizeof(hw_span) / sizeof(int64_t)) ||
        given.spans.size(2) != items)
        throw nb::value_error("spans are no table");
    const hw_span *const rows = static_cast<const hw_span *>(given.spans.data());
    const std::vector<hw_span> mine(rows, rows + items);
    call.spans = mine.data();
    check_spans(call, items, false);
    if (paged) cache.check_blocks(call, items);
    // Work is cut by what is there to read, not by what there is room for.
    call.keys = 0;
    for (const hw_span &span : mine) call.keys = span.keys > call.keys ? span.keys : call.keys;
    call.left = left;
    call.right = right;
    call.scale = scale;
    call.softcap = softcap;
    call.threads = threads;
    work_out(hw_forward, call);
}

} // namespace headwork
#endif
