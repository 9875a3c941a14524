// The short way of a call: what most callers ask, checked here in less than a microsecond. Where anything needs a
// closer look, nothing is worked out, and the checks in Python say what they see.
#ifndef HEADWORK_SHORT_CALL_H
#define HEADWORK_SHORT_CALL_H

#include <cmath>
#include <vector>

#include "call.h"

namespace headwork {

// Three arrays of one type and rank, that fit.
inline bool is_plain(const View &q, const View &k, const View &v, Axes axes) {
    if (!q.there() || !k.there() || !v.there()) return false;
    const int rank = q.rank(), type = q.known_type();
    if (rank < 2 || rank > 4 || k.rank() != rank || v.rank() != rank) return false;
    if (type == unknown || type == HW_BOOL || k.known_type() != type || v.known_type() != type) return false;
    const int64_t heads = q.size(axes.head), kv_heads = k.size(axes.head), d = q.size(1);
    const bool fits = k.size(1) == d && v.size(1) == d && v.size(axes.row) == k.size(axes.row) &&
                      v.size(axes.head) == kv_heads && q.size(4) == k.size(4) && q.size(4) == v.size(4);
    return fits && d > 0 && kv_heads > 0 && heads % kv_heads == 0;
}

// Whether a mask has every axis whole, or 1, from the last one on.
inline bool is_plain_mask(const View &mask, const View &q, const View &k, Axes axes) {
    if (!mask.there() || mask.known_type() == unknown || mask.rank() > q.rank()) return false;
    const auto fits = [&](int axis, int64_t whole) { return mask.size(axis) == 1 || mask.size(axis) == whole; };
    return fits(1, k.size(axes.row)) && fits(2, q.size(axes.row)) && fits(3, q.size(axes.head)) && fits(4, q.size(4));
}

inline hw_attention plainly(const View &q, const View &k, const View &v, const View &out, Axes axes) {
    hw_attention call{};
    for (int64_t &size : call.batch) size = 1;
    call.batch[HW_BATCH_AXES - 1] = q.size(4);
    call.heads = q.size(axes.head);
    call.kv_heads = k.size(axes.head);
    call.tokens = q.size(axes.row);
    call.keys = k.size(axes.row);
    call.d_k = call.d_v = q.size(1);
    call.q = array_of(q, axes, 3);
    call.k = array_of(k, axes, 3);
    call.v = array_of(v, axes, 3);
    call.out = array_of(out, axes, 3);
    call.left = call.right = -1;
    return call;
}

// A whole number of Python's own, no farther off than any key.
inline bool whole(nb::handle given, int64_t &number) {
    constexpr int64_t farthest = int64_t(1) << 60;
    if (!PyLong_CheckExact(given.ptr())) return false;
    int too_large = 0;
    number = PyLong_AsLongLongAndOverflow(given.ptr(), &too_large);
    return !too_large && number >= -farthest && number <= farthest;
}

inline bool finite(nb::handle given, double &number) {
    if (!PyFloat_CheckExact(given.ptr())) return false;
    number = PyFloat_AsDouble(given.ptr());
    return std::isfinite(number);
}

inline bool is_text(nb::handle given, const char *text) {
    return PyUnicode_CheckExact(given.ptr()) && PyUnicode_CompareWithASCIIString(given.ptr(), text) == 0;
}

// Causal order, window and offset.
inline bool place(hw_attention &call, nb::handle causal, nb::handle offset, nb::handle window) {
    const bool aligned = causal.is(Py_True), bottom = is_text(causal, "bottom_right");
    const bool ordered = aligned || bottom || is_text(causal, "top_left");
    if (!ordered && !causal.is(Py_False)) return false;
    if (!window.is_none()) {
        if (!PyTuple_CheckExact(window.ptr()) || PyTuple_Size(window.ptr()) != 2) return false;
        if (!whole(PyTuple_GetItem(window.ptr(), 0), call.left) || !whole(PyTuple_GetItem(window.ptr(), 1), call.right))
            return false;
        if (call.left < -1 || call.right < -1) return false;
    }
    if (ordered) call.right = 0;
    if (!offset.is_none()) return whole(offset, call.offset) && (aligned || (!ordered && !window.is_none()));
    if (bottom) call.offset = call.keys - call.tokens;
    return !aligned || call.tokens == call.keys;
}

inline bool number(hw_attention &call, nb::handle scale, nb::handle softcap, nb::handle threads, int default_threads) {
    call.scale = 1 / std::sqrt(static_cast<double>(call.d_k));
    if (!scale.is_none() && !finite(scale, call.scale)) return false;
    if (!softcap.is_none() && !(finite(softcap, call.softcap) && call.softcap > 0)) return false;
    constexpr int64_t most_threads = 4096; // more than any machine has
    int64_t count = default_threads;
    if (!threads.is_none() && !(whole(threads, count) && count >= 1)) return false;
    call.threads = static_cast<int>(count < most_threads ? count : most_threads);
    return true;
}

// NumPy's arrays: the result, with the log-sum-exp if that is asked for; None where a closer look is needed.
inline nb::object short_call(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle causal,
                             nb::handle offset, nb::handle window, nb::handle scale, nb::handle softcap,
                             nb::handle layout, nb::handle out, nb::handle return_lse, nb::handle threads,
                             int default_threads) {
    for (nb::handle array : {q, k, v})
        if (!PyArray_CheckExact(array.ptr())) return nb::none();
    const auto array = [](nb::handle object) { return reinterpret_cast<PyArrayObject *>(object.ptr()); };
    const View q_view(array(q)), k_view(array(k)), v_view(array(v));
    const bool swapped = is_text(layout, "bshd"), lse_too = return_lse.is(Py_True);
    if (!swapped && !is_text(layout, "bhsd")) return nb::none();
    if (!lse_too && !return_lse.is(Py_False)) return nb::none();
    const Axes axes = q_view.rank() == 2 ? one_head : swapped ? tokens_first : heads_first;
    if (!is_plain(q_view, k_view, v_view, axes)) return nb::none();

    nb::object result = nb::borrow(out);
    if (out.is_none()) result = nb::steal(PyArray_NewLikeArray(array(q), NPY_KEEPORDER, nullptr, 0));
    if (!result.is_valid()) throw nb::python_error();
    if (!PyArray_CheckExact(result.ptr())) return nb::none();
    const View out_view(array(result));
    if (!out.is_none() && (!PyArray_ISWRITEABLE(array(result)) || !out_view.is_like(q_view) ||
                           out_view.touches(q_view) || out_view.touches(k_view) || out_view.touches(v_view)))
        return nb::none();

    hw_attention call = plainly(q_view, k_view, v_view, out_view, axes);
    if (!place(call, causal, offset, window) || !number(call, scale, softcap, threads, default_threads))
        return nb::none();
    if (!mask.is_none()) {
        if (!PyArray_CheckExact(mask.ptr())) return nb::none();
        const View mask_view(array(mask));
        if (!is_plain_mask(mask_view, q_view, k_view, axes) || (!out.is_none() && out_view.touches(mask_view)))
            return nb::none();
        call.mask = mask_of(mask_view);
    }
    if (!lse_too) return work_out(hw_forward, call), result;
    npy_intp rows[] = {q_view.size(4), call.heads, call.tokens};
    const int rank = q_view.rank() - 1, type = q_view.known_type() == HW_FLOAT64 ? NPY_FLOAT64 : NPY_FLOAT32;
    const nb::object lse = nb::steal(PyArray_SimpleNew(rank, rows + 3 - (rank == 1 ? 1 : rank), type));
    if (!lse.is_valid()) throw nb::python_error();
    call.lse = array_of(View(array(lse)), rows_only, 2);
    work_out(hw_forward, call);
    return nb::make_tuple(result, lse);
}

// The same for tensors, with torch's arguments: whether it is a call of this kind. Heads are grouped only where asked,
// and a mask is not causal too.
inline bool is_plain_call(const View &q, const View &k, const View &v, const View &mask, bool causal, bool grouped) {
    const Axes axes = q.rank() == 2 ? one_head : heads_first;
    if (!is_plain(q, k, v, axes) || (!grouped && k.size(3) != q.size(3))) return false;
    if (causal && (q.size(2) != k.size(2) || mask.there())) return false;
    if (!mask.there()) return true;
    const bool fits = is_plain_mask(mask, q, k, axes) && mask.rank() >= 2;
    return fits && (mask.known_type() == HW_BOOL || mask.known_type() == q.known_type());
}

inline hw_attention plain_call(const View &q, const View &k, const View &v, const View &mask, const View &out,
                               bool causal, nb::handle scale, int threads) {
    hw_attention call = plainly(q, k, v, out, q.rank() == 2 ? one_head : heads_first);
    call.mask = mask_of(mask);
    call.right = causal ? 0 : -1;
    call.scale = scale.is_none() ? 1 / std::sqrt(static_cast<double>(call.d_k)) : PyFloat_AsDouble(scale.ptr());
    call.threads = threads;
    return call;
}

// Whether it was worked out into `out`, which is like q, and `lse`, where there is one. No scale is 1/√d.
inline bool plain_tensors(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse,
                          bool causal, bool grouped, nb::handle scale, int threads) {
    const View q_view(q), k_view(k), v_view(v), out_view(out), mask_view(mask), lse_view(lse);
    if (!mask.is_none() && !mask_view.there()) return false;
    if (!is_plain_call(q_view, k_view, v_view, mask_view, causal, grouped)) return false;
    if (!lse.is_none() && (q_view.bytes() == 0 || k_view.bytes() == 0)) return false;
    if (!scale.is_none() && !PyFloat_CheckExact(scale.ptr())) return false;
    hw_attention call = plain_call(q_view, k_view, v_view, mask_view, out_view, causal, scale, threads);
    call.lse = array_of(lse_view, rows_only, 2);
    work_out(hw_forward, call);
    return true;
}

// Memory like an array (batch, head, row, column) without holes.
inline hw_array laid_out(char *data, hw_type type, int64_t item, int64_t heads, int64_t rows, int64_t columns) {
    hw_array array{};
    array.data = data;
    array.type = type;
    array.column = item;
    array.row = columns * item;
    array.head = rows * array.row;
    array.batch[HW_BATCH_AXES - 1] = heads * array.head;
    return array;
}

// Its gradients, each where there is a place for it; whether it was worked out. Without `out` and `lse` the call is
// made again first: where it is small, that takes less time than to keep them.
inline bool plain_gradients(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse,
                            nb::handle dout, nb::handle dq, nb::handle dk, nb::handle dv, bool causal, nb::handle scale,
                            int threads) {
    const View q_view(q), k_view(k), v_view(v), mask_view(mask), dout_view(dout), out_view(out), lse_view(lse);
    const View dq_view(dq), dk_view(dk), dv_view(dv);
    if (!dout_view.there() || !is_plain_call(q_view, k_view, v_view, mask_view, causal, true)) return false;
    if (!dout_view.is_like(q_view)) return false;
    const Axes axes = q_view.rank() == 2 ? one_head : heads_first;
    hw_gradients gradients{};
    hw_attention &call = gradients.call;
    call = plain_call(q_view, k_view, v_view, mask_view, out_view, causal, scale, threads);
    call.lse = array_of(lse_view, rows_only, 2);
    std::vector<char> again;
    if (!out_view.there()) {
        const int64_t rows = q_view.bytes() / q_view.item_size() / call.d_k;
        again.resize(static_cast<size_t>(q_view.bytes() + rows * static_cast<int64_t>(sizeof(double))));
        char *const beside = again.data() + rows * static_cast<int64_t>(sizeof(double));
        call.lse = laid_out(again.data(), HW_FLOAT64, sizeof(double), call.heads, call.tokens, 1);
        call.out = laid_out(beside, call.q.type, q_view.item_size(), call.heads, call.tokens, call.d_v);
        work_out(hw_forward, call);
    }
    gradients.dout = array_of(dout_view, axes, 3);
    gradients.dq = array_of(dq_view, axes, 3);
    gradients.dk = array_of(dk_view, axes, 3);
    gradients.dv = array_of(dv_view, axes, 3);
    work_out(hw_backward, gradients);
    return true;
}

} // namespace headwork
#endif
