// Python bindings: arrays into the kernel's structures. What an argument may be is checked in Python, which can say it
// better; here only what would be unsafe is refused.
#include <nanobind/stl/pair.h>

#include "decode_from_cache.h"
#include "linear_layer.h"
#include "plain_tensors.h"
#include "short_call.h"

using namespace headwork;

namespace {

struct Options {
    bool swapped;
    int64_t offset, left, right;
    double scale, softcap, dropout;
    uint64_t seed;
    int threads;
};

hw_attention described(const View &q, const View &k, const View &v, const Given &given, const View &out,
                       const View &lse, const Options &options) {
    const Axes axes = axes_of(out, options.swapped);
    hw_attention call = plainly(q, k, v, out, axes);
    int64_t items = 1;
    for (int i = 0; i < HW_BATCH_AXES; ++i) items *= call.batch[HW_BATCH_AXES - 1 - i] = out.size(4 + i);
    call.mask = mask_of(given.mask);
    call.sinks = array_of(given.sinks, heads_only, 1);
    call.slopes = array_of(given.slopes, heads_only, 1);
    call.table = array_of(given.table, heads_and_columns, 2);
    call.reach = given.table.size(1) / 2;
    call.lse = array_of(lse, rows_only, 2);
    call.blocks = array_of(given.blocks, heads_first, 3);
    call.block_tokens = given.block_tokens;
    call.block_keys = given.block_keys;
    if (given.blocks.there() && !are_blocks(call, given.blocks))
        throw nb::value_error("blocks are no table of the tokens' and keys' blocks");
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
             int threads, bool merges, nb::handle blocks, int64_t block_tokens, int64_t block_keys) {
    const View q_view(q, false), k_view(k, false), v_view(v, false);
    const Given given(mask, spans, sinks, slopes, table, blocks, block_tokens, block_keys);
    const View out_view(out, true), lse_view(lse, true), weights_view(weights, true);
    const Options options{swapped, offset, left, right, scale, softcap, dropout, seed, threads};
    hw_attention call = described(q_view, k_view, v_view, given, out_view, lse_view, options);
    call.weights = array_of(weights_view, heads_first, 3);
    call.merges = merges;
    if (merges && (!lse_view.there() || weights_view.there())) throw nb::value_error("nothing to merge by");
    work_out(hw_forward, call);
}

void backward(nb::handle q, nb::handle k, nb::handle v, nb::handle mask, nb::handle out, nb::handle lse,
              nb::handle dout, nb::handle dlse, nb::handle dq, nb::handle dk, nb::handle dv, nb::handle dmask,
              nb::handle dslopes, nb::handle dtable, nb::handle spans, nb::handle sinks, nb::handle slopes,
              nb::handle table, bool swapped, int64_t offset, int64_t left, int64_t right, double scale, double softcap,
              double dropout, uint64_t seed, int threads, nb::handle delta, bool adds, nb::handle blocks,
              int64_t block_tokens, int64_t block_keys) {
    const View q_view(q, false), k_view(k, false), v_view(v, false);
    const Given given(mask, spans, sinks, slopes, table, blocks, block_tokens, block_keys);
    const View out_view(out, false), lse_view(lse, false), dout_view(dout, false), dlse_view(dlse, false);
    const View dq_view(dq, true), dk_view(dk, true), dv_view(dv, true), dmask_view(dmask, true);
    const View dslopes_view(dslopes, true), dtable_view(dtable, true), delta_view(delta, false);
    const Options options{swapped, offset, left, right, scale, softcap, dropout, seed, threads};
    if (!out_view.there() && !delta_view.there()) throw nb::value_error("neither the output nor delta");
    const View &result = out_view.there() ? out_view : dout_view;
    const Axes axes = axes_of(result, swapped);
    hw_gradients gradients{};
    gradients.call = described(q_view, k_view, v_view, given, result, lse_view, options);
    gradients.delta = array_of(delta_view, rows_only, 2);
    gradients.adds = adds;
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

void merge(nb::handle out, nb::handle lse, nb::handle added, nb::handle added_lse, bool swapped, int threads) {
    const View out_view(out, true), lse_view(lse, true), added_view(added, false), added_lse_view(added_lse, false);
    const Axes axes = axes_of(out_view, swapped);
    hw_attention to{};
    for (int i = 0; i < HW_BATCH_AXES; ++i) to.batch[HW_BATCH_AXES - 1 - i] = out_view.size(4 + i);
    to.heads = out_view.size(axes.head);
    to.tokens = out_view.size(axes.row);
    to.d_v = out_view.size(1);
    to.out = array_of(out_view, axes, 3);
    to.lse = array_of(lse_view, rows_only, 2);
    to.threads = threads;
    const hw_array other = array_of(added_view, axes, 3), other_lse = array_of(added_lse_view, rows_only, 2);
    PyThreadState *const state = PyEval_SaveThread();
    const int failed = hw_merge(&to, &other, &other_lse);
    take_lock(state);
    if (failed) {
        PyErr_NoMemory();
        throw nb::python_error();
    }
}

} // namespace

NB_MODULE(_native, module) {
    hw_watch_forks();
    if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
    module.def("forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(), nb::arg("out"),
               nb::arg("lse").none(), nb::arg("weights").none(), nb::arg("spans").none(), nb::arg("sinks").none(),
               nb::arg("slopes").none(), nb::arg("table").none(), nb::arg("swapped"), nb::arg("offset"),
               nb::arg("left"), nb::arg("right"), nb::arg("scale"), nb::arg("softcap"), nb::arg("dropout"),
               nb::arg("seed"), nb::arg("threads"), nb::arg("merges") = false, nb::arg("blocks").none() = nb::none(),
               nb::arg("block_tokens") = 0, nb::arg("block_keys") = 0);
    module.def("backward", &backward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(),
               nb::arg("out").none(), nb::arg("lse"), nb::arg("dout"), nb::arg("dlse").none(), nb::arg("dq").none(),
               nb::arg("dk").none(), nb::arg("dv").none(), nb::arg("dmask").none(), nb::arg("dslopes").none(),
               nb::arg("dtable").none(), nb::arg("spans").none(), nb::arg("sinks").none(), nb::arg("slopes").none(),
               nb::arg("table").none(), nb::arg("swapped"), nb::arg("offset"), nb::arg("left"), nb::arg("right"),
               nb::arg("scale"), nb::arg("softcap"), nb::arg("dropout"), nb::arg("seed"), nb::arg("threads"),
               nb::arg("delta").none() = nb::none(), nb::arg("adds") = false, nb::arg("blocks").none() = nb::none(),
               nb::arg("block_tokens") = 0, nb::arg("block_keys") = 0);
    module.def("merge", &merge, nb::arg("out"), nb::arg("lse"), nb::arg("added"), nb::arg("added_lse"),
               nb::arg("swapped"), nb::arg("threads"));
    module.def("decode", &decode, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("k_scales").none(),
               nb::arg("v_scales").none(), nb::arg("block_table").none(), nb::arg("out"), nb::arg("lse").none(),
               nb::arg("spans"), nb::arg("sinks").none(), nb::arg("slopes").none(), nb::arg("table").none(),
               nb::arg("k_kind"), nb::arg("v_kind"), nb::arg("swapped"), nb::arg("left"), nb::arg("right"),
               nb::arg("scale"), nb::arg("softcap"), nb::arg("threads"));
    static PyMethodDef short_call_method = {
        "short_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&short_call)), METH_FASTCALL, nullptr};
    module.attr("short_call") = nb::steal(PyCFunction_New(&short_call_method, nullptr));
    module.def("plain_tensors", &plain_tensors, nb::arg("q").none(), nb::arg("k").none(), nb::arg("v").none(),
               nb::arg("mask").none(), nb::arg("out"), nb::arg("lse").none(), nb::arg("causal"), nb::arg("grouped"),
               nb::arg("scale").none(), nb::arg("threads"));
    module.def("plain_gradients", &plain_gradients, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(),
               nb::arg("out").none(), nb::arg("lse").none(), nb::arg("dout"), nb::arg("dq").none(),
               nb::arg("dk").none(), nb::arg("dv").none(), nb::arg("causal"), nb::arg("scale").none(),
               nb::arg("threads"));
    module.def("linear", &linear_layer, nb::arg("x"), nb::arg("weights"), nb::arg("bias").none(), nb::arg("out"),
               nb::arg("threads"));
    module.def("linear_is_ahead", [] { return hw_linear_is_ahead() != 0; });
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
