// Micro-kernel of the backward pass, a register-tiled matrix product: every product of it is this one, on other arrays.
#ifndef HEADWORK_KERNEL_BACKWARD_MICROKERNEL_H
#define HEADWORK_KERNEL_BACKWARD_MICROKERNEL_H

#include "microkernel.h"

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
        HW_EACH(v, 0, NV) lane[v] = load<T>(b + t * b_row + v * W<T>);
        HW_EACH(r, 0, R)
            HW_EACH(v, 0, NV) sum[r][v] += lane[v] * a.data[r * a.row + t * a.step];
    }
}

struct Span {
    int64_t from, to;
};

constexpr int64_t row_step = 4; // rows are counted in these

// Tiles of R rows, then of fewer, until all rows are worked.
template <class T, int NV, int R, class Spans, class Take>
HW_INLINE void tiles_of_product(Span rows, Terms<T> a, const T *b, int64_t b_row, Spans span, Take take) {
    int64_t r = rows.from;
    for (; r + R <= rows.to; r += R) {
        const Span terms = span(r, r + R - 1);
        const Terms<T> from{a.data + r * a.row + terms.from * a.step, a.row, a.step};
        Vec<T> sum[R][NV] = {};
        product_tile<T, NV, R>(sum, from, b + terms.from * b_row, b_row, terms.to - terms.from);
        HW_EACH(i, 0, R)
            HW_EACH(v, 0, NV) take(r + i, v, sum[i][v]);
    }
    constexpr int fewest = tile_of<NV> % row_step ? 2 : row_step;
    if constexpr (R > fewest)
        tiles_of_product<T, NV, (R > 12 ? 8 : R > 4 ? 4 : 2)>({r, rows.to}, a, b, b_row, span, take);
}

// NV vectors of columns of a·b for some rows, handed to take(row, vector, sum) as they are done; the rows from `first`
// to `last` have the terms span(first, last). By itself, so that nothing a caller keeps in registers takes them from
// the sums.
template <class T, int NV, class Spans, class Take>
__attribute__((noinline)) void columns_of_product(Span rows, Terms<T> a, const T *b, int64_t b_row, Spans span,
                                                  Take take) {
    tiles_of_product<T, NV, tile_of<NV>>(rows, a, b, b_row, span, take);
}

// How many vectors of columns to work at once where so many are left: 4 of 32 registers' worth, 3 of 16. A rest of one
// more is shared out, as one alone loads more than it multiplies.
constexpr int widest = HW_BYTES == 64 ? 4 : 3;
constexpr int64_t vectors_at_once(int64_t left) {
    if (widest == 4 && (left % 4 == 0 || left > 6)) return 4;
    return left == 3 || left > 4 ? 3 : least<int64_t>(left, 2);
}

template <int NV> struct Vectors {
    static constexpr int count = NV;
};

// f(Vectors<count>), for a count that vectors_at_once gives.
template <int NV = widest, class F> HW_INLINE void with_vectors(int64_t count, F f) {
    if constexpr (NV > 1)
        if (count != NV) return with_vectors<NV - 1>(count, f);
    f(Vectors<NV>{});
}

// NV vectors of columns of c += a·b. The terms are summed by themselves before they are added, as in mix_tile.
template <class T, int NV, class Spans>
HW_INLINE void add_columns(T *c, int64_t c_row, int64_t rows, Terms<T> a, const T *b, int64_t b_row, Spans span) {
    columns_of_product<T, NV>({0, rows}, a, b, b_row, span, [=](int64_t r, int v, Vec<T> sum) HW_LAMBDA {
        add_to<T>(c + r * c_row + v * W<T>, sum);
    });
}

// c (rows × columns) += a·b. `rows` is a multiple of `row_step`, `columns` of W.
template <class T, class Spans>
void add_product(T *c, int64_t c_row, int64_t rows, int64_t columns, Terms<T> a, const T *b, int64_t b_row,
                 Spans span) {
    for (int64_t done = 0; done < columns;) {
        const int64_t taken = vectors_at_once((columns - done) / W<T>);
        with_vectors(taken, [=](auto vectors) HW_LAMBDA {
            add_columns<T, decltype(vectors)::count>(c + done, c_row, rows, a, b + done, b_row, span);
        });
        done += taken * W<T>;
    }
}

// `width` rows of `from` as the columns of b: to[c][j] = from[j][c]. Both counts are multiples of W.
template <class T> void turn_rows(T *to, const T *from, int64_t row, int64_t width, int64_t columns) {
    for (int64_t j = 0; j < width; j += W<T>)
        for (int64_t c = 0; c < columns; c += W<T>) {
            Vec<T> part[W<T>];
            HW_EACH(i, 0, W<T>) part[i] = load<T>(from + (j + i) * row + c);
            transpose<T>(part);
            HW_EACH(i, 0, W<T>) store<T>(to + (c + i) * width + j, part[i]);
        }
}

} // namespace headwork::HW_CPU
#endif
