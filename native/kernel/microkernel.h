// The two micro-kernels, register-tiled matrix products. Queries lie in the vector lanes; keys and values are read one
// number at a time, where they are.
#ifndef HEADWORK_KERNEL_MICROKERNEL_H
#define HEADWORK_KERNEL_MICROKERNEL_H

#include <bit>

#include "simd.h"

namespace headwork::HW_CPU {

// NV vectors of lanes × KT keys (or columns) in registers: 12 accumulators of 16 registers, 24 of 32.
constexpr int accumulators = HW_BYTES == 64 ? 24 : 12;
constexpr int max_vectors = 3;
template <int NV> constexpr int tile_of = accumulators / NV;
// Near the diagonal, where a vector's length of keys is worked at once, the largest power of two.
template <int NV> constexpr int edge_tile = std::bit_floor(unsigned(tile_of<NV>));

// s[j][v] += Σ_c q[c][v] · k[j][c], but for the first `skip` vectors
template <class T, int NV, int KT, int skip = 0>
HW_INLINE void dot_tile(Vec<T> (&s)[KT][NV], const T *q, const T *k, int64_t k_row, int64_t d_k) {
#pragma GCC unroll 2
    for (int64_t c = 0; c < d_k; ++c) {
        Vec<T> lane[NV];
        HW_EACH(v, skip, NV) lane[v] = load<T>(q + (c * NV + v) * W<T>);
        HW_EACH(j, 0, KT)
            HW_EACH(v, skip, NV) s[j][v] += lane[v] * k[j * k_row + c];
    }
}

// Vector v of a panel, and those before it, read no key from the end ends[v] on.
template <int NV> struct Ends {
    int64_t of[NV];
};

// sum[c][v] += p[j][v] · value[j][c] for the keys j up to the end of vector `skip`; then the same for the vectors after
// it.
template <class T, int NV, int CT, int skip = 0>
HW_INLINE void mix_keys(Vec<T> (&sum)[CT][NV], const T *p, const T *value, int64_t v_row, const Ends<NV> &ends,
                        int64_t j = 0) {
#pragma GCC unroll 2
    for (; j < ends.of[skip]; ++j) {
        Vec<T> weight[NV];
        HW_EACH(v, skip, NV) weight[v] = load<T>(p + (j * NV + v) * W<T>);
        HW_EACH(c, 0, CT)
            HW_EACH(v, skip, NV) sum[c][v] += weight[v] * value[j * v_row + c];
    }
    if constexpr (skip + 1 < NV) mix_keys<T, NV, CT, skip + 1>(sum, p, value, v_row, ends, j);
}

// o[c][v] = or += Σ_j p[j][v] · value[j][c], for CT columns. The block is summed by itself before it is added: over
// many keys the rounding errors of a sum of sums stay far below those of one long sum.
template <class T, int NV, int CT>
HW_INLINE void mix_tile(T *o, const T *p, const T *value, int64_t v_row, const Ends<NV> &ends, bool first) {
    Vec<T> sum[CT][NV] = {};
    mix_keys<T, NV, CT>(sum, p, value, v_row, ends);
    HW_EACH(c, 0, CT)
        HW_EACH(v, 0, NV) {
            T *const to = o + (c * NV + v) * W<T>;
            if (first) store<T>(to, sum[c][v]);
            else add_to<T>(to, sum[c][v]);
        }
}

// sums[v] += Σ_j p[j][v]
template <class T, int NV> HW_INLINE void sum_tile(T *sums, const T *p, int64_t keys) {
    constexpr int parts = tile_of<NV>;
    Vec<T> sum[parts][NV] = {};
    int64_t j = 0;
    for (; j + parts <= keys; j += parts)
        HW_EACH(i, 0, parts)
            HW_EACH(v, 0, NV) sum[i][v] += load<T>(p + ((j + i) * NV + v) * W<T>);
    for (; j < keys; ++j)
        HW_EACH(v, 0, NV) sum[0][v] += load<T>(p + (j * NV + v) * W<T>);
    HW_EACH(i, 1, parts)
        HW_EACH(v, 0, NV) sum[0][v] += sum[i][v];
    HW_EACH(v, 0, NV) add_to<T>(sums + v * W<T>, sum[0][v]);
}

// o (d_v × lanes) += the weights p (keys × lanes) times the values (keys × d_v). Weights beyond a vector's end are
// zero. The `first` time o is written, whatever was there.
template <class T, int NV>
void mix(T *o, const T *p, const T *value, int64_t v_row, const Ends<NV> &ends, int64_t d_v, bool first) {
    constexpr int CT = tile_of<NV>, lanes = NV * W<T>;
    int64_t c = 0;
    for (; c + CT <= d_v; c += CT) mix_tile<T, NV, CT>(o + c * lanes, p, value + c, v_row, ends, first);
    if constexpr (CT > 4)
        for (; c + 4 <= d_v; c += 4) mix_tile<T, NV, 4>(o + c * lanes, p, value + c, v_row, ends, first);
    for (; c < d_v; ++c) mix_tile<T, NV, 1>(o + c * lanes, p, value + c, v_row, ends, first);
}

} // namespace headwork::HW_CPU
#endif
