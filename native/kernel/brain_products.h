// The two products of the forward pass on bfloat16 numbers, two of them to a lane: the CPU multiplies pairs and adds
// both products to a float32 (vdpbf16ps), or whole tiles of pairs (HW_TILES: AMX). In place of products.h.
//
// What rounds: the products are exact and summed in float32; scale · log2 e multiplies the float32 score; a weight is
// rounded to bfloat16 before it meets its values, and the output is divided by the sum of the rounded ones, so that a
// row that reads one key is that key's value. The log-sum-exp is that of the weights before.
#ifndef HEADWORK_KERNEL_BRAIN_PRODUCTS_H
#define HEADWORK_KERNEL_BRAIN_PRODUCTS_H

#include "convert.h"
#include "microkernel.h"
#ifdef HW_TILES
#include "tiles.h"
#endif

namespace headwork::HW_CPU {

typedef uint32_t Pair; // two bfloat16 numbers, the first in the lower half

template <class T> struct Products {
    using Query = Pair; // [d_k/2][lane], not scaled
    using Key = Brain;  // [key][d_k], where they lie or copied
    using Value = Pair; // two keys of one column: [key/2][d_v], or for tiles [d_v][key/2]
    static constexpr int64_t sums = 2;
    static constexpr bool any_value = false; // brain_operands.h lets none but finite ones through
    static constexpr int64_t spare_rows = 16;
    struct Own {
        T factor; // scale · log2 e
        Pair *p;  // [key/2][lane], rounded weights
        T *tile;  // for tiles: 16 columns of a product
    };
};

HW_INLINE Words load_pairs(const Pair *from) {
    Words pairs;
    __builtin_memcpy(&pairs, from, sizeof pairs);
    return pairs;
}

HW_INLINE Words spread_pair(const void *from) {
    Pair pair;
    __builtin_memcpy(&pair, from, sizeof pair);
    return Words{} + pair;
}

HW_INLINE Vec<float> add_products(Vec<float> sum, Words a, Words b) {
#ifdef __AVX512BF16__
    return (Vec<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else // in the instruction's order, with each product exact
    sum += (Vec<float>)(a & 0xffff0000u) * (Vec<float>)(b & 0xffff0000u);
    return sum + (Vec<float>)(a << 16) * (Vec<float>)(b << 16);
#endif
}

HW_INLINE Words round_to_pairs(Vec<float> first, Vec<float> second) {
#ifdef __AVX512BF16__
    alignas(64) static constexpr uint16_t by_turns[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512bh halves = _mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    return (Words)_mm512_maskz_permutexvar_epi16(0xffffffffu, _mm512_load_si512(by_turns), (__m512i)halves);
#else
    return to_brain(first) | to_brain(second) << 16;
#endif
}

#ifdef HW_TILES
// The raw scores of the keys [from, to), and of a few more, where their weights will stand.
template <class T, int NV, class Panel, class Block>
void ready(const Panel &panel, const Block &block, int64_t from, int64_t to) {
    constexpr int64_t lanes = NV * W<T>;
    const int64_t pairs = (block.d_k + 1) / 2, k_row = block.k_row * int64_t(sizeof(Brain));
    for (int64_t j = from; j < to; j += tile_rows) {
        each_tile<NV>([](auto v) { clear_tile<v>(); });
        for (int64_t c = 0; c < pairs; c += tile_rows) {
            load_tile<left_tile>(block.k + j * block.k_row + 2 * c, k_row);
            each_tile<NV>([&](auto v) {
                load_tile<right_tile>(panel.q + c * lanes + v * W<T>, lanes * int64_t(sizeof(Pair)));
                multiply_tiles<v, left_tile, right_tile>();
            });
        }
        each_tile<NV>([&](auto v) { store_tile<v>(block.p + j * lanes + v * W<T>, lanes * int64_t(sizeof(T))); });
    }
}

template <class T, int NV, int KT, int skip, class Panel, class Block>
HW_INLINE void score(Vec<T> (&s)[KT][NV], const Panel &, const Block &block, int64_t j) {
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) s[i][v] = load<T>(block.p + ((j + i) * NV + v) * W<T>) * block.own.factor;
}

// The same result as below, 16 columns at a time.
template <class T, int NV, class Block>
void mix_pairs(T *o, const Block &block, int64_t first, const Ends<NV> &pairs, bool fresh) {
    constexpr int64_t lanes = NV * W<T>, row = lanes * int64_t(sizeof(T));
    for (int64_t c = 0; c < block.d_v; c += tile_rows) {
        each_tile<NV>([](auto v) { clear_tile<v>(); });
        for (int64_t j = 0; j < pairs.of[NV - 1]; j += tile_rows) {
            load_tile<left_tile>(block.v + c * block.v_row + first + j, block.v_row * int64_t(sizeof(Pair)));
            each_tile<NV>([&](auto v) {
                load_tile<right_tile>(block.own.p + j * lanes + v * W<T>, row);
                multiply_tiles<v, left_tile, right_tile>();
            });
        }
        each_tile<NV>([&](auto v) { store_tile<v>(block.own.tile + v * W<T>, row); });
        for (int64_t i = 0; i < least(tile_rows, block.d_v - c) * lanes; i += W<T>) {
            const Vec<T> sum = load<T>(block.own.tile + i);
            if (fresh) store<T>(o + c * lanes + i, sum);
            else add_to<T>(o + c * lanes + i, sum);
        }
    }
}
#else
template <class T, int NV, class Panel, class Block>
HW_INLINE void ready(const Panel &, const Block &, int64_t, int64_t) {}

template <class T, int NV, int KT, int skip, class Panel, class Block>
HW_INLINE void score(Vec<T> (&s)[KT][NV], const Panel &panel, const Block &block, int64_t j) {
    const Brain *const k = block.k + j * block.k_row;
    const int64_t pairs = (block.d_k + 1) / 2, k_row = block.k_row;
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) s[i][v] = Vec<T>{};
#pragma GCC unroll 2
    for (int64_t c = 0; c < pairs; ++c) {
        Words lane[NV];
        HW_EACH(v, skip, NV) lane[v] = load_pairs(panel.q + (c * NV + v) * W<T>);
        HW_EACH(i, 0, KT) {
            const Words key = spread_pair(k + i * k_row + 2 * c);
            HW_EACH(v, skip, NV) s[i][v] = add_products(s[i][v], key, lane[v]);
        }
    }
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) s[i][v] *= block.own.factor;
}

