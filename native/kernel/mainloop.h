// Main loop of the forward pass, the general path: panels of queries over blocks of keys; parts of split keys combined.
#ifndef HEADWORK_KERNEL_MAINLOOP_H
#define HEADWORK_KERNEL_MAINLOOP_H

#include "epilogue.h"
#include "mask_runs.h"
#include "merge.h"
#ifdef HW_BRAIN
#include "brain_operands.h"
#else
#include "operands.h"
#endif
#include "tile_scheduler.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

enum { worked, no_memory, not_for_this }; // how a call went

template <class T> struct PanelCall {
    const hw_attention &of;
    const Plan<T> plan;
    Team<T> team{plan.items, plan.parts, (of.d_v + 2) * max_lanes<T>};
    const Dropout<T> dropout{of};
};

template <class T> struct PanelWorker {
    PanelCall<T> &call;
    const hw_attention &of = call.of;
    Walk<T> walk{call.plan};
    Panel<T> *panel = nullptr;
    KeyBlock<T> block{};
    Operands<T> operands{of};
    typename Shape<T>::Wider *wide = nullptr;
    Aside<T> aside{};

    int64_t carve(char *memory) {
        Carve from{memory};
        const int64_t lanes = max_lanes<T>, tile = key_block * lanes, q_size = operands.query_size(of);
        const bool biased = is_biased(of);
        panel = from.take<Panel<T>>(panels_per_item);
        auto *const q = from.take<typename Products<T>::Query>(call.plan.per_item * q_size);
        T *const o = from.take<T>(call.plan.per_item * call.team.state_size);
        block.p = from.take<T>(tile + Products<T>::spare_rows * lanes);
        block.raw = of.weights.data ? from.take<T>(tile) : nullptr;
        block.bias = biased ? from.take<T>(tile) : nullptr;
        block.bias_rows = biased ? from.take<T>(tile) : nullptr;
        block.seen = from.take<Visible<T>>(1);
        block.v_clean = from.take<T>(key_block * of.d_v);
        operands.carve(from, block);
        wide = from.take<typename Shape<T>::Wider>(of.d_v);
        aside.carve(from, of, lanes);
        block.call = &of;
        block.d_k = of.d_k;
        block.d_v = of.d_v;
        block.cap = cap_in_powers<T>(of.softcap);
        block.biased = biased;
        block.dropout = &call.dropout;
        if (!memory) return from.used;
        for (int64_t i = 0; i < call.plan.per_item; ++i) {
            panel[i].q = q + i * q_size;
            panel[i].o = o + i * call.team.state_size;
        }
        return from.used;
    }

    // `keys` of the next block are asked for while the panels work on this one: the first of them would wait for every
    // line of the values, which it reads a few columns at a time.
    void look_ahead(const Group &group, int64_t keys, int64_t panels) {
        block.lines = 0;
        if (keys <= 0 || !operands.in_place()) return;
        const int64_t next = block.start + key_block, size = sizeof(T);
        block.next_k = Ahead(group.k + next * of.k.row, of.k.row, of.d_k * size, keys);
        block.next_v = Ahead(group.v + next * of.v.row, of.v.row, of.d_v * size, keys);
        const int64_t share = panels * Ahead::line;
        block.lines = (tile_of<max_vectors> * most(of.d_k, of.d_v) * size + share - 1) / share;
    }

    // By the table of blocks, from every panel: nothing of these keys is to be read, or copied.
    bool hidden(int64_t panels, int64_t from, int64_t to) const {
        bool none = of.blocks.data;
        for (int64_t i = 0; none && i < panels; ++i) none = covered(panel[i], of, from, to) == Cover::none;
        return none;
    }

    void work_panel(Panel<T> &one, int64_t keys) {
        switch (one.vectors) {
        case 1: return work_block<T, 1>(one, block, keys);
        case 2: return work_block<T, 2>(one, block, keys);
        default: return work_block<T, 3>(one, block, keys);
        }
    }

    // The call is to be worked by other means: whatever the threads still do is for nothing.
    void give_up() { __atomic_store_n(&call.team.failed, not_for_this, __ATOMIC_RELAXED); }

    void work(int64_t index) {
        if (__atomic_load_n(&call.team.failed, __ATOMIC_RELAXED)) return;
        const Item item = walk.at(index);
        const Group group(of, item.batch, item.kv_head);
        const Cut<T> cut{group.lanes};
        block.group = &group;
        const int64_t part = call.plan.part_keys(group.span.keys);
        int64_t first = group.span.keys, last = 0;
        for (int64_t i = 0; i < item.panels; ++i) {
            Panel<T> &one = panel[i];
            begin(one, group, cut.lane0(item.panel0 + i), cut.count(item.panel0 + i), call.dropout);
            if (!operands.lay_queries(one)) return give_up();
            if (of.weights.data) clear_weights(one, of.keys);
            first = least(first, one.first);
            last = most(last, one.last);
        }
        first = most(first, item.part * part);
        last = least(last, (item.part + 1) * part);
        for (block.start = first / key_block * key_block; block.start < last; block.start += key_block) {
            const int64_t here = least(key_block, group.span.keys - block.start);
            if (hidden(item.panels, block.start, block.start + here)) continue;
            if (!operands.lay_keys(block, group, here)) return give_up();
            block.finite_rows = 0;
            look_ahead(group, least(key_block, last - block.start - key_block), item.panels);
            for (int64_t i = 0; i < item.panels; ++i) work_panel(panel[i], group.span.keys);
        }
        for (int64_t i = 0; i < item.panels; ++i) fill(panel[i], of.d_v);
        for (int64_t i = 0; i < item.panels; ++i)
            if (call.plan.parts == 1 || hand_in(panel[i], item, item.slot + i)) finish_panel(panel[i], group);
    }

    void finish_panel(Panel<T> &one, const Group &group) {
        const auto write = [&](const Group &where) { finish(one, where, wide, call.dropout); };
        of.merges ? aside.merge(one.lane, one.count, group, write) : write(group);
    }

    // Leaves the state of one part; true with the state of all parts, for whoever was last.
    bool hand_in(Panel<T> &one, const Item &item, int64_t slot) {
        const int64_t lanes = one.vectors * W<T>, size = (of.d_v + 2) * lanes;
        __builtin_memcpy(call.team.state(slot, item.part), one.o, size * sizeof(T));
        if (!call.team.last_of(slot)) return false;
        __builtin_memcpy(one.o, call.team.state(slot, 0), size * sizeof(T));
        for (int64_t part = 1; part < call.plan.parts; ++part) add(one.o, call.team.state(slot, part), lanes);
        return true;
    }

    void add(T *state, const T *other, int64_t lanes) const {
        const int64_t top = of.d_v * lanes;
        for (int64_t i = 0; i < lanes; i += W<T>) {
            const Vec<T> a = load<T>(state + top + i), b = load<T>(other + top + i), both = larger<T>(a, b);
            const Vec<T> scale_a = a == -infinity<T> ? Vec<T>{} : exp2<T>(a - both);
            const Vec<T> scale_b = b == -infinity<T> ? Vec<T>{} : exp2<T>(b - both);
            for (int64_t c = 0; c < of.d_v + 2; ++c) {
                T *const at = state + c * lanes + i;
                store<T>(at, load<T>(at) * scale_a + load<T>(other + c * lanes + i) * scale_b);
            }
            store<T>(state + top + i, both);
        }
    }
};

template <class T> int forward_in_panels(const hw_attention &of, int threads) {
    PanelCall<T> call{of, Plan<T>(of, threads)};
    if (!call.team.reserve(call.plan.panels)) return no_memory;
    return run_team<PanelWorker<T>>(call, threads, call.plan.work);
}

} // namespace headwork::HW_CPU
#endif
