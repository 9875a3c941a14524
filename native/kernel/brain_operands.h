// What the products of bfloat16 numbers read, laid out in pairs. In place of operands.h.
//
// When a call is for them at all is said here, and nowhere else. `suits`: q, k and v are bfloat16 with columns side by
// side, and for tiles out too, which shows no more than the 16 bits they take of a weight; the scale is of ordinary
// size, so that an unscaled score leaves float32 only where a scaled one is far out too. `usual`: every number that
// enters such a product is zero or normal. The instructions take numbers below the least normal one for zero, and
// whatever is not finite has rules that products.h keeps. A call in which a number turns out not to be usual is worked
// the float32 way from its beginning.
#ifndef HEADWORK_KERNEL_BRAIN_OPERANDS_H
#define HEADWORK_KERNEL_BRAIN_OPERANDS_H

#include "softmax.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

inline bool suits(const hw_attention &of) {
    const double size = of.scale < 0 ? -of.scale : of.scale;
    const auto brains = [](const hw_array &array) {
        return array.type == HW_BFLOAT16 && array.column == sizeof(Brain);
    };
#ifdef HW_TILES
    if (of.out.type != HW_BFLOAT16) return false;
#endif
    return brains(of.q) && brains(of.k) && brains(of.v) && size > 0x1p-40 && size < 0x1p40;
}

typedef uint16_t Brains __attribute__((vector_size(HW_BYTES)));

// Whether `count` rows, `row` bytes apart, of `width` numbers are usual.
inline bool usual(const char *rows, int64_t row, int64_t count, int64_t width) {
    const int64_t bytes = width * static_cast<int64_t>(sizeof(Brain));
    BitVec<float> odd = {};
    const auto look = [&](const char *from) HW_LAMBDA {
        Brains numbers;
        __builtin_memcpy(&numbers, from, sizeof numbers);
        const Brains size = numbers & uint16_t(0x7fff);
        odd |= (BitVec<float>)((size != 0) & (size - uint16_t(0x80) >= uint16_t(0x7f00)));
    };
    for (int64_t r = 0; r < count; ++r) {
        const char *const from = rows + r * row;
        int64_t at = 0;
        for (; at + HW_BYTES <= bytes; at += HW_BYTES) look(from + at);
        if (at == bytes) continue;
        char rest[HW_BYTES] = {};
        __builtin_memcpy(rest, from + at, static_cast<size_t>(bytes - at));
        look(rest);
    }
    return !any<float>(odd != 0);
}

