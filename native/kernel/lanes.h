// Problem geometry (strides, grouped heads, causal and window ranges): a call, seen one batch item and one SIMD lane at
// a time.
#ifndef HEADWORK_KERNEL_LANES_H
#define HEADWORK_KERNEL_LANES_H

#include "convert.h"

namespace headwork::HW_CPU {

constexpr int64_t key_block = 128; // keys worked at once: their weights and values stay in the first-level cache
constexpr int64_t word = 32;       // keys whose visibility fits one word

// One query head at one token: where it reads and writes, and the keys [first, last) it may read.
struct Lane {
    const char *q, *mask;
    const char *blocks; // the row of the table of blocks that is its token's, or null
    char *out, *lse, *weights;
    int64_t first, last;
    int64_t token, head;
};

HW_INLINE int64_t batch_offset(const hw_array &array, const int64_t (&at)[HW_BATCH_AXES]) {
    int64_t offset = 0;
    for (int axis = 0; axis < HW_BATCH_AXES; ++axis) offset += at[axis] * array.batch[axis];
    return offset;
}

HW_INLINE int64_t batch_items(const hw_attention &call) {
    int64_t items = 1;
    for (int64_t size : call.batch) items *= size;
    return items;
}

// The place of a batch item on every batch axis, the last fastest.
HW_INLINE void batch_place(const hw_attention &call, int64_t item, int64_t (&at)[HW_BATCH_AXES]) {
    for (int axis = HW_BATCH_AXES - 1; axis >= 0; --axis) {
        at[axis] = item % call.batch[axis];
        item /= call.batch[axis];
    }
}

HW_INLINE hw_span span_of(const hw_attention &call, int64_t item) {
    return call.spans ? call.spans[item] : hw_span{0, call.tokens, 0, call.keys, call.offset, 0};
}

// Where the rows of a group's keys, values or scales lie: one after another, or in the blocks that a table names.
struct KeyRows {
    const char *first = nullptr; // of the first block
    int64_t row = 0, block = 0, block_size = 0;
    const int64_t *blocks = nullptr;

    const char *at(int64_t key) const {
        if (!blocks) return first + key * row;
        return first + blocks[key / block_size] * block + key % block_size * row;
    }
    // A scale; 1 where there are none.
    float scale_at(int64_t key) const {
        float x = 1;
        if (first) __builtin_memcpy(&x, at(key), sizeof x);
        return x;
    }
    // Calls body(i, from, n) for every stretch of keys, start + i … start + i + n, that lie one `row` after another.
    template <class Body> HW_INLINE void stretches(int64_t start, int64_t count, Body body) const {
        if (!blocks) return body(0, at(start), count);
        for (int64_t i = 0, n; i < count; i += n) {
            n = least(count - i, block_size - (start + i) % block_size);
            body(i, at(start + i), n);
        }
    }
};

// How much of some keys may be read by the table of blocks.
enum class Cover { none, some, all };

// Of the keys [from, to), of which there are some, by the token that has this row of the table.
HW_INLINE Cover covered(const hw_attention &call, const char *row, int64_t from, int64_t to) {
    bool some = false, all = true;
    for (int64_t block = from / call.block_keys; block * call.block_keys < to; ++block) {
        const bool seen = row[block * call.blocks.column] != 0;
        some |= seen;
        all &= seen;
    }
    return all ? Cover::all : some ? Cover::some : Cover::none;
}

// The same for several rows, of which neighbours are often one; a null pointer is none of them.
HW_INLINE Cover covered(const hw_attention &call, const char *row, const char *before, Cover so_far, int64_t from,
                        int64_t to) {
    if (!row || row == before || so_far == Cover::some) return so_far;
    const Cover here = covered(call, row, from, to);
    return !before || here == so_far ? here : Cover::some;
}

// One batch item and one key head: the queries of every head in the group that reads it are its lanes, the heads of
// one token side by side, so that neighbouring lanes read nearly the same keys.
struct Group {
    const hw_attention *call;
    hw_span span;
    int64_t item, kv_head, heads, lanes, head0;
    const char *k, *v;
    int64_t q, out, mask, lse, weights; // offsets in bytes of this batch item
    int64_t sinks = 0, slopes = 0, table = 0, blocks = 0;

