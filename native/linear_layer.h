// The call of a linear layer: whether its arrays are such as its kernel reads, and the call itself.
#ifndef HEADWORK_LINEAR_LAYER_H
#define HEADWORK_LINEAR_LAYER_H

#include "call.h"

namespace headwork {

// float32 numbers side by side along one axis, and whole numbers apart along the other: `row`, counted from the end.
inline bool is_rows(const View &view, int row) {
    constexpr int64_t item = sizeof(float);
    const int column = 3 - row;
    return view.there() && view.known_type() == HW_FLOAT32 && view.rank() == 2 && view.stride(row) >= 0 &&
           view.stride(row) % item == 0 && (view.size(column) == 1 || view.stride(column) == item);
}

inline int64_t numbers_apart(const View &view, int row) {
    return view.stride(row) / static_cast<int64_t>(sizeof(float));
}

// Nothing is there where it is neither an array nor a tensor whose memory can be seen.
inline View seen(nb::handle object) {
    return PyArray_Check(object.ptr()) ? View(reinterpret_cast<PyArrayObject *>(object.ptr())) : View(object);
}

// Whether x·weights + bias was worked out into `out`. False, with nothing done, where they need a closer look.
inline bool linear_layer(nb::handle x, nb::handle weights, nb::handle bias, nb::handle out, int threads) {
    const View x_view = seen(x), weights_view = seen(weights), bias_view = seen(bias), out_view = seen(out);
    hw_linear of{};
    of.turned = !is_rows(weights_view, 2);
    if (!is_rows(x_view, 2) || !is_rows(out_view, 2) || (of.turned && !is_rows(weights_view, 1))) return false;
    of.rows = x_view.size(2), of.inputs = x_view.size(1), of.outputs = weights_view.size(1);
    if (weights_view.size(2) != of.inputs || out_view.size(1) != of.outputs || out_view.size(2) != of.rows)
        return false;
    if (!bias.is_none()) {
        const bool fits = bias_view.there() && bias_view.known_type() == HW_FLOAT32 && bias_view.rank() == 1 &&
                          bias_view.size(1) == of.outputs && bias_view.stride(1) == sizeof(float);
        if (!fits) return false;
        of.bias = static_cast<const float *>(bias_view.data());
    }
    of.x = static_cast<const float *>(x_view.data());
    of.weights = static_cast<const float *>(weights_view.data());
    of.out = static_cast<float *>(out_view.data());
    of.x_row = numbers_apart(x_view, 2);
    of.weights_row = numbers_apart(weights_view, of.turned ? 1 : 2);
    of.out_row = numbers_apart(out_view, 2);
    of.threads = threads;
    PyThreadState *const state = PyEval_SaveThread();
    const int outcome = hw_linear_layer(&of);
    take_lock(state);
    if (outcome == HW_NO_MEMORY) {
        PyErr_NoMemory();
        throw nb::python_error();
    }
    return outcome == 0;
}

} // namespace headwork
#endif
