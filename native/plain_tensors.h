// The short way of a call on tensors, with torch's arguments, and of its gradients.
#ifndef HEADWORK_PLAIN_TENSORS_H
#define HEADWORK_PLAIN_TENSORS_H

#include <cmath>
#include <vector>

#include "plain_call.h"

namespace headwork {

// Whether it is a call of this kind. Heads are grouped only where asked, and a mask is not causal too.
inline bool is_plain_call(const View &q, const View &k, const View &v, const View &mask, bool causal, bool grouped) {
    const Axes axes = q.rank() == 2 ? one_head : heads_first;
    if (!is_plain(q, k, v, axes) || v.size(1) != q.size(1) || (!grouped && k.size(3) != q.size(3))) return false;
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
