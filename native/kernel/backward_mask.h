// Backward pass of the bias, that is of an additive mask: its gradient is that of the scores, summed over the axes the
// mask was broadcast along. Every item owns a tile of the mask and goes in order over all batch items, heads, tokens
// and keys that share it.
#ifndef HEADWORK_KERNEL_BACKWARD_MASK_H
#define HEADWORK_KERNEL_BACKWARD_MASK_H

#include "backward_softmax.h"

namespace headwork::HW_CPU {

template <class T> struct MaskCall {
    const hw_gradients &of;
    const hw_attention &call = of.call;
    const hw_array &mask = of.dmask;
    // How many tiles there are, and how many rows and columns of them a tile of the mask goes over.
    int64_t row_tiles = (call.tokens + tile_rows - 1) / tile_rows, key_tiles = (call.keys + tile_keys - 1) / tile_keys;
    Team<T> team{};

    explicit MaskCall(const hw_gradients &gradients) : of(gradients) {
        team.parts = 1;
        team.items = (mask.head ? call.heads : 1) * (mask.row ? row_tiles : 1) * (mask.column ? key_tiles : 1);
        for (int axis = 0; axis < HW_BATCH_AXES; ++axis) team.items *= mask.batch[axis] ? call.batch[axis] : 1;
    }
};

template <class T> struct MaskWorker {
    MaskCall<T> &shared;
    const hw_gradients &of = shared.of;
    const hw_attention &call = of.call;
    Queries<T> queries{};
    Keys<T> keys{};
    Tile<T> tile{};
    T *sum = nullptr;

    int64_t carve(char *memory) {
        Carve from{memory};
        queries.carve(from, call, tile_rows);
        keys.carve(from, call);
        tile.carve(from, call);
        sum = from.take<T>(tile_rows * tile_keys);
        return from.used;
    }

    // The whole range of an axis that the mask has only once, or the one place that the item has on it.
    struct Range {
        int64_t from, to;
    };
    static Range take(int64_t &index, int64_t stride, int64_t count) {
        if (!stride) return {0, count};
        const int64_t at = index % count;
        index /= count;
        return {at, at + 1};
    }

    void work(int64_t index) {
        const Range key_range = take(index, shared.mask.column, shared.key_tiles);
        const Range row_range = take(index, shared.mask.row, shared.row_tiles);
        const Range head_range = take(index, shared.mask.head, call.heads);
        Range batch[HW_BATCH_AXES];
        for (int axis = HW_BATCH_AXES - 1; axis >= 0; --axis)
            batch[axis] = take(index, shared.mask.batch[axis], call.batch[axis]);
        for (int64_t i = 0; i < tile_rows * tile_keys; i += W<T>) store<T>(sum + i, Vec<T>{});
        for (int64_t item = 0, items = batch_items(call); item < items; ++item) {
            int64_t at[HW_BATCH_AXES];
            batch_place(call, item, at);
            bool mine = true;
            for (int axis = 0; axis < HW_BATCH_AXES; ++axis)
                mine = mine && at[axis] >= batch[axis].from && at[axis] < batch[axis].to;
            for (int64_t head = head_range.from; mine && head < head_range.to; ++head)
                add_head(item, head, row_range, key_range);
        }
        int64_t at[HW_BATCH_AXES];
        for (int axis = 0; axis < HW_BATCH_AXES; ++axis) at[axis] = batch[axis].from;
        write(Group::place(shared.mask, batch_offset(shared.mask, at), head_range.from, row_range.from * tile_rows),
              row_range.from, key_range.from);
    }

    void add_head(int64_t item, int64_t head, Range row_range, Range key_range) {
        const int64_t each = call.heads / call.kv_heads;
        const Group group(call, item, head / each);
        tile.group = &group;
        for (int64_t row = row_range.from * tile_rows; row < least(row_range.to * tile_rows, group.span.tokens);
             row += tile_rows) {
            const int64_t here = least(tile_rows, group.span.tokens - row);
            queries.read(of, group, item, head % each * group.span.tokens + row, here);
            for (int64_t block = key_range.from; block < key_range.to && block * tile_keys < group.span.keys; ++block) {
                keys.read(call, group, block * tile_keys, (block + 1) * tile_keys);
                tile.row0 = 0;
                tile.rows = rounded(here, row_step);
                if (!tile.work(queries, keys)) continue;
                for (int64_t r = 0; r < here; ++r)
                    for (int64_t j = 0; j < keys.padded; j += W<T>)
                        add_to<T>(sum + r * tile_keys + j, load<T>(tile.ds + r * tile_keys + j));
            }
        }
    }

    void write(char *to, int64_t row_tile, int64_t key_tile) {
        const hw_array &mask = shared.mask;
        const int64_t rows = least(tile_rows, call.tokens - row_tile * tile_rows),
                      columns = least(tile_keys, call.keys - key_tile * tile_keys);
        const auto at = [&](int64_t r, int64_t j) -> T & { return sum[r * tile_keys + j]; };
        if (!mask.column)
            for (int64_t r = 0; r < tile_rows; ++r)
                for (int64_t j = 1; j < tile_keys; ++j) at(r, 0) += at(r, j);
        if (!mask.row)
            for (int64_t r = 1; r < tile_rows; ++r)
                for (int64_t j = 0; j < tile_keys; ++j) at(0, j) += at(r, j);
        for (int64_t r = 0; r < (mask.row ? rows : 1); ++r)
            for (int64_t j = 0; j < (mask.column ? columns : 1); ++j)
                __builtin_memcpy(to + r * mask.row + (key_tile * tile_keys + j) * mask.column, &at(r, j), sizeof(T));
    }
};

template <class T> int backward_to_mask(const hw_gradients &of, int threads) {
    MaskCall<T> shared(of);
    const double work = static_cast<double>(batch_items(of.call) * of.call.heads * of.call.tokens) *
                        static_cast<double>(of.call.keys * (of.call.d_k + of.call.d_v));
    return run_team<MaskWorker<T>>(shared, threads, work);
}

} // namespace headwork::HW_CPU
#endif
