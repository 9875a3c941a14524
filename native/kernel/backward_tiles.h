// The micro-kernel of the backward pass: every product of it is this one, on other arrays.
#ifndef HEADWORK_KERNEL_BACKWARD_TILES_H
#define HEADWORK_KERNEL_BACKWARD_TILES_H

#include "tiles.h"

namespace headwork::HW_CPU {

// Numbers that are read one at a time: `row` apart from row to row, `step` from term to term.
template <class T> struct Terms {
    const T *data;
    int64_t row, step;
};

// sum[r][v] += Σ_t a(r, t) · b[t][v]
template <class T, int NV, int R>
HW_INLINE void product_tile(Vec<T> (&sum)[R][NV], Terms<T> a, const T *b, int64_t b_row, int64_t terms) {
#pragma GCC unroll 2
    for (int64_t t = 0; t < terms; ++t) {
        Vec<T> lane[NV];
        HW_UNROLL for (int v = 0; v < NV; ++v) lane[v] = load<T>(b + t * b_row + v * W<T>);
        HW_UNROLL for (int r = 0; r < R; ++r)
            HW_UNROLL for (int v = 0; v < NV; ++v) sum[r][v] += lane[v] * a.data[r * a.row + t * a.step];
    }
}

// NV vectors of columns of c = or += a·b. The terms are summed by themselves before they are added, as in mix_tile. By
// itself, so that nothing a caller keeps in registers takes them from the sums.
template <class T, int NV, bool adds>
__attribute__((noinline)) void columns_of_product(T *c, int64_t c_row, int64_t rows, Terms<T> a, const T *b, int64_t b_row,
                                                  int64_t terms) {
    constexpr int R = tile_of<NV>;
    for (int64_t r = 0; r < rows; r += R, a.data += R * a.row, c += R * c_row) {
        Vec<T> sum[R][NV] = {};
        product_tile<T, NV, R>(sum, a, b, b_row, terms);
        HW_UNROLL for (int i = 0; i < R; ++i) HW_UNROLL for (int v = 0; v < NV; ++v) {
            T *const to = c + i * c_row + v * W<T>;
            if constexpr (adds) add_to<T>(to, sum[i][v]);
            else store<T>(to, sum[i][v]);
        }
    }
}

// c (rows × columns) += a·b. `rows` is a multiple of `accumulators`, `columns` of W.
template <class T>
void add_product(T *c, int64_t c_row, int64_t rows, int64_t columns, Terms<T> a, const T *b, int64_t b_row, int64_t terms) {
    for (int64_t done = 0; done < columns;) {
        const int64_t left = (columns - done) / W<T>; // a rest of four vectors is two and two: one alone runs at half speed
        const int64_t taken = left == 3 || left > 4 ? 3 : least<int64_t>(left, 2);
        if (taken == 3) columns_of_product<T, 3, true>(c + done, c_row, rows, a, b + done, b_row, terms);
        else if (taken == 2) columns_of_product<T, 2, true>(c + done, c_row, rows, a, b + done, b_row, terms);
        else columns_of_product<T, 1, true>(c + done, c_row, rows, a, b + done, b_row, terms);
        done += taken * W<T>;
    }
}

} // namespace headwork::HW_CPU
#endif