    Group(const hw_attention &of, int64_t item, int64_t kv_head)
        : call(&of), span(span_of(of, item)), item(item), kv_head(kv_head) {
        int64_t at[HW_BATCH_AXES];
        batch_place(of, item, at);
        heads = of.heads / of.kv_heads;
        head0 = kv_head * heads;
        lanes = heads * span.tokens;
        k = of.k.data + batch_offset(of.k, at) + kv_head * of.k.head + span.key0 * of.k.row;
        v = of.v.data + batch_offset(of.v, at) + kv_head * of.v.head + span.key0 * of.v.row;
        q = batch_offset(of.q, at);
        out = batch_offset(of.out, at);
        mask = batch_offset(of.mask, at);
        lse = batch_offset(of.lse, at);
        weights = batch_offset(of.weights, at);
        if (of.sinks.data) sinks = batch_offset(of.sinks, at);
        if (of.slopes.data) slopes = batch_offset(of.slopes, at);
        if (of.table.data) table = batch_offset(of.table, at);
        if (of.blocks.data) blocks = batch_offset(of.blocks, at);
    }

    // Of k, v or their scales.
    KeyRows rows_of(const hw_array &array) const {
        if (!array.data) return {};
        const char *const head = array.data + kv_head * array.head;
        if (call->block_table) {
            const int64_t *const blocks = call->block_table + item * call->item_blocks;
            return {head, array.row, array.batch[HW_BATCH_AXES - 1], call->block_size, blocks};
        }
        int64_t at[HW_BATCH_AXES];
        batch_place(*call, item, at);
        return {head + batch_offset(array, at) + span.key0 * array.row, array.row};
    }

    static char *place(const hw_array &array, int64_t offset, int64_t head, int64_t row) {
        return array.data ? array.data + offset + head * array.head + row * array.row : nullptr;
    }

    // Writes `count` lanes from lane `from` on.
    void lanes_from(Lane *lanes, int64_t from, int64_t count) const {
        int64_t token = from / heads, head = from % heads;
        for (int64_t i = 0; i < count; ++i) {
            lanes[i] = i < heads ? lane(token, head) : following(lanes[i - heads], token);
            if (++head < heads) continue;
            head = 0;
            ++token;
        }
    }

    // One token of one head of the group.
    Lane lane(int64_t token, int64_t of_group) const {
        const int64_t head = head0 + of_group;
        const int64_t row = span.token0 + token;
        Lane lane;
        lane.head = head;
        lane.q = place(call->q, q, head, row);
        lane.mask = place(call->mask, mask, head, row);
        lane.out = place(call->out, out, head, row);
        lane.lse = place(call->lse, lse, head, row);
        lane.weights = place(call->weights, weights, head, row);
        see(lane, token);
        return lane;
    }

  private:
    // The lane of the same head one token on.
    Lane following(Lane lane, int64_t token) const {
        lane.q += call->q.row;
        lane.mask += call->mask.row;
        lane.out += call->out.row;
        lane.lse += call->lse.row;
        lane.weights += call->weights.row;
        see(lane, token);
        return lane;
    }

    // The keys that a token may read.
    void see(Lane &lane, int64_t token) const {
        const int64_t position = token + span.offset;
        lane.token = token;
        const int64_t row = call->blocks.data ? (span.token0 + token) / call->block_tokens : 0;
        lane.blocks = place(call->blocks, blocks, lane.head, row);
        lane.first = call->left < 0 ? span.first : most(span.first, position - call->left);
        lane.last = call->right < 0 ? span.keys : least<int64_t>(span.keys, position + call->right + 1);
        if (lane.last <= lane.first) lane.first = lane.last = 0;
    }
};

} // namespace headwork::HW_CPU
#endif
