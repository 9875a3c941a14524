// The two micro-kernels. Queries lie in the vector lanes; keys and values are read one number at a time, where they are.
#ifndef HEADWORK_KERNEL_TILES_H
#define HEADWORK_KERNEL_TILES_H

#include "vec.h"

namespace headwork::HW_CPU {

// NV vectors of lanes × KT keys (or columns) in registers: 12 accumulators of 16 registers, 24 of 32.
constexpr int accumulators = HW_BYTES == 64 ? 24 : 12;
constexpr int max_vectors = 3;
template <int NV> constexpr int tile_of = accumulators / NV;

// s[j][v] += Σ_c q[c][v] · k[j][c]
template <class T, int NV, int KT>
HW_INLINE void dot_tile(Vec<T> (&s)[KT][NV], const T *q, const T *k, int64_t k_row, int64_t d_k) {
#pragma GCC unroll 2
    for (int64_t c = 0; c < d_k; ++c) {
        Vec<T> lane[NV];
        HW_UNROLL for (int v = 0; v < NV; ++v) lane[v] = load<T>(q + (c * NV + v) * W<T>);
        HW_UNROLL for (int j = 0; j < KT; ++j)
            HW_UNROLL for (int v = 0; v < NV; ++v) s[j][v] += lane[v] * k[j * k_row + c];
    }
}

// o[c][v] += Σ_j p[j][v] · value[j][c], for CT columns. The block is summed by itself before it is added: over many keys
// the rounding errors of a sum of sums stay far below those of one long sum.
template <class T, int NV, int CT>
HW_INLINE void mix_tile(T *o, const T *p, const T *value, int64_t v_row, int64_t keys) {
    Vec<T> sum[CT][NV] = {};
#pragma GCC unroll 2
    for (int64_t j = 0; j < keys; ++j) {
        Vec<T> weight[NV];
        HW_UNROLL for (int v = 0; v < NV; ++v) weight[v] = load<T>(p + (j * NV + v) * W<T>);
        HW_UNROLL for (int c = 0; c < CT; ++c)
            HW_UNROLL for (int v = 0; v < NV; ++v) sum[c][v] += weight[v] * value[j * v_row + c];
    }
    HW_UNROLL for (int c = 0; c < CT; ++c)
        HW_UNROLL for (int v = 0; v < NV; ++v) add_to<T>(o + (c * NV + v) * W<T>, sum[c][v]);
}

// sums[v] += Σ_j p[j][v]
template <class T, int NV> HW_INLINE void sum_tile(T *sums, const T *p, int64_t keys) {
    constexpr int parts = tile_of<NV>;
    Vec<T> sum[parts][NV] = {};
    int64_t j = 0;
    for (; j + parts <= keys; j += parts)
        HW_UNROLL for (int i = 0; i < parts; ++i)
            HW_UNROLL for (int v = 0; v < NV; ++v) sum[i][v] += load<T>(p + ((j + i) * NV + v) * W<T>);
    for (; j < keys; ++j)
        HW_UNROLL for (int v = 0; v < NV; ++v) sum[0][v] += load<T>(p + (j * NV + v) * W<T>);
    HW_UNROLL for (int i = 1; i < parts; ++i) HW_UNROLL for (int v = 0; v < NV; ++v) sum[0][v] += sum[i][v];
    HW_UNROLL for (int v = 0; v < NV; ++v) add_to<T>(sums + v * W<T>, sum[0][v]);
}

// o (d_v × lanes) += the weights p (keys × lanes) times the values (keys × d_v), and the sums += those of the weights
template <class T, int NV>
void mix(T *o, const T *p, const T *value, int64_t v_row, int64_t keys, int64_t d_v) {
    constexpr int CT = tile_of<NV>, lanes = NV * W<T>;
    sum_tile<T, NV>(o + (d_v + 1) * lanes, p, keys);
    int64_t c = 0;
    for (; c + CT <= d_v; c += CT) mix_tile<T, NV, CT>(o + c * lanes, p, value + c, v_row, keys);
    if constexpr (CT > 4)
        for (; c + 4 <= d_v; c += 4) mix_tile<T, NV, 4>(o + c * lanes, p, value + c, v_row, keys);
    for (; c < d_v; ++c) mix_tile<T, NV, 1>(o + c * lanes, p, value + c, v_row, keys);
}

} // namespace headwork::HW_CPU
#endif
