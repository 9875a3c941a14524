// The short way of a call on NumPy's arrays: every option, checked here in a microsecond or two. Where anything needs a
// closer look, nothing is worked out, and the checks in Python say what they see.
#ifndef HEADWORK_SHORT_CALL_H
#define HEADWORK_SHORT_CALL_H

#include <cmath>
#include <vector>

#include "given.h"
#include "plain_call.h"

namespace headwork {

// What `attention` is told, in the order of its signature; then how many threads there are unless it says so.
struct Told {
    nb::handle q, k, v, mask, blocks, causal, offset, window, scale, softcap, lengths, starts, sinks, alibi, relative,
        dropout, seed, layout, return_lse, return_weights, threads, out, default_threads;
};
constexpr Py_ssize_t told_count = sizeof(Told) / sizeof(nb::handle);

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

inline PyArrayObject *array(nb::handle object) { return reinterpret_cast<PyArrayObject *>(object.ptr()); }

// One number for every batch item: one for all of them, a list of whole numbers, or an array.
class PerItem {
  public:
    // Whether what is given can be read so; None can.
    bool read(nb::handle given, int64_t items, bool batched) {
        there_ = !given.is_none();
        if (!there_) return true;
        if (PyLong_CheckExact(given.ptr())) return whole(given, same_);
        if (!batched) return false;
        if (PyList_CheckExact(given.ptr())) return read_list(given, items);
        if (!PyArray_CheckExact(given.ptr()) || PyArray_NDIM(array(given)) != 1 ||
            PyArray_SIZE(array(given)) != items || !PyTypeNum_ISINTEGER(PyArray_TYPE(array(given))))
            return false;
        held_ = nb::steal(PyArray_FromArray(array(given), PyArray_DescrFromType(NPY_INT64),
                                            NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST));
        if (!held_.is_valid()) throw nb::python_error();
        each_ = static_cast<const int64_t *>(PyArray_DATA(array(held_)));
        return true;
    }
    bool there() const { return there_; }
    bool varies() const { return each_; }
    int64_t operator[](int64_t item) const { return each_ ? each_[item] : same_; }
    bool within(int64_t least, int64_t most, int64_t items) const {
        for (int64_t item = 0; there_ && item < (each_ ? items : 1); ++item)
            if ((*this)[item] < least || (*this)[item] > most) return false;
        return true;
    }

  private:
    bool read_list(nb::handle given, int64_t items) {
        if (PyList_Size(given.ptr()) != items) return false;
        listed_.resize(static_cast<size_t>(items));
        for (int64_t i = 0; i < items; ++i)
            if (!whole(PyList_GetItem(given.ptr(), i), listed_[static_cast<size_t>(i)])) return false;
        each_ = listed_.data();
        return true;
    }

    bool there_ = false;
    int64_t same_ = 0;
    const int64_t *each_ = nullptr;
    std::vector<int64_t> listed_;
    nb::object held_;
};

// Numbers for every head, in the type of the sums, or rows of an odd number of columns.
class PerHead {
  public:
    bool read(nb::handle given, int type, int columns, const hw_attention &call, bool batched) {
        if (given.is_none()) return true;
        if (!PyArray_CheckExact(given.ptr())) return false;
        const int here = PyArray_TYPE(array(given)), rank = PyArray_NDIM(array(given));
        if (here != NPY_FLOAT32 && here != NPY_FLOAT64 && here != NPY_FLOAT16) return false;
        if (rank < columns || rank > columns + (batched ? 2 : 1)) return false;
        held_ = nb::steal(
            PyArray_FromArray(array(given), PyArray_DescrFromType(type), NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST));
        if (!held_.is_valid()) throw nb::python_error();
        const View view(array(held_));
        const auto fits = [&](int axis, int64_t all) { return view.size(axis) == 1 || view.size(axis) == all; };
        if (columns && view.size(1) % 2 == 0) return false;
        if (!fits(columns + 1, call.heads) || !fits(columns + 2, call.batch[HW_BATCH_AXES - 1])) return false;
        seen = array_of(view, columns ? heads_and_columns : heads_only, columns + 1);
        width = view.size(1);
        return true;
    }
    hw_array seen{};
    int64_t width = 0;

