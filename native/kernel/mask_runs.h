// Mask classification (full, partial, empty): one panel on one block of keys, cut into runs that all lanes read, some
// read, or none does.
#ifndef HEADWORK_KERNEL_MASK_RUNS_H
#define HEADWORK_KERNEL_MASK_RUNS_H

#include "finite.h"
#include "softmax.h"

namespace headwork::HW_CPU {

// Whether all the values of the rows [from, to) are finite.
template <class T> bool finite(const KeyBlock<T> &block, int64_t from, int64_t to) {
    if constexpr (!Products<T>::any_value) return true;
    const int64_t row = block.v_row * static_cast<int64_t>(sizeof(T));
    return all_finite<T, T>(reinterpret_cast<const char *>(block.v) + from * row, row, to - from, block.d_v);
}

template <class T> bool finite_up_to(const KeyBlock<T> &block, int64_t to) {
    int64_t &known = block.finite_rows;
    if (known < to && finite(block, known, to)) known = to;
    return known >= to;
}

template <int NV> HW_INLINE Ends<NV> all_to(int64_t end) {
    Ends<NV> ends;
    for (int64_t &one : ends.of) one = end;
    return ends;
}

// p = 0 where a weight is dropped, for `count` keys from `column` on. What is kept is scaled at the end, with the sums.
template <class T, int NV>
__attribute__((noinline)) void drop(const Panel<T> &panel, const KeyBlock<T> &block, T *p, int64_t column,
                                    int64_t count) {
    const Dropout<T> dropout = *block.dropout;
    for (int v = 0; v < NV; ++v) {
        BitVec<T> low, high;
        __builtin_memcpy(&low, panel.key_low + v * W<T>, sizeof low);
        __builtin_memcpy(&high, panel.key_high + v * W<T>, sizeof high);
        for (int64_t j = 0; j < count; ++j) {
            T *const at = p + (j * NV + v) * W<T>;
            const BitVec<T> here = BitVec<T>{} + static_cast<typename Shape<T>::Bits>(column + j);
            store<T>(at, dropout.keeps(low, high, here) ? load<T>(at) : Vec<T>{});
        }
    }
}

// The weights of the keys up to `ends` from `from` on, summed; then dropped, where they are to be, before they are
// mixed.
template <class T, int NV>
HW_INLINE void settle(Panel<T> &panel, const KeyBlock<T> &block, int64_t from, const Ends<NV> &ends) {
    constexpr int lanes = NV * W<T>;
    T *const p = block.p + from * lanes;
    sum_tile<T, NV>(panel.o + (block.d_v + 1) * lanes, p, ends.of[NV - 1]);
    if (__builtin_expect(block.dropout->on, 0)) drop<T, NV>(panel, block, p, block.start + from, ends.of[NV - 1]);
}

// Where some lanes do not read a key, its value must not reach them even as 0 · NaN: rows of values that are not finite
// are left out of the product and added lane by lane.
template <class T, int NV> void mix_hidden(Panel<T> &panel, const KeyBlock<T> &block, int64_t from, int64_t to) {
    constexpr int lanes = NV * W<T>;
    fill(panel, block.d_v);
    for (int64_t j = from; j < to; ++j) {
        const T *value = block.v + j * block.v_row;
        T *copy = block.v_clean + (j - from) * block.d_v;
        const bool fine = finite(block, j, j + 1);
        for (int64_t c = 0; c < block.d_v; ++c) {
            copy[c] = fine ? value[c] : 0;
            for (int i = 0; i < lanes && !fine; ++i)
                if (block.seen->bits[j / word][i] >> (j % word) & 1)
                    panel.o[c * lanes + i] += block.p[j * lanes + i] * value[c];
        }
    }
    mix<T, NV>(panel.o, block.p + from * lanes, block.v_clean, block.d_v, all_to<NV>(to - from), block.d_v, false);
}

// The raw scores of the whole block into the rows of the weights array, to be finished with the panel.
template <class T, int NV> void keep_raw(const Panel<T> &panel, const KeyBlock<T> &block, int64_t from, int64_t to) {
    constexpr int lanes = NV * W<T>;
    const auto place = [&](int i, int64_t j) { return reinterpret_cast<T *>(panel.lane[i].weights) + block.start + j; };
    int64_t j = from;
    for (; j + W<T> <= to; j += W<T>)
        for (int i = 0; i < panel.count; i += W<T>) {
            Vec<T> part[W<T>];
            HW_EACH(n, 0, W<T>) part[n] = load<T>(block.raw + (j + n) * lanes + i);
            transpose<T>(part);
            HW_EACH(n, 0, W<T>)
                if (i + n < panel.count) store<T>(place(i + n, j), part[n]);
        }
    for (; j < to; ++j)
        for (int i = 0; i < panel.count; ++i) *place(i, j) = block.raw[j * lanes + i];
}

template <class T, int NV, Kind kind>
void work_run(Panel<T> &panel, const KeyBlock<T> &block, int64_t from, int64_t to) {
    weigh<T, NV, kind>(panel, block, from, from, to);
    settle<T, NV>(panel, block, from, all_to<NV>(to - from));
    if (kind == Kind::plain || finite_up_to(block, to)) mix_block<T, NV>(panel, block, from, all_to<NV>(to - from));
    else if constexpr (Products<T>::any_value) mix_hidden<T, NV>(panel, block, from, to);
    if constexpr (kind == Kind::general)
        if (block.raw) keep_raw<T, NV>(panel, block, from, to);
}

// Causal order and windows: an inner run that every lane reads, and a run before and after it at most.
template <class T, int NV> void work_range(Panel<T> &panel, const KeyBlock<T> &block, int64_t from, int64_t to) {
    constexpr int KT = tile_of<NV>, lanes = NV * W<T>;
    int64_t inner = most(from, least(to, panel.all_first - block.start));
    int64_t outer = most(inner, least(to, panel.all_last - block.start));
    if (inner == from && outer == to) return work_run<T, NV, Kind::plain>(panel, block, from, to);
    // Whole tiles on both sides of the edges.
    inner = least(from + (inner - from + KT - 1) / KT * KT, to);
    outer = inner + most<int64_t>(outer - inner, 0) / KT * KT;
    const auto see = [&](int64_t first, int64_t last) {
        see_range(*block.seen, panel.lane, panel.count, lanes, block.start, first, last);
    };
    see(from, inner);
    see(outer, to);
    Ends<NV> ends; // counted from `from`
    for (int v = 0; v < NV; ++v) ends.of[v] = most(outer, least(to, panel.ends[v] - block.start)) - from;
    weigh<T, NV, Kind::hidden>(panel, block, from, from, inner);
    weigh<T, NV, Kind::plain>(panel, block, from, inner, outer);
    weigh_edge<T, NV>(panel, block, from, outer, ends);
    settle<T, NV>(panel, block, from, ends);
    if (finite(block, from, inner) && finite(block, outer, to)) return mix_block<T, NV>(panel, block, from, ends);
    if constexpr (Products<T>::any_value) {
        see(inner, outer);
        mix_hidden<T, NV>(panel, block, from, to);
    }
}

// Masks: words of 32 keys that no lane reads are skipped, and those that all read need no mask.
template <class T, int NV>
void work_words(Panel<T> &panel, const KeyBlock<T> &block, int64_t from, int64_t to, bool general) {
    enum { skip, all, some };
    const Visible<T> &seen = *block.seen;
    const auto kind_of = [&](int64_t w) {
        const uint32_t here = range_word(from, to, w * word);
        return seen.any[w] == 0 ? skip : (seen.all[w] & here) == here && !general ? all : some;
    };
    for (int64_t w = from / word; w * word < to;) {
        const auto kind = kind_of(w);
        const int64_t start = most(from, w * word);
        while (w * word < to && kind_of(w) == kind) ++w;
        const int64_t end = least(to, w * word);
        if (kind == skip) continue;
        if (general) work_run<T, NV, Kind::general>(panel, block, start, end);
        else if (kind == all) work_run<T, NV, Kind::plain>(panel, block, start, end);
        else work_run<T, NV, Kind::hidden>(panel, block, start, end);
    }
}

// A lane that read keys of the block and has no score above −∞ has met an overflow: its sum becomes NaN, and the row is
// worked again in the end. One that read none is only hidden.
template <class T, int NV> void mark_lost(Panel<T> &panel, const KeyBlock<T> &block) {
    const T *const tops = panel.o + block.d_v * NV * W<T>;
    for (int v = 0; v < NV; ++v) {
        IVec<T> read{};
        for (const auto &bits : block.seen->bits) {
            IVec<T> some;
            __builtin_memcpy(&some, bits + v * W<T>, sizeof some);
            read |= some;
        }
        T *const sum = panel.o + (block.d_v + 1) * NV * W<T> + v * W<T>;
        const IVec<T> lost = (load<T>(tops + v * W<T>) == -infinity<T>)&(read != 0);
        store<T>(sum, lost ? splat<T>(static_cast<T>(__builtin_nan(""))) : load<T>(sum));
    }
}

// How much of the keys [from, to) a panel may read by the table of blocks, where there is one.
template <class T> Cover covered(const Panel<T> &panel, const hw_attention &call, int64_t from, int64_t to) {
    if (!call.blocks.data) return Cover::all;
    Cover cover = Cover::none;
    for (int i = 0; i < panel.count; ++i)
        cover = covered(call, panel.lane[i].blocks, i ? panel.lane[i - 1].blocks : nullptr, cover, from, to);
    return cover;
}

template <class T, int NV> void work_block(Panel<T> &panel, const KeyBlock<T> &block, int64_t keys) {
    constexpr int lanes = NV * W<T>;
    const hw_attention &call = *block.call;
    const int64_t from = most<int64_t>(0, panel.first - block.start);
    const int64_t to = least(least(key_block, keys - block.start), panel.last - block.start);
    if (from >= to) return;
    const Cover cover = covered(panel, call, block.start + from, block.start + to);
    if (cover == Cover::none) return;
    const bool masked = call.mask.data && call.mask.type == HW_BOOL;
    const bool general = block.biased || block.raw || block.cap > 0, whole = cover == Cover::all && !masked && !general;
    if (whole) work_range<T, NV>(panel, block, from, to);
    if (whole && !may_hide(call)) return;
    see_range(*block.seen, panel.lane, panel.count, lanes, block.start, 0, key_block);
    if (whole) return mark_lost<T, NV>(panel, block);
    if (cover == Cover::some) see_blocks(*block.seen, call, panel.lane, panel.count, lanes, block.start, keys);
    if (masked) see_mask(*block.seen, call.mask, panel.lane, panel.count, lanes, block.start, keys);
    if (block.biased)
        see_bias(*block.seen, block.bias, block.bias_rows, *block.group, panel.lane, panel.count, lanes, block.start,
                 keys);
    work_words<T, NV>(panel, block, from, to, general);
    if (may_hide(call)) mark_lost<T, NV>(panel, block);
}

} // namespace headwork::HW_CPU
#endif