// As mix_keys, two keys at a time.
template <class T, int NV, int CT, int skip = 0>
HW_INLINE void mix_two_keys(Vec<T> (&sum)[CT][NV], const Pair *p, const Pair *value, int64_t v_row,
                            const Ends<NV> &pairs, int64_t j = 0) {
#pragma GCC unroll 2
    for (; j < pairs.of[skip]; ++j) {
        Words weight[NV];
        HW_EACH(v, skip, NV) weight[v] = load_pairs(p + (j * NV + v) * W<T>);
        HW_EACH(c, 0, CT) {
            const Words both = spread_pair(value + j * v_row + c);
            HW_EACH(v, skip, NV) sum[c][v] = add_products(sum[c][v], both, weight[v]);
        }
    }
    if constexpr (skip + 1 < NV) mix_two_keys<T, NV, CT, skip + 1>(sum, p, value, v_row, pairs, j);
}

template <class T, int NV, int CT>
HW_INLINE void mix_columns(T *o, const Pair *p, const Pair *value, int64_t v_row, const Ends<NV> &pairs, bool fresh) {
    Vec<T> sum[CT][NV] = {};
    mix_two_keys<T, NV, CT>(sum, p, value, v_row, pairs);
    HW_EACH(c, 0, CT)
        HW_EACH(v, 0, NV) {
            T *const to = o + (c * NV + v) * W<T>;
            if (fresh) store<T>(to, sum[c][v]);
            else add_to<T>(to, sum[c][v]);
        }
}

// o (d_v × lanes) = or += the rounded weights times the values, from the pair of keys `first` on.
template <class T, int NV, class Block>
void mix_pairs(T *o, const Block &block, int64_t first, const Ends<NV> &pairs, bool fresh) {
    constexpr int CT = tile_of<NV>, lanes = NV * W<T>;
    const Pair *const p = block.own.p, *const value = block.v + first * block.v_row;
    const int64_t row = block.v_row, d_v = block.d_v;
    int64_t c = 0;
    for (; c + CT <= d_v; c += CT) mix_columns<T, NV, CT>(o + c * lanes, p, value + c, row, pairs, fresh);
    if constexpr (CT > 4)
        for (; c + 4 <= d_v; c += 4) mix_columns<T, NV, 4>(o + c * lanes, p, value + c, row, pairs, fresh);
    for (; c < d_v; ++c) mix_columns<T, NV, 1>(o + c * lanes, p, value + c, row, pairs, fresh);
}
#endif

// Weights [2·first, 2·(first + count)) rounded, two keys to a pair, and the sums of the rounded ones.
template <class T, int NV> void round_weights(T *sums, Pair *to, const T *p, int64_t count) {
    constexpr int lanes = NV * W<T>;
    const Words ones = Words{} + 0x3f803f80u;
    Vec<T> sum[NV] = {};
    for (int64_t j = 0; j < count; ++j)
        HW_EACH(v, 0, NV) {
            const T *const from = p + 2 * j * lanes + v * W<T>;
            const Words pairs = round_to_pairs(load<T>(from), load<T>(from + lanes));
            __builtin_memcpy(to + j * lanes + v * W<T>, &pairs, sizeof pairs);
            sum[v] = add_products(sum[v], pairs, ones);
        }
    HW_EACH(v, 0, NV) add_to<T>(sums + v * W<T>, sum[v]);
}

template <class T> HW_INLINE void clear_row(T *row, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i += W<T>) store<T>(row + i, Vec<T>{});
}

template <class T, int NV, class Panel, class Block>
void mix_block(Panel &panel, const Block &block, int64_t from, const Ends<NV> &ends) {
    constexpr int64_t lanes = NV * W<T>;
    const int64_t odd = from % 2, first = from / 2, to = from + ends.of[NV - 1];
    // The keys beside the first and the last, where those are halves of a pair, weigh nothing.
    if (odd) clear_row<T>(block.p + (from - 1) * lanes, lanes);
    if (to % 2) clear_row<T>(block.p + to * lanes, lanes);
    Ends<NV> pairs;
    for (int v = 0; v < NV; ++v) pairs.of[v] = (odd + ends.of[v] + 1) / 2;
    const int64_t count = pairs.of[NV - 1];
    round_weights<T, NV>(panel.o + (block.d_v + 2) * lanes, block.own.p, block.p + 2 * first * lanes, count);
#ifdef HW_TILES
    const int64_t rest = (tile_rows - count % tile_rows) % tile_rows * lanes; // up to a whole tile
    __builtin_memset(block.own.p + count * lanes, 0, static_cast<size_t>(rest) * sizeof(Pair));
#endif
    mix_pairs<T, NV>(panel.o, block, first, pairs, panel.empty);
    panel.empty = false;
}

} // namespace headwork::HW_CPU
#endif
