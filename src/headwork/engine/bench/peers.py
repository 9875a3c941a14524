"""The others: each function prepares one problem for one library and returns the call to time, or None.

A peer that is not installed is left out. None of them is imported before it is asked for.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import cycle, pairwise
from typing import Any

import numpy as np

from headwork.engine.bench.cases import BLOCK, Problem

Call = Callable[[], Any]
MACHINE = "machine"
STREAM = 1 << 30  # bytes, more than any cache holds


def prepared(peer: str, problem: Problem) -> Call | None:
    """The call of one peer, or None where it is not installed or has no such operation."""
    package = package_of(peer)
    installed = find_spec({"headwork": "numpy", MACHINE: "numpy", "onnx": "onnxruntime"}.get(package, package))
    return PEERS[peer](problem) if installed else None


def package_of(peer: str) -> str:
    """Who shares a process: "torch folded" and "torch flex" are both torch's."""
    return peer.split()[0]


def headwork_call(problem: Problem) -> Call:
    from headwork.engine import BlockMask, attention, attention_varlen

    q, k, v = problem.q, problem.k, problem.v
    if problem.lengths is not None:
        return partial(attention_varlen, q, k, v, problem.ends, problem.ends)
    options: dict[str, Any] = {"causal": problem.causal or None, "mask": problem.mask, "window": problem.window}
    if problem.blocks is not None:
        options["blocks"] = BlockMask(problem.blocks, BLOCK, BLOCK)
    return partial(attention, q, k, v, **{name: asked for name, asked in options.items() if asked is not None})


def in_torch(problem: Problem) -> tuple[Any, Any, Any, Any, Any]:
    """torch, its attention, and the three arrays as tensors."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    return torch, sdpa, *map(torch.from_numpy, (problem.q, problem.k, problem.v))


def torch_call(problem: Problem) -> Call:
    torch, sdpa, q, k, v = in_torch(problem)
    grouped = q.shape[1] != k.shape[1]
    if problem.causal:
        return lambda: sdpa(q, k, v, is_causal=True, enable_gqa=grouped)
    seen = problem.visible()
    mask = None if seen is None else torch.from_numpy(seen)
    return lambda: sdpa(q, k, v, attn_mask=mask, enable_gqa=grouped)


def torch_folded(problem: Problem) -> Call:
    """The query heads of a group as rows of one head, which a careful user would do by hand."""
    _, sdpa, q, k, v = in_torch(problem)
    batch, _, _, d = q.shape
    return lambda: sdpa(q.reshape(batch, k.shape[1], -1, d), k, v).reshape(q.shape)


def torch_bfloat16(problem: Problem) -> Call:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    arrays = (torch.from_numpy(a.astype(np.float32)) for a in (problem.q, problem.k, problem.v))
    q, k, v = (a.to(torch.bfloat16) for a in arrays)
    return lambda: sdpa(q, k, v, is_causal=problem.causal, enable_gqa=q.shape[1] != k.shape[1])


def torch_flex(problem: Problem) -> Call | None:
    """FlexAttention, compiled, with a block mask of its own."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch, _, q, k, v = in_torch(problem)
    seen = torch.from_numpy(problem.visible())
    left, right = problem.window or (0, 0)

    def shown(batch: Any, head: Any, row: Any, key: Any) -> Any:
        return seen[row, key]

    def near(batch: Any, head: Any, row: Any, key: Any) -> Any:
        return (key >= row - left) & (key <= row + right)

    try:
        blocks = create_block_mask(near if problem.window else shown, None, None, *seen.shape, device="cpu")
        compiled = torch.compile(flex_attention)
        call = partial(compiled, q, k, v, block_mask=blocks)
        call()
    except Exception:  # whatever a compiler may raise where it cannot run
        return None
    return call


def torch_loop(problem: Problem) -> Call:
    """One call for each of the packed sequences."""
    torch, sdpa, *arrays = in_torch(problem)
    q, k, v = (a.transpose(0, 1)[None] for a in arrays)
    parts = [slice(a, b) for a, b in pairwise(problem.ends.tolist())]
    return lambda: torch.cat([sdpa(q[:, :, p], k[:, :, p], v[:, :, p]) for p in parts], 2)[0].transpose(0, 1)


