// Arrays in the kernel's structures, and a call worked out, with the interpreter's lock let go meanwhile.
#ifndef HEADWORK_CALL_H
#define HEADWORK_CALL_H

#include "take_lock.h"
#include "view.h"

namespace headwork {

// Where the head, row and column axes stand, counted from the end; 0 = not there.
struct Axes {
    int head, row, column;
};
constexpr Axes heads_first{3, 2, 1}, tokens_first{2, 3, 1}, one_head{0, 2, 1}, rows_only{2, 1, 0}, heads_only{1, 0, 0},
    heads_and_columns{2, 0, 1};

inline hw_array array_of(const View &view, Axes axes, int inner) {
    hw_array array{};
    if (!view.there()) return array;
    array.data = static_cast<char *>(view.data());
    if (view.known_type() == unknown) throw nb::type_error("no kernel for elements of this type");
    array.type = static_cast<hw_type>(view.known_type());
    array.head = view.stride(axes.head);
    array.row = view.stride(axes.row);
    // A single column has no stride of its own; its size stands in, so that it counts as contiguous.
    array.column = view.size(axes.column) == 1 && axes.column ? view.item_size() : view.stride(axes.column);
    for (int i = 0; i < HW_BATCH_AXES; ++i) array.batch[HW_BATCH_AXES - 1 - i] = view.stride(inner + 1 + i);
    return array;
}

// One column speaks for every key.
inline hw_array mask_of(const View &view) {
    hw_array mask = array_of(view, heads_first, 3);
    if (view.size(1) == 1) mask.column = 0;
    return mask;
}

// So little work that letting other threads run meanwhile would take as long.
inline bool brief(const hw_attention &call) {
    double products =
        static_cast<double>(call.heads) * static_cast<double>(call.tokens) * static_cast<double>(call.keys);
    for (int64_t size : call.batch) products *= static_cast<double>(size);
    return products * static_cast<double>(call.d_k + call.d_v) < 2000;
}
inline bool brief(const hw_gradients &of) { return brief(of.call); }

template <class Call> void work_out(int (*work)(const Call *), const Call &call) {
    PyThreadState *const state = brief(call) ? nullptr : PyEval_SaveThread();
    const int failed = work(&call);
    if (state) take_lock(state);
    if (failed) {
        PyErr_NoMemory();
        throw nb::python_error();
    }
}

inline Axes axes_of(const View &out, bool swapped) {
    if (out.rank() < 2 || out.rank() > 3 + HW_BATCH_AXES) throw nb::value_error("too many axes");
    return out.rank() == 2 ? one_head : swapped ? tokens_first : heads_first;
}

} // namespace headwork
#endif
