// Python bindings: arrays into the kernel's structures. What an argument may be is checked in Python, which can say it
// better; here only what would be unsafe is refused.
#include <nanobind/stl/pair.h>

#include <cmath>

#include "take_lock.h"
#include "view.h"

using namespace headwork;

namespace {

// Where the head, row and column axes stand, counted from the end; 0 = not there.
struct Axes {
    int head, row, column;
};
constexpr Axes heads_first{3, 2, 1}, tokens_first{2, 3, 1}, one_head{0, 2, 1}, rows_only{2, 1, 0}, heads_only{1, 0, 0},
    heads_and_columns{2, 0, 1};

hw_array array_of(const View &view, Axes axes, int inner) {
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
hw_array mask_of(const View &view) {
    hw_array mask = array_of(view, heads_first, 3);
    if (view.size(1) == 1) mask.column = 0;
    return mask;
}

// So little work that letting other threads run meanwhile would take as long.
bool brief(const hw_attention &call) {
    double products =
        static_cast<double>(call.heads) * static_cast<double>(call.tokens) * static_cast<double>(call.keys);
    for (int64_t size : call.batch) products *= static_cast<double>(size);
    return products * static_cast<double>(call.d_k + call.d_v) < 2000;
}
bool brief(const hw_gradients &of) { return brief(of.call); }

template <class Call> void work_out(int (*work)(const Call *), const Call &call) {
    PyThreadState *const state = brief(call) ? nullptr : PyEval_SaveThread();
    const int failed = work(&call);
    if (state) take_lock(state);
    if (failed) {
        PyErr_NoMemory();
        throw nb::python_error();
    }
}

Axes axes_of(const View &out, bool swapped) {
    if (out.rank() < 2 || out.rank() > 3 + HW_BATCH_AXES) throw nb::value_error("too many axes");
    return out.rank() == 2 ? one_head : swapped ? tokens_first : heads_first;
}

struct Options {
    bool swapped;
    int64_t offset, left, right;
    double scale, softcap, dropout;
    uint64_t seed;
    int threads;
};

// What is read besides q, k and v, and how.
struct Given {
    const View mask, spans, sinks, slopes, table;
    Given(nb::handle mask, nb::handle spans, nb::handle sinks, nb::handle slopes, nb::handle table)
        : mask(mask, false), spans(spans, false), sinks(sinks, false), slopes(slopes, false), table(table, false) {}
};

// Spans come from tensors whose numbers nobody has seen before: none may lead out of the arrays, or two to one row.
void check_spans(const hw_attention &call, int64_t count, bool packed) {
    constexpr int64_t far = int64_t(1) << 61;
    int64_t done = 0;
    for (int64_t i = 0; i < count; ++i) {
        const hw_span &span = call.spans[i];
        const auto within = [](int64_t start, int64_t size, int64_t all) {
            return start >= 0 && size >= 0 && start <= all && size <= all - start;
        };
        if (!within(span.token0, span.tokens, call.tokens) || !within(span.key0, span.keys, call.keys) ||
            span.first < 0 || span.offset > far || span.offset < -far || (packed && span.token0 < done))
            throw nb::value_error("lengths, starts or offsets lie outside the tokens and keys");
        done = span.token0 + span.tokens;
    }
}

hw_attention described(const View &q, const View &k, const View &v, const Given &given, const View &out,
                       const View &lse, const Options &options) {
    const Axes axes = axes_of(out, options.swapped);
    hw_attention call{};
    int64_t items = 1;
    for (int i = 0; i < HW_BATCH_AXES; ++i) items *= call.batch[HW_BATCH_AXES - 1 - i] = out.size(4 + i);
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
    call.mask = mask_of(given.mask);
    call.sinks = array_of(given.sinks, heads_only, 1);
    call.slopes = array_of(given.slopes, heads_only, 1);
    call.table = array_of(given.table, heads_and_columns, 2);
    call.reach = given.table.size(1) / 2;
    call.lse = array_of(lse, rows_only, 2);
    if (given.spans.there()) {
        if (!given.spans.is_table(sizeof(hw_span) / sizeof(int64_t))) throw nb::value_error("spans are no table");
        const int64_t count = given.spans.size(2);
        // Packed sequences are so many items of a batch that all lie in the same arrays.
        if (out.rank() == 3 && count != items) items = call.batch[HW_BATCH_AXES - 1] = count;
        if (count != items) throw nb::value_error("one span per batch item");
        call.spans = static_cast<const hw_span *>(given.spans.data());
        check_spans(call, count, out.rank() == 3);
    }
    call.offset = options.offset;
    call.left = options.left;
    call.right = options.right;
    call.scale = options.scale;
    call.softcap = options.softcap;
    call.dropout = options.dropout;
    call.seed = options.seed;
    call.threads = options.threads;
    return call;
}

void forward(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse,
             nb::handle weights, nb::handle spans, nb::handle sinks, nb::handle slopes, nb::handle table, bool swapped,
             int64_t offset, int64_t left, int64_t right, double scale, double softcap, double dropout, uint64_t seed,
             int threads) {
    const View q_view(q, false), k_view(k, false), v_view(v, false);
    const Given given(mask, spans, sinks, slopes, table);
    const View out_view(out, true), lse_view(lse, true), weights_view(weights, true);
    const Options options{swapped, offset, left, right, scale, softcap, dropout, seed, threads};
    hw_attention call = described(q_view, k_view, v_view, given, out_view, lse_view, options);
    call.weights = array_of(weights_view, heads_first, 3);
    work_out(hw_forward, call);
}

void backward(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse,
              nb::handle dout, nb::handle dlse, nb::handle dq, nb::handle dk, nb::handle dv, nb::handle dmask,
              nb::handle dslopes, nb::handle dtable, nb::handle spans, nb::handle sinks, nb::handle slopes,
              nb::handle table, bool swapped, int64_t offset, int64_t left, int64_t right, double scale, double softcap,
              double dropout, uint64_t seed, int threads) {
    const View q_view(q, false), k_view(k, false), v_view(v, false);
    const Given given(mask, spans, sinks, slopes, table);
    const View out_view(out, false), lse_view(lse, false), dout_view(dout, false), dlse_view(dlse, false);
    const View dq_view(dq, true), dk_view(dk, true), dv_view(dv, true), dmask_view(dmask, true);
    const View dslopes_view(dslopes, true), dtable_view(dtable, true);
    const Options options{swapped, offset, left, right, scale, softcap, dropout, seed, threads};
    const Axes axes = axes_of(out_view, swapped);
    hw_gradients gradients{};
    gradients.call = described(q_view, k_view, v_view, given, out_view, lse_view, options);
    gradients.dout = array_of(dout_view, axes, 3);
    gradients.dlse = array_of(dlse_view, rows_only, 2);
    gradients.dq = array_of(dq_view, axes, 3);
    gradients.dk = array_of(dk_view, axes, 3);
    gradients.dv = array_of(dv_view, axes, 3);
    gradients.dmask = mask_of(dmask_view);
    gradients.dslopes = array_of(dslopes_view, heads_only, 1);
    gradients.dtable = array_of(dtable_view, heads_and_columns, 2);
    work_out(hw_backward, gradients);
}

// The call that most callers make: three arrays of one type and rank, nothing else asked. False where anything about
// them needs a closer look: the checks in Python then say what.
bool is_plain(const View &q, const View &k, const View &v, bool causal) {
    if (!q.there() || !k.there() || !v.there()) return false;
    const int rank = q.rank();
    const int type = q.known_type();
    if (rank < 2 || rank > 4 || k.rank() != rank || v.rank() != rank) return false;
    if (type == unknown || type == HW_BOOL || k.known_type() != type || v.known_type() != type) return false;
    const int64_t heads = q.size(3), kv_heads = k.size(3), d = q.size(1);
    const bool fits = k.size(1) == d && v.size(1) == d && v.size(2) == k.size(2) && v.size(3) == kv_heads &&
                      q.size(4) == k.size(4) && q.size(4) == v.size(4);
    return fits && d > 0 && kv_heads > 0 && heads % kv_heads == 0 && !(causal && q.size(2) != k.size(2));
}

void work_out_plain(const View &q, const View &k, const View &v, const View &out, bool causal, double scale,
                    int threads) {
    const Axes axes = q.rank() == 2 ? one_head : heads_first;
    hw_attention call{};
    for (int64_t &size : call.batch) size = 1;
    call.batch[HW_BATCH_AXES - 1] = q.size(4);
    call.heads = q.size(3);
    call.kv_heads = k.size(3);
    call.tokens = q.size(2);
    call.keys = k.size(2);
    call.d_k = call.d_v = q.size(1);
    call.q = array_of(q, axes, 3);
    call.k = array_of(k, axes, 3);
    call.v = array_of(v, axes, 3);
    call.out = array_of(out, axes, 3);
    call.left = -1;
    call.right = causal ? 0 : -1;
    call.scale = scale;
    call.threads = threads;
    work_out(hw_forward, call);
}

nb::object plain(nb::handle q, nb::handle k, nb::handle v, bool causal, int threads) {
    for (nb::handle array : {q, k, v})
        if (!PyArray_CheckExact(array.ptr())) return nb::none();
    const auto array = [](nb::handle object) { return reinterpret_cast<PyArrayObject *>(object.ptr()); };
    const View q_view(array(q)), k_view(array(k)), v_view(array(v));
    if (!is_plain(q_view, k_view, v_view, causal)) return nb::none();
    const nb::object out = nb::steal(PyArray_NewLikeArray(array(q), NPY_KEEPORDER, nullptr, 0));
    if (!out.is_valid()) throw nb::python_error();
    const double scale = 1 / std::sqrt(static_cast<double>(q_view.size(1)));
    work_out_plain(q_view, k_view, v_view, View(array(out)), causal, scale, threads);
    return out;
}

// The same for tensors: whether it was worked out into `out`, which is like q. Heads are grouped only where asked.
bool plain_tensors(nb::handle q, nb::handle k, nb::handle v, nb::handle out, bool causal, bool grouped, double scale,
                   int threads) {
    const View q_view(q), k_view(k), v_view(v), out_view(out);
    if (!is_plain(q_view, k_view, v_view, causal) || (!grouped && k_view.size(3) != q_view.size(3))) return false;
    work_out_plain(q_view, k_view, v_view, out_view, causal, scale, threads);
    return true;
}

} // namespace

NB_MODULE(_native, module) {
    hw_watch_forks();
    if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
    module.def("forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(), nb::arg("out"),
               nb::arg("lse").none(), nb::arg("weights").none(), nb::arg("spans").none(), nb::arg("sinks").none(),
               nb::arg("slopes").none(), nb::arg("table").none(), nb::arg("swapped"), nb::arg("offset"),
               nb::arg("left"), nb::arg("right"), nb::arg("scale"), nb::arg("softcap"), nb::arg("dropout"),
               nb::arg("seed"), nb::arg("threads"));
    module.def("backward", &backward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(), nb::arg("out"),
               nb::arg("lse"), nb::arg("dout"), nb::arg("dlse").none(), nb::arg("dq").none(), nb::arg("dk").none(),
               nb::arg("dv").none(), nb::arg("dmask").none(), nb::arg("dslopes").none(), nb::arg("dtable").none(),
               nb::arg("spans").none(), nb::arg("sinks").none(), nb::arg("slopes").none(), nb::arg("table").none(),
               nb::arg("swapped"), nb::arg("offset"), nb::arg("left"), nb::arg("right"), nb::arg("scale"),
               nb::arg("softcap"), nb::arg("dropout"), nb::arg("seed"), nb::arg("threads"));
    module.def("plain", &plain, nb::arg("q").none(), nb::arg("k").none(), nb::arg("v").none(), nb::arg("causal"),
               nb::arg("threads"));
    module.def("plain_tensors", &plain_tensors, nb::arg("q").none(), nb::arg("k").none(), nb::arg("v").none(),
               nb::arg("out"), nb::arg("causal"), nb::arg("grouped"), nb::arg("scale"), nb::arg("threads"));
    module.def(
        "multiply_add",
        [](int64_t operations, int threads) {
            PyThreadState *const state = PyEval_SaveThread();
            hw_multiply_add(operations, threads);
            take_lock(state);
        },
        nb::arg("operations"), nb::arg("threads"));
    module.def(
        "read",
        [](nb::handle data, int threads) {
            const View view(data, false);
            PyThreadState *const state = PyEval_SaveThread();
            hw_read(static_cast<const char *>(view.data()), view.bytes(), threads);
            take_lock(state);
        },
        nb::arg("data"), nb::arg("threads"));
    module.def("cpu", [] { return hw_cpu(); });
    module.def("use_cpu", [](const char *name) { return hw_use_cpu(name) == 0; });
    module.def("threads", [] { return hw_threads(); });
    module.def("thread_runtime", [] { return hw_thread_runtime(); });
}