def torch_padded(problem: Problem) -> Call:
    """One call for all sequences, padded to the longest, with a mask."""
    torch, sdpa, *arrays = in_torch(problem)
    lengths = problem.lengths or []

    def padded(array: Any) -> Any:
        sequences = torch.nn.utils.rnn.pad_sequence(array.split(lengths), batch_first=True)
        return sequences.transpose(1, 2).contiguous()

    q, k, v = map(padded, arrays)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None, None, None]
    call = partial(sdpa, q, k, v, attn_mask=mask)
    return lambda: torch.cat([part[:, :n].transpose(0, 1) for part, n in zip(call(), lengths, strict=True)])


def onnx_call(problem: Problem) -> Call | None:
    """ONNX Runtime's `Attention`."""
    from onnx import helper

    if not problem.bare or problem.k.dtype != np.float32:
        return None
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=int(problem.causal))
    return session(node, {"q": problem.q, "k": problem.k, "v": problem.v})


def onnx_mha(problem: Problem) -> Call | None:
    """ONNX Runtime's own `MultiHeadAttention`: (batch, tokens, heads·d), no grouped heads."""
    from onnx import helper

    batch, heads, tokens, d = problem.q.shape
    if not problem.bare or problem.k.dtype != np.float32 or problem.k.shape[1] != heads:
        return None
    joined = {
        name: np.ascontiguousarray(a.swapaxes(1, 2)).reshape(a.shape[0], a.shape[2], -1)
        for name, a in (("q", problem.q), ("k", problem.k), ("v", problem.v))
    }
    order = {"num_heads": heads, "unidirectional": int(problem.causal)}
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", **order)
    call = session(node, joined)
    return lambda: call().reshape(batch, tokens, heads, d).swapaxes(1, 2)


def session(node: Any, arrays: dict[str, Any]) -> Call:
    import onnxruntime as ort
    from onnx import TensorProto, helper

    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in arrays.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    domains = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "attention", inputs, [output]), opset_imports=domains)
    model.ir_version = 10
    options = ort.SessionOptions()
    options.log_severity_level = 3
    worker = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: worker.run(None, arrays)[0]


def jax_call(problem: Problem) -> Call | None:
    import jax

    if not problem.bare:
        return None
    q, k, v = (jax.numpy.asarray(a.swapaxes(1, 2)) for a in (problem.q, problem.k, problem.v))
    work = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=problem.causal))
    return lambda: np.asarray(work(q, k, v).block_until_ready()).swapaxes(1, 2)


def numpy_call(problem: Problem) -> Call:
    """What anybody would write."""
    q, seen = problem.q, problem.visible()
    group = q.shape[1] // problem.k.shape[1]
    k, v = np.repeat(problem.k, group, 1), np.repeat(problem.v, group, 1)
    scale = np.float32(q.shape[-1] ** -0.5)

    def run() -> Any:
        scores = (q @ k.swapaxes(-1, -2)) * scale
        if seen is not None:
            scores = np.where(seen, scores, np.float32(-np.inf))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return weights @ v

    return run


def at_its_limit(problem: Problem) -> Call | None:
    """The machine itself: as many operations that wait for nothing, or as many bytes read from memory."""
    from headwork.engine.backend import kernel

    operations, size = int(problem.operations()), problem.k.nbytes + problem.v.nbytes
    if kernel is None or operations < 1_000_000:  # fewer are no load
        return None
    if problem.q.itemsize < np.float32().itemsize:  # products of 16-bit numbers may have another limit: no probe of it
        return None
    if problem.reads_memory:
        pieces = cycle(np.ones((-(-STREAM // size), size), np.uint8))
        return lambda: kernel.read(next(pieces), 0)
    return lambda: kernel.multiply_add(operations, 0)


PEERS: dict[str, Callable[[Problem], Call | None]] = {
    "headwork": headwork_call,
    MACHINE: at_its_limit,
    "torch": torch_call,
    "torch folded": torch_folded,
    "torch flex": torch_flex,
    "torch loop": torch_loop,
    "torch padded": torch_padded,
    "torch bfloat16": torch_bfloat16,
    "onnx": onnx_call,
    "onnx mha": onnx_mha,
    "jax": jax_call,
    "numpy": numpy_call,
}
