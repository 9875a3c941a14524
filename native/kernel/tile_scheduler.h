// Tile scheduler: how the work of a call is cut, into panels of lanes, panels into items, and, where there are few,
// keys into parts. The cut into panels and parts decides the rounding, so it depends on the shapes alone, never on the
// threads.
#ifndef HEADWORK_KERNEL_TILE_SCHEDULER_H
#define HEADWORK_KERNEL_TILE_SCHEDULER_H

#include "lanes.h"

namespace headwork::HW_CPU {

constexpr int64_t panels_per_item = 8; // they share a block of keys while it is in the second-level cache
constexpr int64_t few_panels = 32;     // with fewer than these, the keys are cut too
constexpr int64_t least_part = 512;    // keys

// `lanes` cut into panels of 3 vectors. A rest of one vector or less would run at half speed: the last full panel and
// the rest then become two panels of two vectors.
template <class T> struct Cut {
    static constexpr int64_t full = 3 * W<T>, two = 2 * W<T>;
    int64_t lanes;

    HW_INLINE bool uneven() const { return lanes > full && lanes % full > 0 && lanes % full <= W<T>; }
    HW_INLINE int64_t panels() const { return (lanes + full - 1) / full; }
    HW_INLINE int64_t lane0(int64_t panel) const {
        return panel * full - (uneven() && panel == panels() - 1 ? full - two : 0);
    }
    HW_INLINE int count(int64_t panel) const {
        return static_cast<int>((panel + 1 < panels() ? lane0(panel + 1) : lanes) - lane0(panel));
    }
};

struct Item {
    int64_t batch, kv_head, panel0, panels, part;
    int64_t slot; // of its first panel among all panels of the call
};

template <class T> struct Plan {
    const hw_attention &call;
    int64_t per_item = panels_per_item, parts = 1, items = 0, panels = 0;
    double work = 0; // multiplications, roughly

    explicit Plan(const hw_attention &of, int threads) : call(of) {
        const int64_t batch = batch_items(call);
        for (int64_t b = 0; b < batch; ++b) {
            const hw_span span = span_of(call, b);
            panels += panels_of(b) * call.kv_heads;
            work +=
                static_cast<double>(span.tokens * call.heads) * static_cast<double>(span.keys * (call.d_k + call.d_v));
        }
        if (panels > 0 && panels < few_panels && !call.weights.data)
            parts = most<int64_t>(1, least((2 * few_panels + panels - 1) / panels, call.keys / least_part));
        while (per_item > 1 && panels * parts < 8 * per_item * threads) --per_item;
        for (int64_t b = 0; b < batch; ++b) items += items_of(b);
    }

    int64_t panels_of(int64_t batch) const {
        return Cut<T>{span_of(call, batch).tokens * (call.heads / call.kv_heads)}.panels();
    }
    int64_t items_of(int64_t batch) const {
        return (panels_of(batch) + per_item - 1) / per_item * call.kv_heads * parts;
    }

    // Keys of a part, whole blocks.
    int64_t part_keys(int64_t keys) const {
        return ((keys + parts - 1) / parts + key_block - 1) / key_block * key_block;
    }
};

// Walks the items in order, head by head, so that the threads share its keys in the cache; those of one head from the
// last panels, which causal order makes the longest.
template <class T> struct Walk {
    const Plan<T> &plan;
    int64_t batch = 0, before = 0, slots_before = 0;

    Item at(int64_t index) {
        int64_t here;
        while (index - before >= (here = plan.items_of(batch))) {
            slots_before += plan.panels_of(batch) * plan.call.kv_heads;
            before += here;
            ++batch;
        }
        index -= before;
        Item item;
        const int64_t all = plan.panels_of(batch), chunks = (all + plan.per_item - 1) / plan.per_item;
        item.batch = batch;
        item.part = index % plan.parts;
        item.kv_head = index / (plan.parts * chunks);
        const int64_t chunk = chunks - 1 - index / plan.parts % chunks;
        item.panel0 = chunk * all / chunks; // of equal size, or nearly
        item.panels = (chunk + 1) * all / chunks - item.panel0;
        item.slot = slots_before + item.kv_head * all + item.panel0;
        return item;
    }
};

} // namespace headwork::HW_CPU
#endif
