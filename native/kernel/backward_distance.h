// Backward pass of what distances add to the scores: the gradient of the slopes (ALiBi), or of the table of relative
// positions. Every item owns one head of them and goes in order over all batch items, tokens and keys that share it.
#ifndef HEADWORK_KERNEL_BACKWARD_DISTANCE_H
#define HEADWORK_KERNEL_BACKWARD_DISTANCE_H

#include "backward_softmax.h"

namespace headwork::HW_CPU {

template <class T> struct DistanceCall {
    const hw_gradients &of;
    const hw_array &into;
    const hw_attention &call = of.call;
    const bool sloped = into.data == of.dslopes.data;
    Team<T> team{};

    DistanceCall(const hw_gradients &gradients, const hw_array &to) : of(gradients), into(to) {
        team.parts = 1;
        team.items = into.head ? call.heads : 1;
        for (int axis = 0; axis < HW_BATCH_AXES; ++axis) team.items *= into.batch[axis] ? call.batch[axis] : 1;
    }
};

template <class T> struct DistanceWorker {
    using Wide = typename Shape<T>::Wider;
    DistanceCall<T> &shared;
    const hw_gradients &of = shared.of;
    const hw_attention &call = of.call;
    const int64_t size = shared.sloped ? 1 : 2 * call.reach + 1;
    Queries<T> queries{};
    Keys<T> keys{};
    Tile<T> tile{};
    Wide *sum = nullptr;

    int64_t carve(char *memory) {
        Carve from{memory};
        queries.carve(from, call, tile_rows);
        keys.carve(from, call);
        tile.carve(from, call);
        sum = from.take<Wide>(size);
        return from.used;
    }

    void work(int64_t index) {
        int64_t owned[HW_BATCH_AXES] = {}, head = 0;
        if (shared.into.head) head = index % call.heads, index /= call.heads;
        for (int axis = HW_BATCH_AXES - 1; axis >= 0; --axis)
            if (shared.into.batch[axis]) owned[axis] = index % call.batch[axis], index /= call.batch[axis];
        for (int64_t i = 0; i < size; ++i) sum[i] = 0;
        for (int64_t item = 0, items = batch_items(call); item < items; ++item) {
            int64_t at[HW_BATCH_AXES];
            batch_place(call, item, at);
            bool mine = true;
            for (int axis = 0; axis < HW_BATCH_AXES; ++axis)
                mine = mine && (!shared.into.batch[axis] || at[axis] == owned[axis]);
            if (!mine) continue;
            if (shared.into.head) add_head(item, head);
            else
                for (int64_t any_head = 0; any_head < call.heads; ++any_head) add_head(item, any_head);
        }
        char *const to = Group::place(shared.into, batch_offset(shared.into, owned), head, 0);
        for (int64_t i = 0; i < size; ++i) {
            const T x = static_cast<T>(sum[i]);
            __builtin_memcpy(to + i * shared.into.column, &x, sizeof x);
        }
    }

  private:
    void add_head(int64_t item, int64_t head) {
        const int64_t each = call.heads / call.kv_heads;
        const Group group(call, item, head / each);
        tile.group = &group;
        for (int64_t row = 0; row < group.span.tokens; row += tile_rows) {
            const int64_t here = least(tile_rows, group.span.tokens - row);
            queries.read(of, group, item, head % each * group.span.tokens + row, here);
            for (int64_t block = 0; block * tile_keys < group.span.keys; ++block) {
                keys.read(call, group, block * tile_keys, (block + 1) * tile_keys);
                tile.row0 = 0;
                tile.rows = rounded(here, row_step);
                if (!tile.work(queries, keys)) continue;
                for (int64_t r = 0; r < here; ++r) add_row(tile.ds + r * tile_keys, row + r + group.span.offset);
            }
        }
    }

    void add_row(const T *ds, int64_t position) {
        for (int64_t j = 0; j < keys.count; ++j) {
            const int64_t distance = keys.start + j - position;
            if (shared.sloped) sum[0] -= Wide(ds[j]) * Wide(distance < 0 ? -distance : distance);
            else sum[call.reach + most(-call.reach, least(call.reach, distance))] += Wide(ds[j]);
        }
    }
};

template <class T> int backward_to_distances(const hw_gradients &of, const hw_array &into, int threads) {
    DistanceCall<T> shared(of, into);
    const double work = static_cast<double>(batch_items(of.call) * of.call.heads * of.call.tokens) *
                        static_cast<double>(of.call.keys * (of.call.d_k + of.call.d_v));
    return run_team<DistanceWorker<T>>(shared, threads, work);
}

} // namespace headwork::HW_CPU
#endif
