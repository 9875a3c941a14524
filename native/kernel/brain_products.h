// The two products of the forward pass on bfloat16 numbers, two of them to a lane, in place of products.h. The CPU
// multiplies pairs and adds both products to a float32 (vdpbf16ps), or does so for whole tiles of pairs (HW_TILES:
// AMX).
//
// What rounds: the products of numbers are exact and summed in float32; scale · log2 e multiplies the float32 score, so
// that queries are not rounded twice. Weights are no bfloat16 numbers: with pairs they stay float32, as do the values
// they multiply; tiles take them in two parts, 16 bits of each, which the rounding of the result to bfloat16 covers.
#ifndef HEADWORK_KERNEL_BRAIN_PRODUCTS_H
#define HEADWORK_KERNEL_BRAIN_PRODUCTS_H

#include "convert.h"
#include "microkernel.h"
#ifdef HW_TILES
#include "tiles.h"
#endif

namespace headwork::HW_CPU {

typedef uint32_t Pair; // two bfloat16 numbers, the first in the lower half

HW_INLINE Words load_pairs(const Pair *from) {
    Words pairs;
    __builtin_memcpy(&pairs, from, sizeof pairs);
    return pairs;
}

#ifdef HW_TILES
template <class T> struct Products {
    using Query = Pair;                      // [d_k/2][lane], not scaled
    using Key = Brain;                       // [key][d_k], copied
    using Value = Pair;                      // two keys of one column: [d_v][key/2]
    static constexpr bool any_value = false; // brain_operands.h lets none but finite ones through
    static constexpr int64_t spare_rows = tile_rows;
    struct Own {
        T factor;            // scale · log2 e
        Pair *upper, *lower; // [key/2][lane]: weights = upper + lower
        T *tile;             // 16 columns of a product
    };
};

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

// Weights in two parts, two keys to a pair: the upper halves as they are, and what they leave, rounded.
template <class T, int NV> void split_weights(const typename Products<T>::Own &to, const T *p, int64_t pairs) {
    constexpr int lanes = NV * W<T>;
    for (int64_t j = 0; j < pairs; ++j)
        HW_EACH(v, 0, NV) {
            const int64_t at = j * lanes + v * W<T>;
            const Words first = load_pairs(reinterpret_cast<const Pair *>(p + j * lanes + at)),
                        second = load_pairs(reinterpret_cast<const Pair *>(p + j * lanes + at + lanes));
            const auto rest = [](Words weight) HW_LAMBDA { return (Vec<T>)weight - (Vec<T>)(weight & 0xffff0000u); };
            const Words upper = (second & 0xffff0000u) | first >> 16,
                        lower = to_brain(rest(second)) << 16 | to_brain(rest(first));
            __builtin_memcpy(to.upper + at, &upper, sizeof upper);
            __builtin_memcpy(to.lower + at, &lower, sizeof lower);
        }
    const size_t padding = static_cast<size_t>((tile_rows - pairs % tile_rows) % tile_rows * lanes) * sizeof(Pair);
    __builtin_memset(to.upper + pairs * lanes, 0, padding);
    __builtin_memset(to.lower + pairs * lanes, 0, padding);
}

// o (d_v × lanes) = or += the weights times the values of so many pairs of keys from `first` on, 16 columns at a time.
template <class T, int NV, class Block>
void mix_pairs(T *o, const Block &block, int64_t first, int64_t pairs, bool fresh) {
    constexpr int64_t lanes = NV * W<T>, row = lanes * int64_t(sizeof(T));
    for (int64_t c = 0; c < block.d_v; c += tile_rows) {
        each_tile<NV>([](auto v) { clear_tile<v>(); });
        for (int64_t j = 0; j < pairs; j += tile_rows) {
            load_tile<left_tile>(block.v + c * block.v_row + first + j, block.v_row * int64_t(sizeof(Pair)));
            each_tile<NV>([&](auto v) {
                load_tile<right_tile>(block.own.upper + j * lanes + v * W<T>, row);
                multiply_tiles<v, left_tile, right_tile>();
                load_tile<right_tile>(block.own.lower + j * lanes + v * W<T>, row);
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

template <class T> HW_INLINE void clear_row(T *row, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i += W<T>) store<T>(row + i, Vec<T>{});
}

template <class T, int NV, class Panel, class Block>
void mix_block(Panel &panel, const Block &block, int64_t from, const Ends<NV> &ends) {
    constexpr int64_t lanes = NV * W<T>;
    const int64_t first = from / 2, to = from + ends.of[NV - 1], pairs = (to + 1) / 2 - first;
    // The keys beside the first and the last, where those are halves of a pair, weigh nothing.
    if (from % 2) clear_row<T>(block.p + (from - 1) * lanes, lanes);
    if (to % 2) clear_row<T>(block.p + to * lanes, lanes);
    split_weights<T, NV>(block.own, block.p + 2 * first * lanes, pairs);
    mix_pairs<T, NV>(panel.o, block, first, pairs, panel.empty);
    panel.empty = false;
}
#else
template <class T> struct Products {
    using Query = Pair; // [d_k/2][lane], not scaled
    using Key = Brain;  // [key][d_k], where they lie or copied
    using Value = T;
    static constexpr bool any_value = true;
    static constexpr int64_t spare_rows = 0;
    struct Own {
        T factor; // scale · log2 e
    };
};

HW_INLINE Words spread_pair(const Brain *from) {
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

template <class T, int NV, class Panel, class Block>
void mix_block(Panel &panel, const Block &block, int64_t from, const Ends<NV> &ends) {
    mix<T, NV>(panel.o, block.p + from * NV * W<T>, block.v + from * block.v_row, block.v_row, ends, block.d_v,
               panel.empty);
    panel.empty = false;
}
#endif

} // namespace headwork::HW_CPU
#endif
