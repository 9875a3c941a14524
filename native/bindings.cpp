// NumPy arrays, through the buffer protocol, into the kernel's structures. What an argument may be is checked in Python,
// which can say it better; here only what would be unsafe is refused.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <cmath>

#include "attention.h"

namespace nb = nanobind;

namespace {

constexpr hw_type unknown = static_cast<hw_type>(-1);

// bfloat16 has no code in the buffer protocol: it comes as the unsigned 16-bit numbers that hold its bits.
hw_type type_of(const char *format) {
    if (!format) return unknown;
    if (*format == '=' || *format == '@') ++format;
    switch (*format && !format[1] ? *format : 0) {
    case 'f': return HW_FLOAT32;
    case 'd': return HW_FLOAT64;
    case 'e': return HW_FLOAT16;
    case 'H': return HW_BFLOAT16;
    case '?': return HW_BOOL;
    default: return unknown;
    }
}

// Where the head, row and column axes stand, counted from the end; 0 = not there.
struct Axes {
    int head, row, column;
};
constexpr Axes heads_first{3, 2, 1}, tokens_first{2, 3, 1}, one_head{0, 2, 1}, rows_only{2, 1, 0};

class View {
  public:
    View(nb::handle object, bool writable) {
        if (object.is_none()) return;
        if (PyObject_GetBuffer(object.ptr(), &buffer_, writable ? PyBUF_FULL : PyBUF_FULL_RO) != 0) throw nb::python_error();
    }
    // A view to look at, of no known type where the object has no buffer.
    explicit View(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_FULL_RO) != 0) PyErr_Clear();
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
    ~View() {
        if (buffer_.obj) PyBuffer_Release(&buffer_);
    }

    int rank() const { return buffer_.ndim; }
    int64_t size(int from_end) const { return from_end >= 1 && from_end <= rank() ? buffer_.shape[rank() - from_end] : 1; }
    int64_t stride(int from_end) const { return size(from_end) == 1 ? 0 : buffer_.strides[rank() - from_end]; }
    hw_type known_type() const { return type_of(buffer_.format); }
    const void *data() const { return buffer_.buf; }
    int64_t bytes() const { return buffer_.len; }

    hw_array array(Axes axes, int inner) const {
        hw_array array{};
        if (!buffer_.obj) return array;
        array.data = static_cast<char *>(buffer_.buf);
        array.type = known_type();
        if (array.type == unknown) throw nb::type_error("no kernel for elements of this type");
        array.head = stride(axes.head);
        array.row = stride(axes.row);
        // A single column has no stride of its own; its size stands in, so that it counts as contiguous.
        array.column = size(axes.column) == 1 && axes.column ? buffer_.itemsize : stride(axes.column);
        for (int i = 0; i < HW_BATCH_AXES; ++i) array.batch[HW_BATCH_AXES - 1 - i] = stride(inner + 1 + i);
        return array;
    }

  private:
    Py_buffer buffer_{};
};

void work_out(const hw_attention &call) {
    int failed;
    {
        nb::gil_scoped_release released;
        failed = hw_forward(&call);
    }
    if (failed) {
        PyErr_NoMemory();
        throw nb::python_error();
    }
}

void forward(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse, nb::handle weights,
             nb::handle spans, bool swapped, int64_t offset, int64_t left, int64_t right, double scale, double softcap,
             int threads) {
    const View q_view(q, false), k_view(k, false), v_view(v, false), mask_view(mask, false), spans_view(spans, false);
    const View out_view(out, true), lse_view(lse, true), weights_view(weights, true);
    const bool single = out_view.rank() == 2;
    const Axes axes = single ? one_head : swapped ? tokens_first : heads_first;
    if (out_view.rank() < 2 || out_view.rank() > 3 + HW_BATCH_AXES) throw nb::value_error("too many axes");
    hw_attention call{};
    int64_t items = 1;
    for (int i = 0; i < HW_BATCH_AXES; ++i) items *= call.batch[HW_BATCH_AXES - 1 - i] = out_view.size(4 + i);
    call.heads = q_view.size(axes.head);
    call.kv_heads = k_view.size(axes.head);
    call.tokens = q_view.size(axes.row);
    call.keys = k_view.size(axes.row);
    call.d_k = q_view.size(1);
    call.d_v = v_view.size(1);
    call.q = q_view.array(axes, 3);
    call.k = k_view.array(axes, 3);
    call.v = v_view.array(axes, 3);
    call.out = out_view.array(axes, 3);
    call.mask = mask_view.array(heads_first, 3);
    if (mask_view.size(1) == 1) call.mask.column = 0; // one column speaks for every key
    call.lse = lse_view.array(rows_only, 2);
    call.weights = weights_view.array(heads_first, 3);
    if (!spans.is_none()) {
        const int64_t given = spans_view.bytes() / static_cast<int64_t>(sizeof(hw_span));
        // Packed sequences are so many items of a batch that all lie in the same arrays.
        if (out_view.rank() == 3 && given != items) items = call.batch[HW_BATCH_AXES - 1] = given;
        if (given != items) throw nb::value_error("one span per batch item");
        call.spans = static_cast<const hw_span *>(spans_view.data());
    }
    call.offset = offset;
    call.left = left;
    call.right = right;
    call.scale = scale;
    call.softcap = softcap;
    call.threads = threads;
    work_out(call);
}