  private:
    nb::object held_;
};

// Causal order and window, and whether they or a distance say what an offset is for.
inline bool order(hw_attention &call, const Told &told, bool &bottom) {
    const bool aligned = told.causal.is(Py_True);
    bottom = is_text(told.causal, "bottom_right");
    const bool ordered = aligned || bottom || is_text(told.causal, "top_left");
    if (!ordered && !told.causal.is(Py_False)) return false;
    if (!told.window.is_none()) {
        PyObject *const window = told.window.ptr();
        if (!PyTuple_CheckExact(window) || PyTuple_Size(window) != 2) return false;
        if (!whole(PyTuple_GetItem(window, 0), call.left) || !whole(PyTuple_GetItem(window, 1), call.right))
            return false;
        if (call.left < -1 || call.right < -1) return false;
    }
    const bool placed = !told.window.is_none() || !told.alibi.is_none() || !told.relative.is_none();
    if (ordered) call.right = 0;
    return told.offset.is_none() ? !aligned || call.tokens == call.keys : aligned || (!ordered && placed);
}

// The keys of every batch item, and where its tokens stand among them.
inline bool place(hw_attention &call, const Told &told, bool batched, std::vector<hw_span> &spans) {
    constexpr int64_t farthest = int64_t(1) << 60;
    const int64_t items = call.batch[HW_BATCH_AXES - 1];
    bool bottom = false;
    if (!order(call, told, bottom)) return false;
    PerItem lengths, starts, offset;
    if (!lengths.read(told.lengths, items, batched) || !starts.read(told.starts, items, batched) ||
        !offset.read(told.offset, items, batched))
        return false;
    if (!lengths.within(0, call.keys, items) || !starts.within(0, call.keys, items) ||
        !offset.within(-farthest, farthest, items))
        return false;
    call.offset = offset.there() && !offset.varies() ? offset[0] : bottom ? call.keys - call.tokens : 0;
    if (!lengths.there() && !starts.there() && !offset.varies()) return true;
    spans.reserve(static_cast<size_t>(items));
    for (int64_t item = 0; item < items; ++item) {
        const int64_t keys = lengths.there() ? lengths[item] : call.keys;
        const int64_t at = offset.there() ? offset[item] : bottom ? keys - call.tokens : 0;
        spans.push_back({0, call.tokens, 0, keys, at, starts.there() ? starts[item] : 0});
    }
    call.spans = spans.data();
    return true;
}

inline bool number(hw_attention &call, const Told &told) {
    call.scale = 1 / std::sqrt(static_cast<double>(call.d_k));
    if (!told.scale.is_none() && !finite(told.scale, call.scale)) return false;
    if (!told.softcap.is_none() && !(finite(told.softcap, call.softcap) && call.softcap > 0)) return false;
    if (!finite(told.dropout, call.dropout) || call.dropout < 0 || call.dropout > 1) return false;
    const bool seeded = PyLong_CheckExact(told.seed.ptr());
    if (seeded) call.seed = PyLong_AsUnsignedLongLongMask(told.seed.ptr());
    if (!seeded && (call.dropout > 0 || !told.seed.is_none())) return false;
    constexpr int64_t most_threads = 4096; // more than any machine has
    int64_t count = 0;
    if (!whole(told.threads.is_none() ? told.default_threads : told.threads, count)) return false;
    if (count < (told.threads.is_none() ? 0 : 1)) return false;
    call.threads = static_cast<int>(count < most_threads ? count : most_threads);
    return true;
}

inline bool hide(hw_attention &call, const Told &told, const View &q, const View &k, const View &out, Axes axes) {
    if (!told.mask.is_none()) {
        if (!PyArray_CheckExact(told.mask.ptr())) return false;
        const View mask(array(told.mask));
        if (!is_plain_mask(mask, q, k, axes) || (!told.out.is_none() && out.touches(mask))) return false;
        call.mask = mask_of(mask);
    }
    if (told.blocks.is_none()) return true;
    static PyObject *known = nullptr; // set under the interpreter's lock, which importing may let go
    if (!known)
        known = nb::object(nb::module_::import_("headwork.engine.block_mask").attr("BlockMask")).release().ptr();
    if (reinterpret_cast<PyObject *>(Py_TYPE(told.blocks.ptr())) != known) return false;
    const nb::object visible = told.blocks.attr("visible");
    if (!PyArray_CheckExact(visible.ptr())) return false; // whom the mask holds, as long as the call takes
    const View table(array(visible));
    if (!whole(nb::object(told.blocks.attr("tokens")), call.block_tokens)) return false;
    if (!whole(nb::object(told.blocks.attr("keys")), call.block_keys)) return false;
    if (table.rank() < 2 || table.rank() > q.rank() || !are_blocks(call, table)) return false;
    call.blocks = array_of(table, heads_first, 3);
    return true;
}

// A fresh array like the queries, with the values' columns.
inline nb::object room(const Told &told, const View &v) {
    PyArrayObject *const q = array(told.q);
    const int rank = PyArray_NDIM(q);
    if (PyArray_DIM(q, rank - 1) == v.size(1)) return nb::steal(PyArray_NewLikeArray(q, NPY_KEEPORDER, nullptr, 0));
    npy_intp shape[NPY_MAXDIMS];
    for (int axis = 0; axis < rank; ++axis) shape[axis] = PyArray_DIM(q, axis);
    shape[rank - 1] = v.size(1);
    return nb::steal(PyArray_SimpleNew(rank, shape, PyArray_TYPE(q)));
}

// A number for every row, or one for each of its keys: (…, heads, tokens) or (…, heads, tokens, keys).
inline nb::object beside(const View &q, const hw_attention &call, int sums, int columns) {
    npy_intp shape[] = {q.size(4), call.heads, call.tokens, call.keys};
    const int rank = q.rank() - 1 + columns;
    const nb::object made = nb::steal(PyArray_SimpleNew(rank, shape + 3 + columns - rank, sums));
    if (!made.is_valid()) throw nb::python_error();
    return made;
}

// The result, with the log-sum-exp and the weights if they are asked for; None where a closer look is needed.
inline nb::object worked_shortly(const Told &told) {
    for (nb::handle given : {told.q, told.k, told.v})
        if (!PyArray_CheckExact(given.ptr())) return nb::none();
    const View q(array(told.q)), k(array(told.k)), v(array(told.v));
    const bool swapped = is_text(told.layout, "bshd"), lse_too = told.return_lse.is(Py_True), batched = q.rank() == 4;
    if (!swapped && !is_text(told.layout, "bhsd")) return nb::none();
    const bool weights_too = told.return_weights.is(Py_True);
    if ((!weights_too && !told.return_weights.is(Py_False)) || (!lse_too && !told.return_lse.is(Py_False)))
        return nb::none();
    const Axes axes = q.rank() == 2 ? one_head : swapped ? tokens_first : heads_first;
    if (!is_plain(q, k, v, axes)) return nb::none();

    const nb::object result = told.out.is_none() ? room(told, v) : nb::borrow(told.out);
    if (!result.is_valid()) throw nb::python_error();
    if (!PyArray_CheckExact(result.ptr())) return nb::none();
    const View out(array(result));
    if (!told.out.is_none() && (!PyArray_ISWRITEABLE(array(result)) || !out.is_like(q) || v.size(1) != q.size(1) ||
                                out.touches(q) || out.touches(k) || out.touches(v)))
        return nb::none();

    hw_attention call = plainly(q, k, v, out, axes);
    const int sums = q.known_type() == HW_FLOAT64 ? NPY_FLOAT64 : NPY_FLOAT32;
    std::vector<hw_span> spans;
    PerHead sinks, slopes, table;
    if (!place(call, told, batched, spans) || !number(call, told) || !hide(call, told, q, k, out, axes) ||
        !sinks.read(told.sinks, sums, 0, call, batched) || !slopes.read(told.alibi, sums, 0, call, batched) ||
        !table.read(told.relative, sums, 1, call, batched))
        return nb::none();
    call.sinks = sinks.seen;
    call.slopes = slopes.seen;
    call.table = table.seen;
    call.reach = table.width / 2;
    const nb::object lse = lse_too ? beside(q, call, sums, 0) : nb::none();
    const nb::object weights = weights_too ? beside(q, call, sums, 1) : nb::none();
    if (lse_too) call.lse = array_of(View(array(lse)), rows_only, 2);
    if (weights_too) call.weights = array_of(View(array(weights)), heads_first, 3);
    work_out(hw_forward, call);
    if (lse_too && weights_too) return nb::make_tuple(result, lse, weights);
    if (lse_too || weights_too) return nb::make_tuple(result, lse_too ? lse : weights);
    return result;
}

// As Python calls it, without names: reading those would take as long as the smallest calls.
inline PyObject *short_call(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != told_count) {
        PyErr_SetString(PyExc_TypeError,
                        "short_call takes what attention is told, in its order, and a number of threads");
        return nullptr;
    }
    Told told;
    static_assert(sizeof told == told_count * sizeof *given);
    __builtin_memcpy(static_cast<void *>(&told), given, sizeof told);
    try {
        return worked_shortly(told).release().ptr();
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    }
    return nullptr;
}

} // namespace headwork
#endif
