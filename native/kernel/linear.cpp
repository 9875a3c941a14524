// Linear layer, a matrix product with an epilogue: rows times a matrix, plus a bias, register-tiled by
// the backward pass's micro-kernel. A worker packs a strip of the matrix, a few of its columns at a time, and passes
// the rows by.
#include "../attention.h"
#include "backward_microkernel.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

namespace {

using Number = float;
// Terms that are summed by themselves, as many as a strip has packed: in the second-level cache, and no more, for the
// rounding errors of one long sum grow.
constexpr int64_t depth = 256;

struct LinearCall {
    const hw_linear &of;
    int64_t strips = 0, bands = 0, band_rows = 0; // strips of outputs, bands of rows
    Team<Number> team{};

    // Every output is summed in one order, however the rows and the outputs are cut.
    LinearCall(const hw_linear &call, int threads) : of(call) {
        for (int64_t first = 0; first < of.outputs; first += width_at(first)) ++strips;
        const int64_t wanted = (4 * threads + strips - 1) / strips;
        band_rows = most<int64_t>(rounded_up((of.rows + wanted - 1) / wanted), 128);
        bands = (of.rows + band_rows - 1) / band_rows;
        team.items = strips * bands;
        team.parts = 1;
    }

    int64_t width_at(int64_t first) const { return vectors_at_once((of.outputs - first) / W<Number>) * W<Number>; }

    static int64_t rounded_up(int64_t rows) { return (rows + row_step - 1) / row_step * row_step; }
};

struct LinearWorker {
    LinearCall &shared;
    const hw_linear &of = shared.of;
    Number *strip = nullptr, *none = nullptr;
    Number *rest = nullptr, *rest_out = nullptr; // the last rows, where they are no whole step

    int64_t carve(char *memory) {
        Carve from{memory};
        strip = from.take<Number>(depth * widest * W<Number>);
        none = from.take<Number>(widest * W<Number>);
        rest = from.take<Number>(row_step * of.inputs);
        rest_out = from.take<Number>(row_step * widest * W<Number>);
        return from.used;
    }

    void work(int64_t item) {
        int64_t first = 0;
        for (int64_t before = item / shared.bands; before > 0; --before) first += shared.width_at(first);
        const int64_t width = shared.width_at(first), row0 = item % shared.bands * shared.band_rows;
        const int64_t count = least(shared.band_rows, of.rows - row0), whole = count / row_step * row_step;
        const Number *const x = of.x + row0 * of.x_row;
        Number *const out = of.out + row0 * of.out_row + first;
        if (whole < count) copy_rest(x + whole * of.x_row, count - whole);
        for (int64_t c = 0; c < width; c += W<Number>) store<Number>(none + c, Vec<Number>{});
        const Number *const bias = of.bias ? of.bias + first : none;
        for (int64_t done = 0; done < of.inputs; done += depth) {
            const int64_t terms = least(depth, of.inputs - done);
            pack(first, width, done, terms);
            const Number *const added = done ? nullptr : bias;
            add_rows(out, of.out_row, whole, width, {x + done, of.x_row, 1}, terms, added);
            if (whole < count) add_rows(rest_out, width, row_step, width, {rest + done, of.inputs, 1}, terms, added);
        }
        for (int64_t r = whole; r < count; ++r)
            __builtin_memcpy(out + r * of.out_row, rest_out + (r - whole) * width, width * sizeof(Number));
    }

    // Some inputs of the strip's outputs, row by row.
    void pack(int64_t first, int64_t width, int64_t done, int64_t terms) {
        if (of.turned)
            return turn_rows(strip, of.weights + first * of.weights_row + done, of.weights_row, width, terms);
        const Number *from = of.weights + done * of.weights_row + first;
        for (int64_t t = 0; t < terms; ++t, from += of.weights_row)
            for (int64_t c = 0; c < width; c += W<Number>) store<Number>(strip + t * width + c, load<Number>(from + c));
    }

    // The rows times the strip, added to what stands in `out` or, the first time, to the bias.
    void add_rows(Number *out, int64_t out_row, int64_t rows, int64_t width, Terms<Number> x, int64_t terms,
                  const Number *bias) const {
        const Number *const from = bias ? bias : out;
        const int64_t from_row = bias ? 0 : out_row;
        with_vectors(width / W<Number>, [=, this](auto vectors) HW_LAMBDA {
            columns_of_product<Number, decltype(vectors)::count>(
                {0, rows}, x, strip, width, [=](int64_t, int64_t) { return Span{0, terms}; },
                [=](int64_t r, int v, Vec<Number> sum) HW_LAMBDA {
                    store<Number>(out + r * out_row + v * W<Number>,
                                  sum + load<Number>(from + r * from_row + v * W<Number>));
                });
        });
    }

    void copy_rest(const Number *x, int64_t rows) {
        __builtin_memset(rest, 0, row_step * of.inputs * sizeof(Number));
        for (int64_t r = 0; r < rows; ++r)
            __builtin_memcpy(rest + r * of.inputs, x + r * of.x_row, of.inputs * sizeof(Number));
    }
};

} // namespace

int linear_call(const hw_linear *of, int threads) {
    if (of->rows < row_step || of->inputs == 0 || of->outputs == 0) return HW_NOT_SUITED;
    if (of->inputs % W<Number> || of->outputs % W<Number>) return HW_NOT_SUITED;
    LinearCall shared(*of, threads);
    const double work =
        static_cast<double>(of->rows) * static_cast<double>(of->inputs) * static_cast<double>(of->outputs);
    return run_team<LinearWorker>(shared, threads, work);
}

} // namespace headwork::HW_CPU
