// Dropout from a counter-based generator: whether a weight is kept is a function of (seed, batch item, head, row,
// column) and of nothing else, so that every tiling, every number of threads and the backward pass drop the same ones.
// engine/dropout.py has the same function in NumPy.
#ifndef HEADWORK_KERNEL_DROPOUT_H
#define HEADWORK_KERNEL_DROPOUT_H

#include "lanes.h"

namespace headwork::HW_CPU {

constexpr int draw_bits = 24; // of a number drawn: few enough to be compared with a sign

struct RowKey {
    uint32_t low, high;
};

// One step of a well-known 64-bit generator (splitmix): every bit of the argument reaches every bit of the result.
HW_INLINE uint64_t scattered(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// A number between 0 and 2^24 for the column, from the key of its row, in every element of a vector.
template <class T> HW_INLINE IVec<T> drawn(BitVec<T> low, BitVec<T> high, BitVec<T> column) {
    constexpr typename Shape<T>::Bits half = 0xffffffffu; // the numbers have 32 bits, whatever the element
    BitVec<T> x = (column + low) & half;
    x ^= x >> 16;
    x = (x * 0x7feb352du) & half;
    x ^= x >> 15;
    x ^= high;
    x = (x * 0x846ca68bu) & half;
    x ^= x >> 16;
    return (IVec<T>)(x >> (32 - draw_bits));
}

template <class T> struct Dropout {
    bool on;
    typename Shape<T>::Int dropped = 0; // numbers below this one drop a weight
    T gain = 1;                         // what is kept is multiplied by this
    uint64_t seed = 0;

    explicit Dropout(const hw_attention &call) : on(call.dropout > 0) {
        if (!on) return;
        constexpr double all = 1 << draw_bits;
        const double below = __builtin_floor(call.dropout * all + 0.5);
        dropped = static_cast<typename Shape<T>::Int>(below);
        gain = below < all ? static_cast<T>(all / (all - below)) : T(0);
        seed = call.seed;
    }

    RowKey key(int64_t item, int64_t head, int64_t row) const {
        uint64_t x = scattered(seed);
        x = scattered(x ^ static_cast<uint64_t>(item));
        x = scattered(x ^ static_cast<uint64_t>(head));
        x = scattered(x ^ static_cast<uint64_t>(row));
        return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
    }

    // Which of the columns, one in every element, are kept in the row, or rows, of these keys.
    HW_INLINE IVec<T> keeps(BitVec<T> low, BitVec<T> high, BitVec<T> column) const {
        return drawn<T>(low, high, column) >= dropped;
    }
    HW_INLINE IVec<T> keeps(RowKey row, int64_t column) const {
        BitVec<T> at;
        HW_EACH(i, 0, W<T>) at[i] = static_cast<typename Shape<T>::Bits>(i);
        const BitVec<T> none{};
        return keeps(none + row.low, none + row.high, at + static_cast<typename Shape<T>::Bits>(column));
    }
};

} // namespace headwork::HW_CPU
#endif