template <class T> struct Operands {
#ifdef HW_TILES
    static constexpr int64_t row_pairs = tile_rows; // rows of keys and queries are padded to so many pairs
    static constexpr int64_t value_row = key_block / 2 + tile_rows;
    Tiles tiles;
#else
    static constexpr int64_t row_pairs = 1;
#endif
    const hw_attention &of;
    bool k_direct;
    Brain *k_copy = nullptr;
    typename Products<T>::Value *values = nullptr;

#ifdef HW_TILES
    explicit Operands(const hw_attention &call) : of(call), k_direct(false) {} // 16 keys, also where fewer are left
#else
    explicit Operands(const hw_attention &call) : of(call) {
        constexpr int64_t far = 4096; // as in operands.h
        const int64_t row = of.k.row < 0 ? -of.k.row : of.k.row;
        k_direct = of.d_k % 2 == 0 && row % int64_t(sizeof(Brain)) == 0 && row < far;
    }
#endif

    static int64_t query_pairs(const hw_attention &of) {
        return ((of.d_k + 1) / 2 + row_pairs - 1) / row_pairs * row_pairs;
    }
    static int64_t query_size(const hw_attention &of) { return query_pairs(of) * max_lanes<T>; }

    void carve(Carve &from, KeyBlock<T> &block) {
        block.own.factor = static_cast<T>(of.scale * 1.4426950408889634074);
#ifdef HW_TILES
        block.own.upper = from.take<Pair>(value_row * max_lanes<T>);
        block.own.lower = from.take<Pair>(value_row * max_lanes<T>);
        block.own.tile = from.take<T>(tile_rows * max_lanes<T>);
        values = from.take<Pair>((of.d_v + tile_rows - 1) / tile_rows * tile_rows * value_row);
#else
        values = from.take<T>(key_block * values_row());
#endif
        k_copy = k_direct ? nullptr : from.take<Brain>((key_block + Products<T>::spare_rows) * 2 * query_pairs(of));
    }

    bool in_place() const { return false; }

    // q[c/2][lane], lanes without a query zero.
    bool lay_queries(Panel<T> &panel) const {
        const int lanes = panel.vectors * W<T>;
        const int64_t pairs = query_pairs(of), bytes = of.d_k * int64_t(sizeof(Brain));
        for (int i = 0; i < panel.count; ++i)
            if (!usual(panel.lane[i].q, 0, 1, of.d_k)) return false;
        for (int i = 0; i < lanes; i += W<T>)
            for (int64_t c = 0; c < pairs; c += W<T>) {
                Vec<T> part[W<T>] = {};
                const int64_t at = c * int64_t(sizeof(Pair)), length = least<int64_t>(sizeof part[0], bytes - at);
                for (int j = 0; j < W<T> && i + j < panel.count && length > 0; ++j) {
                    const char *const from = panel.lane[i + j].q + at;
                    if (length == sizeof part[0]) part[j] = load_as<T, T>(from);
                    else __builtin_memcpy(&part[j], from, static_cast<size_t>(length));
                }
                transpose<T>(part);
                HW_EACH(j, 0, W<T>)
                    if (c + j < pairs) __builtin_memcpy(panel.q + (c + j) * lanes + i, &part[j], sizeof part[j]);
            }
        return true;
    }

    bool lay_keys(KeyBlock<T> &block, const Group &group, int64_t keys) const {
        const char *const k = group.k + block.start * of.k.row, *const v = group.v + block.start * of.v.row;
        if (!usual(k, of.k.row, keys, of.d_k)) return false;
        block.k = reinterpret_cast<const Brain *>(k);
        block.k_row = of.k.row / int64_t(sizeof(Brain));
        if (!k_direct) copy_keys(block, k, keys);
        block.v = values;
        return lay_values(block, v, keys);
    }

  private:
    // Rows padded with zeros to whole pairs or tiles, and rows of zeros after the last.
    void copy_keys(KeyBlock<T> &block, const char *from, int64_t keys) const {
        block.k = k_copy;
        block.k_row = 2 * query_pairs(of);
        const int64_t row = block.k_row * int64_t(sizeof(Brain)), bytes = of.d_k * int64_t(sizeof(Brain));
        char *const to = reinterpret_cast<char *>(k_copy);
        for (int64_t j = 0; j < keys; ++j) {
            __builtin_memcpy(to + j * row, from + j * of.k.row, static_cast<size_t>(bytes));
            __builtin_memset(to + j * row + bytes, 0, static_cast<size_t>(row - bytes));
        }
        __builtin_memset(to + keys * row, 0, static_cast<size_t>(Products<T>::spare_rows * row));
    }

#ifdef HW_TILES
    // W columns of two keys side by side; a key that is not there is zero.
    Words two_keys(const char *v, int64_t j, int64_t keys, int64_t c) const {
        const int64_t at = c * int64_t(sizeof(Brain)), length = of.d_v * int64_t(sizeof(Brain)) - at;
        const auto row = [&](int64_t key) HW_LAMBDA {
            if (key >= keys || length <= 0) return Words{};
            if (length >= int64_t(sizeof(Halves))) return widened(v + key * of.v.row + at);
            char some[sizeof(Halves)] = {};
            __builtin_memcpy(some, v + key * of.v.row + at, static_cast<size_t>(length));
            return widened(some);
        };
        return row(j) | row(j + 1) << 16;
    }

    bool lay_values(KeyBlock<T> &block, const char *v, int64_t keys) const {
        if (!usual(v, of.v.row, keys, of.d_v)) return false;
        block.v_row = value_row;
        for (int64_t c = 0; c < of.d_v; c += W<T>)
            for (int64_t j = 0; j < value_row; j += W<T>) {
                Vec<T> part[W<T>];
                HW_EACH(i, 0, W<T>) part[i] = (Vec<T>)two_keys(v, 2 * (j + i), keys, c);
                transpose<T>(part);
                HW_EACH(i, 0, W<T>) __builtin_memcpy(values + (c + i) * value_row + j, &part[i], sizeof part[i]);
            }
        return true;
    }
#else
    int64_t values_row() const { return (of.d_v + W<T> - 1) / W<T> * W<T>; }

    bool lay_values(KeyBlock<T> &block, const char *v, int64_t keys) const {
        block.v_row = values_row();
        for (int64_t j = 0; j < keys; ++j)
            read_row<T, Brain>(values + j * block.v_row, v + j * of.v.row, of.v.column, of.d_v);
        return true;
    }
#endif
};

} // namespace headwork::HW_CPU
#endif