// The call that most callers make: three arrays of one type and rank, nothing else asked. None where anything about them
// needs a closer look: the checks in Python then say what.
nb::object plain(nb::handle q, nb::handle k, nb::handle v, bool causal, int threads) {
    static PyTypeObject *const ndarray = (PyTypeObject *)nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
    static PyObject *const empty_like = nb::object(nb::module_::import_("numpy").attr("empty_like")).release().ptr();
    for (nb::handle array : {q, k, v})
        if (Py_TYPE(array.ptr()) != ndarray) return nb::none();
    const View q_view(q), k_view(k), v_view(v);
    const int rank = q_view.rank();
    const hw_type type = q_view.known_type();
    if (rank < 2 || rank > 4 || k_view.rank() != rank || v_view.rank() != rank) return nb::none();
    if (type != HW_FLOAT32 && type != HW_FLOAT64 && type != HW_FLOAT16) return nb::none();
    if (k_view.known_type() != type || v_view.known_type() != type) return nb::none();
    const int64_t heads = q_view.size(3), kv_heads = k_view.size(3), d = q_view.size(1);
    const bool fits = k_view.size(1) == d && v_view.size(1) == d && v_view.size(2) == k_view.size(2) &&
                      v_view.size(3) == kv_heads && q_view.size(4) == k_view.size(4) && q_view.size(4) == v_view.size(4);
    if (!fits || d == 0 || kv_heads == 0 || heads % kv_heads || (causal && q_view.size(2) != k_view.size(2))) return nb::none();
    const nb::object out = nb::steal(PyObject_CallOneArg(empty_like, q.ptr()));
    if (!out.is_valid()) throw nb::python_error();
    const View out_view(out, true);
    const Axes axes = rank == 2 ? one_head : heads_first;
    hw_attention call{};
    for (int64_t &size : call.batch) size = 1;
    call.batch[HW_BATCH_AXES - 1] = q_view.size(4);
    call.heads = heads;
    call.kv_heads = kv_heads;
    call.tokens = q_view.size(2);
    call.keys = k_view.size(2);
    call.d_k = call.d_v = d;
    call.q = q_view.array(axes, 3);
    call.k = k_view.array(axes, 3);
    call.v = v_view.array(axes, 3);
    call.out = out_view.array(axes, 3);
    call.left = -1;
    call.right = causal ? 0 : -1;
    call.scale = 1 / std::sqrt(static_cast<double>(d));
    call.threads = threads;
    work_out(call);
    return out;
}

} // namespace

NB_MODULE(_native, module) {
    module.def("forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(), nb::arg("out"),
               nb::arg("lse").none(), nb::arg("weights").none(), nb::arg("spans").none(), nb::arg("swapped"),
               nb::arg("offset"), nb::arg("left"), nb::arg("right"), nb::arg("scale"), nb::arg("softcap"),
               nb::arg("threads"));
    module.def("plain", &plain, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("causal"), nb::arg("threads"));
    module.def("measure", [](nb::handle data, int threads) {
        const View view(data, false);
        nb::gil_scoped_release released;
        const hw_limits limits = hw_measure(static_cast<const char *>(view.data()), view.bytes(), threads);
        return std::make_pair(limits.operations, limits.bytes);
    }, nb::arg("data"), nb::arg("threads"));
    module.def("cpu", [] { return hw_cpu(); });
    module.def("use_cpu", [](const char *name) { return hw_use_cpu(name) == 0; });
    module.def("threads", [] { return hw_threads(); });
    module.def("thread_runtime", [] { return hw_thread_runtime(); });
}
