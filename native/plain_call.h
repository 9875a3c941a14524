// What a plain call is: three arrays of one type and rank that fit, and a mask that fits them.
#ifndef HEADWORK_PLAIN_CALL_H
#define HEADWORK_PLAIN_CALL_H

#include "call.h"

namespace headwork {

// Three arrays of one type and rank, that fit.
inline bool is_plain(const View &q, const View &k, const View &v, Axes axes) {
    if (!q.there() || !k.there() || !v.there()) return false;
    const int rank = q.rank(), type = q.known_type();
    if (rank < 2 || rank > 4 || k.rank() != rank || v.rank() != rank) return false;
    if (type == unknown || type == HW_BOOL || k.known_type() != type || v.known_type() != type) return false;
    const int64_t heads = q.size(axes.head), kv_heads = k.size(axes.head), d = q.size(1);
    const bool fits = k.size(1) == d && v.size(axes.row) == k.size(axes.row) && v.size(axes.head) == kv_heads &&
                      q.size(4) == k.size(4) && q.size(4) == v.size(4);
    return fits && d > 0 && v.size(1) > 0 && kv_heads > 0 && heads % kv_heads == 0;
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
    call.d_k = q.size(1);
    call.d_v = v.size(1);
    call.q = array_of(q, axes, 3);
    call.k = array_of(k, axes, 3);
    call.v = array_of(v, axes, 3);
    call.out = array_of(out, axes, 3);
    call.left = call.right = -1;
    return call;
}

} // namespace headwork
#endif
