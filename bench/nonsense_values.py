"""What nonsense is given for each argument, and what attention is where an argument does make sense after all."""

from __future__ import annotations

import decimal
import fractions
import sys
from collections.abc import Callable
from math import isfinite
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

Made = Callable[[Any, dict[str, Any]], Any]  # of the value that stood there, and of all the arguments


class Subclass(torch.Tensor):  # type: ignore[misc]  # Any where torch is not there
    """A tensor with nothing of its own but a type."""


def ended() -> Any:
    once = (number for number in range(3))
    once.close()
    return once


class NoArray:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array today")


def always(value: Any) -> Made:
    return lambda base, given: value


ODD: dict[str, Made] = {
    "None": always(None),
    "a string": always("a"),
    "no string": always(""),
    "a number": always(3),
    "an object": lambda base, given: object(),
    "an ended generator": lambda base, given: ended(),
    "a dictionary": always({}),
    "rows of other lengths": always([[1.0, 2.0], [3.0]]),
    "bytes": always(b"abc"),
    "a type": always(int),
}
ARRAYS: dict[str, Made] = ODD | {
    "objects": lambda base, given: np.asarray(base, object),
    "strings": lambda base, given: np.full((2, 3, 4), "x"),
    "complex": lambda base, given: np.ones((2, 3, 4), complex),
    "whole numbers": lambda base, given: np.ones((2, 3, 4), np.int64),
    "dates": lambda base, given: np.zeros((2, 3, 4), "datetime64[s]"),
    "masked": lambda base, given: np.ma.masked_greater(np.ones((2, 3, 4), np.float32), 0),
    "a scalar": always(np.float32(1)),
    "one axis": lambda base, given: np.ones(4, np.float32),
    "too many axes": lambda base, given: np.ones((1,) * 20 + (4,), np.float32),
    "no width": lambda base, given: np.ones((2, 3, 0), np.float32),
    "nothing": lambda base, given: np.ones((0, 0, 0), np.float32),
    "float64 beside float32": lambda base, given: np.ones((2, 3, 4)),
    "long doubles": lambda base, given: np.ones((2, 3, 4), np.longdouble),
    "other bytes first": lambda base, given: np.ones((2, 3, 4), ">f4"),
    "backwards": lambda base, given: np.ones((2, 3, 4), np.float32)[::-1, ::-1, ::-1],
    "not aligned": lambda base, given: np.zeros(97, np.uint8)[1:].view(np.float32).reshape(2, 3, 4),
    "NaN": lambda base, given: np.full((2, 3, 4), np.nan, np.float32),
    "another length": lambda base, given: np.ones((2, 9, 4), np.float32),
    "a tensor on no device": lambda base, given: torch.empty(2, 3, 4, device="meta"),
    "an array that fails": lambda base, given: NoArray(),
    "a matrix": lambda base, given: np.ones((3, 4), np.float32),
}
TENSORS: dict[str, Made] = ODD | {
    "an array": lambda base, given: np.ones((2, 3, 4), np.float32),
    "whole numbers": lambda base, given: torch.ones(2, 3, 4, dtype=torch.int64),
    "complex": lambda base, given: torch.ones(2, 3, 4, dtype=torch.complex64),
    "Booleans": lambda base, given: torch.ones(2, 3, 4, dtype=torch.bool),
    "eight bits": lambda base, given: torch.ones(2, 3, 4).to(torch.float8_e4m3fn),
    "on no device": lambda base, given: torch.empty(2, 3, 4, device="meta"),
    "sparse": lambda base, given: torch.ones(2, 3, 4).to_sparse(),
    "nested": lambda base, given: torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)]),
    "a subclass": lambda base, given: base.as_subclass(Subclass) if isinstance(base, Tensor) else base,
    "zeros without memory": lambda base, given: torch._efficientzerotensor(2, 3, 4),
    "of the other sign": lambda base, given: torch.ones(2, 3, 4, dtype=torch.complex64).conj().imag,
    "a scalar": always(torch.tensor(1.0)),
    "one axis": lambda base, given: torch.ones(4),
    "too many axes": lambda base, given: torch.ones((1,) * 20 + (4,)),
    "no width": lambda base, given: torch.ones(2, 3, 0),
    "nothing": lambda base, given: torch.ones(0, 0, 0),
    "float64 beside float32": lambda base, given: torch.ones(2, 3, 4, dtype=torch.float64),
    "one number spread": lambda base, given: torch.ones(1).expand(2, 3, 4),
    "NaN": lambda base, given: torch.full((2, 3, 4), torch.nan),
    "another length": lambda base, given: torch.ones(2, 9, 4),
    "a matrix": lambda base, given: torch.ones(3, 4),
}
NUMBERS: dict[str, Made] = {
    name: ODD[name] for name in ("a string", "an object", "an ended generator", "a dictionary", "bytes", "a type")
}
NUMBERS |= {
    "NaN": always(float("nan")),
    "infinity": always(float("inf")),
    "too large for a float": always(10**400),
    "negative": always(-3),
    "zero": always(0),
    "True": always(True),
    "complex": always(1j),
    "a decimal": always(decimal.Decimal("0.5")),
    "a fraction": always(fractions.Fraction(1, 2)),
    "NumPy's": always(np.float32(0.5)),
    "an array": always(np.array(0.5)),
    "an array of two": always(np.array([0.5, 0.5])),
    "a tensor": always(torch.tensor(0.5)),
    "the largest": always(1e30),
    "the least": always(5e-324),
}
WHOLE: dict[str, Made] = NUMBERS | {
    "a list": always([1]),
    "a huge list": always([2**70]),
    "NumPy's": always(np.int8(2)),
    "unsigned": always(np.array(2**64 - 1, np.uint64)),
    "a float": always(1.5),
    "two axes": always(np.ones((2, 2), np.int64)),
    "Booleans": always(np.array(True)),
    "a hundred": always(100),
    "the largest": always(2**63 - 1),
    "objects": always(np.array([1], object)),
    "a tensor": always(torch.tensor(2)),
}
SWITCH: dict[str, Made] = {
    name: ODD[name] for name in ("a string", "an object", "a dictionary", "rows of other lengths", "a type")
}
SWITCH |= {
    "one": always(1),
    "one and a half": always(1.5),
    "NumPy's": always(np.True_),
    "an array of two": always(np.array([True, False])),
    "a tensor of two": always(torch.tensor([True, False])),
    "NaN": always(float("nan")),
}
WINDOW: dict[str, Made] = NUMBERS | {
    "three": always((1, 2, 3)),
    "negative": always((-2, 0)),
    "huge": always((10**30, 0)),
    "the largest": always((sys.maxsize, sys.maxsize)),
    "floats": always((1.0, 1.0)),
    "strings": always(("a", "b")),
    "an array": always(np.array([1, 1])),
    "a tensor": always(torch.tensor([1, 1])),
    "a set": always({1, 2}),
}
LAYOUT: dict[str, Made] = SWITCH | {"another": always("hbsd"), "bytes": always(b"bhsd"), "a list": always(["bhsd"])}


class Blocks(NamedTuple):
    """What a `BlockMask` is to be made of, in the call itself: it refuses nonsense too."""

    visible: Any
    tokens: Any
    keys: Any


def table(given: dict[str, Any], tokens: int = 2, keys: int = 2) -> Any:
    """Every other block, as many as the first two arguments have; an array or a tensor as they are."""
    counts = [getattr(x, "shape", (2, 2))[-2:-1] or (2,) for x in list(given.values())[:2]]
    blocks = (-(-counts[0][0] // tokens), -(-counts[1][0] // keys))
    visible = (np.indices(blocks).sum(0) % 2 == 0) if all(blocks) else np.zeros(blocks, bool)
    return torch.from_numpy(visible) if any(isinstance(x, Tensor) for x in given.values()) else visible


def changed(change: Callable[[Any], Any]) -> Made:
    return lambda base, given: Blocks(change(table(given)), 2, 2)


def sized(tokens: Any, keys: Any) -> Made:
    return lambda base, given: Blocks(table(given), tokens, keys)


BLOCKS: dict[str, Made] = ODD | {
    "a table that fits": changed(lambda visible: visible),
    "a table for every head": changed(lambda visible: (np if is_array(visible) else torch).stack((visible, ~visible))),
    "a block for each pair": lambda base, given: Blocks(table(given, 1, 1), 1, 1),
    "one block for all": lambda base, given: Blocks(table(given, 2**60, 2**60), 2**60, 2**60),
    "a table and no sizes": lambda base, given: table(given),
    "nothing to read": changed(lambda visible: visible & False),
    "whole numbers": changed(lambda visible: visible + 0),
    "floats": changed(lambda visible: visible * 1.0),
    "NaN": changed(lambda visible: visible * float("nan")),
    "a list": changed(lambda visible: visible.tolist()),
    "the other library's": changed(lambda visible: torch.from_numpy(visible) if is_array(visible) else visible.numpy()),
    "one block too many": changed(lambda visible: visible[..., [0, *range(visible.shape[-1])]]),
    "turned": changed(lambda visible: visible.T),
    "every other one of a larger": changed(lambda visible: doubled(visible)[::2, ::2]),
    "backwards": changed(lambda visible: visible[::-1, ::-1] if is_array(visible) else visible.flip(0)),
    "one axis": changed(lambda visible: visible[0]),
    "too many axes": changed(lambda visible: visible[(None,) * 9]),
    "masked": changed(lambda visible: np.ma.masked_array(visible, True)),
    "on no device": changed(lambda visible: torch.empty(visible.shape, dtype=torch.bool, device="meta")),
    "strings": changed(lambda visible: [["a"]]),
    "sparse": changed(lambda visible: torch.ones(visible.shape, dtype=torch.bool).to_sparse()),
    "no table": changed(lambda visible: None),
    "an array that fails": changed(lambda visible: NoArray()),
    "blocks of nothing": sized(0, 2),
    "blocks of less": sized(2, -1),
    "huge blocks": sized(10**30, 10**30),
    "the largest blocks": sized(2**63 - 1, 2**63 - 1),
    "blocks of a float": sized(2.0, 2),
    "blocks of True": sized(True, True),
    "blocks of NumPy's": sized(np.int8(2), np.uint64(2)),
    "blocks of a tensor": sized(torch.tensor(2), torch.tensor(2)),
    "blocks of None": sized(None, None),
    "blocks of a string": sized("2", "2"),
}


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def doubled(x: Any) -> Any:
    return np.repeat(np.repeat(x, 2, 0), 2, 1) if is_array(x) else x.repeat_interleave(2, 0).repeat_interleave(2, 1)


TABLE: dict[str, Made] = WHOLE | {
    "None": always(None),
    "a block that is not there": lambda base, given: made_like(given, [[0, 9], [1, 2]]),
    "one that nobody reads": lambda base, given: made_like(given, [[0, -9], [1, 2]]),
    "blocks shared": lambda base, given: made_like(given, [[1, 0], [1, 2]]),
    "a row too few": lambda base, given: made_like(given, [[0, 1]]),
    "a column more": lambda base, given: made_like(given, [[0, 1, 2], [1, 2, 9]]),
    "floats": lambda base, given: made_like(given, [[0.0, 1.0], [1.0, 2.0]]),
    "NaN for a block": lambda base, given: made_like(given, [[0.0, float("nan")], [1.0, 2.0]]),
    "no columns": lambda base, given: made_like(given, [[], []]),
    "small numbers": lambda base, given: made_like(given, [[0, 1], [1, 2]], "int8"),
    "turned": lambda base, given: base.T if hasattr(base, "T") else base,
    "backwards": lambda base, given: base[::-1] if is_array(base) else base,
    "masked": lambda base, given: np.ma.masked_array(np.array([[0, 1], [1, 2]]), True),
}
SCALES: dict[str, Made] = {
    "for what is not of 8 bits": lambda base, given: made_like(given, [[[0.5]]], "float32"),
    "one for all": lambda base, given: made_like(given, 0.5, "float32"),
    "too many": lambda base, given: made_like(given, [[[0.5] * 7]], "float32"),
    "NaN": lambda base, given: made_like(given, [[[float("nan")]]], "float32"),
    "whole numbers": lambda base, given: made_like(given, [[[2]]]),
    "None": always(None),
}


def made_like(given: dict[str, Any], values: Any, dtype: str | None = None) -> Any:
    """An array where the arguments are arrays, a tensor where they are tensors."""
    array = np.array(values, dtype)
    return torch.from_numpy(array) if any(isinstance(x, Tensor) for x in given.values()) else array


def of_arrays(**more: dict[str, Made]) -> dict[str, dict[str, Made]]:
    shared: dict[str, dict[str, Made]] = {"causal": SWITCH, "window": WINDOW, "scale": NUMBERS, "softcap": NUMBERS}
    shared |= {"sinks": ARRAYS | NUMBERS, "alibi": ARRAYS | NUMBERS, "relative": ARRAYS | NUMBERS}
    return shared | {"dropout": NUMBERS, "seed": WHOLE, "layout": LAYOUT} | more


def of_tensors(**more: dict[str, Made]) -> dict[str, dict[str, Made]]:
    return of_arrays() | dict.fromkeys(("sinks", "alibi", "relative"), TENSORS | NUMBERS) | more


PLACES = {"offset": WHOLE, "lengths": WHOLE, "starts": WHOLE}
HERE = {"threads": WHOLE, "out": ARRAYS}
TORCHS: dict[str, dict[str, Made]] = {"attn_mask": TENSORS, "dropout_p": NUMBERS, "is_causal": SWITCH, "scale": NUMBERS}
JAXS: dict[str, dict[str, Made]] = {"bias": ARRAYS, "mask": ARRAYS, "scale": NUMBERS, "is_causal": SWITCH}
JAXS |= {"key_value_seq_lengths": WHOLE, "query_seq_lengths": WHOLE, "local_window_size": WINDOW}
CACHE: dict[str, dict[str, Made]] = {"lengths": WHOLE, "starts": WHOLE, "block_table": TABLE}
CACHE |= {"k_scales": ODD | SCALES, "v_scales": ODD | SCALES}
KEPT: dict[str, Made] = {
    "backwards": lambda base, given: base[..., ::-1] if is_array(base) else base.flip(-1),
    "every other block": lambda base, given: base[::2],
    "a head less": lambda base, given: base[:, :1],
    "axes in another order": lambda base, given: base.swapaxes(1, 2),
    "eight bits": lambda base, given: made_like(given, np.ones((2, 2, 5, 4)), "int8"),
    "four axes of NaN": lambda base, given: base * float("nan"),
    "float64": lambda base, given: base.astype(np.float64) if is_array(base) else base.double(),
    "float16": lambda base, given: base.astype(np.float16) if is_array(base) else base.half(),
}
OPTIONS: dict[str, dict[str, dict[str, Made]]] = {
    "arrays": of_arrays(mask=ARRAYS, blocks=BLOCKS, **PLACES, **HERE),
    "packed arrays": of_arrays(**HERE),
    "tensors": of_tensors(mask=TENSORS, blocks=BLOCKS, **PLACES),
    "packed tensors": of_tensors(),
    "torch's": TORCHS | {"enable_gqa": SWITCH},
    "jax's": JAXS,
    "cached arrays": of_arrays(**CACHE, **HERE) | dict.fromkeys("qkv", ARRAYS | KEPT),
    "cached tensors": of_tensors(**CACHE) | dict.fromkeys(("query", "key", "value"), TENSORS | KEPT),
}
for _kind in ("cached arrays", "cached tensors"):
    del OPTIONS[_kind]["dropout"], OPTIONS[_kind]["seed"]


def understood(kind: str, given: dict[str, Any]) -> str:
    """The first option that was accepted and says nothing that can be worked out; "" where all do."""
    layouts = ("shd", "hsd") if "packed" in kind else ("bhsd", "bshd")
    rules: dict[str, Callable[[Any], bool]] = {
        "causal": lambda x: x is None or is_switch(x) or (isinstance(x, str) and x in ("top_left", "bottom_right")),
        "is_causal": is_switch,
        "scale": lambda x: x is None or (isinstance(x, Real) and isfinite(x)),
        "softcap": lambda x: x is None or (isinstance(x, Real) and 0 < float(x) < float("inf")),
        "dropout": lambda x: isinstance(x, Real) and 0 <= float(x) <= 1,
        "layout": lambda x: isinstance(x, str) and x in layouts,
        "threads": lambda x: x is None or isinstance(x, Integral),
        "seed": lambda x: x is None or isinstance(x, Integral) or whole_numbers(x),
        "window": is_window,
        "blocks": lambda x: x is None or (isinstance(x, Blocks) and is_table(x)),
        "local_window_size": lambda x: isinstance(x, Integral) or is_window(x),
    }
    of_items = ("offset", "lengths", "starts", "key_value_seq_lengths", "query_seq_lengths", "block_table")
    rules |= dict.fromkeys(of_items, lambda x: x is None or whole_numbers(x))
    return next((f"{n}={given[n]!r}" for n, holds in rules.items() if n in given and not holds(given[n])), "")


def is_switch(x: Any) -> bool:
    return isinstance(x, bool | np.bool_)


def is_table(x: Blocks) -> bool:
    dtype = x.visible.dtype if isinstance(x.visible, Tensor) else np.asarray(x.visible).dtype
    sizes = [isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1 for n in (x.tokens, x.keys)]
    return dtype in (torch.bool, np.bool_) and not isinstance(x.visible, np.ma.MaskedArray) and all(sizes)


def is_window(x: Any) -> bool:
    if x is None:
        return True
    return isinstance(x, tuple | list | np.ndarray | Tensor) and len(x) == 2 and all(whole_numbers(n) for n in x)


def whole_numbers(x: Any) -> bool:
    if isinstance(x, Tensor):
        return not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    return np.asarray(x).dtype.kind in "iu" or isinstance(x, Integral)


def fine(x: Any) -> Any:
    if isinstance(x, Tensor):
        x = x.detach().resolve_neg()
        x = (x.as_subclass(Tensor) + 0).numpy()
    array = np.asarray(x)
    return array if array.dtype == np.bool_ else array.astype(np.float64)


def expected(kind: str, given: dict[str, Any]) -> Any:
    """softmax(q·kᵀ·scale)·v in float64, written out, as the arguments have it; one sequence where packed."""
    q, k, v = (fine(x) for x in list(given.values())[:3])
    single = q.ndim == 2
    first = kind == "jax's" or given.get("layout", "shd" if "packed" in kind else "bhsd") in ("shd", "bshd")
    q, k, v = (x if single or not first else x.swapaxes(-2, -3) for x in (q, k, v))
    if not single and k.shape[-3] and q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    tokens, keys = q.shape[-2], k.shape[-2]
    scale = given.get("scale")
    with np.errstate(all="ignore"):
        scores = q @ k.swapaxes(-1, -2) * (max(q.shape[-1], 1) ** -0.5 if scale is None else float(scale))
        if given.get("softcap") is not None:
            scores = float(given["softcap"]) * np.tanh(scores / float(given["softcap"]))
    scores, seen = placed(kind, given, scores, tokens, keys)
    for name in ("mask", "bias"):
        if given.get(name) is not None:
            mask = fine(given[name])
            boolean = mask.dtype == np.bool_
            seen = seen & (mask if boolean else mask != -np.inf)
            scores = scores if boolean else scores + np.where(np.isneginf(mask), 0, mask)
    if given.get("blocks") is not None:
        visible, *block = given["blocks"]
        rows, columns = np.arange(tokens)[:, None] // int(block[0]), np.arange(keys) // int(block[1])
        seen = seen & (fine(visible) != 0)[..., rows, columns]
    out = mixed(np.where(seen, scores, -np.inf), v, given)
    if given.get("query_seq_lengths") is not None:
        lengths = fine(given["query_seq_lengths"]).reshape(-1, 1, 1, 1)
        out = np.where(np.arange(tokens)[:, None] < lengths, out, 0)
    return out.swapaxes(-2, -3) if first and not single else out


def expected_of_cache(given: dict[str, Any]) -> Any:
    """The same of what a cache holds: its blocks one after another, every number times its scale."""
    given = dict(zip("qkv", list(given.values())[:3], strict=True)) | dict(list(given.items())[3:])
    rest = {name: x for name, x in given.items() if name not in ("block_table", "k_scales", "v_scales")}
    first = given.get("layout", "bhsd") == "bshd"
    for name in "kv":
        whole = fine(given[name])
        if given.get(f"{name}_scales") is not None:
            whole = whole * fine(given[f"{name}_scales"])[..., None]
        if given.get("block_table") is not None:
            table = np.clip(fine(given["block_table"]).astype(np.int64), 0, len(whole) - 1)
            pieces = [np.concatenate([whole[at] for at in row], 0 if first else 1) for row in table]
            whole = np.stack(pieces)
        rest[name] = whole
    causal = given.get("causal", True)
    rest["causal"] = "bottom_right" if causal else False
    axis = 1 if first else 2
    if not causal:
        lengths = given.get("lengths")
        rest["offset"] = np.asarray(rest["k"].shape[axis] if lengths is None else fine(lengths).astype(np.int64))
        rest["offset"] = rest["offset"] - rest["q"].shape[axis]
    return expected("arrays", rest)


def placed(kind: str, given: dict[str, Any], scores: Any, tokens: int, keys: int) -> tuple[Any, Any]:
    """(scores with what is added by distance, which keys may be read)."""
    batch = scores.shape[:-3]

    def numbers(name: str, other: int) -> Any:
        whole = given.get(name)
        found = np.asarray(other if whole is None else fine(whole)).astype(object)
        return np.broadcast_to(found, batch)[..., None, None, None] if batch else found

    lengths = numbers("key_value_seq_lengths" if kind == "jax's" else "lengths", keys)
    causal = given.get("causal", given.get("is_causal", False))
    offset = lengths - tokens if isinstance(causal, str) and causal == "bottom_right" else numbers("offset", 0)
    key, row = np.arange(keys).astype(object), np.arange(tokens).astype(object)[:, None]
    distance = key - (row + offset)
    seen = (key < lengths) & (key >= numbers("starts", 0)) & np.full((tokens, keys), True)
    window = given.get("window", given.get("local_window_size"))
    window = (window, window) if isinstance(window, Integral) else window
    left, right = (-1, -1) if window is None else (int(window[0]), int(window[1]))
    seen = seen & (distance >= -left) if left >= 0 else seen
    right = 0 if (isinstance(causal, str) or bool(causal)) else right
    seen = seen & (distance <= right) if right >= 0 else seen
    distance = np.clip(distance, -(10**6), 10**6).astype(np.int64)
    if given.get("alibi") is not None:
        scores = scores - fine(given["alibi"])[..., None, None] * np.abs(distance)
    if given.get("relative") is not None:
        table = fine(given["relative"])
        far = table.shape[-1] // 2
        scores = scores + np.take(table, np.clip(distance, -far, far) + far, axis=-1)
    return scores, seen.astype(bool)


def mixed(scores: Any, v: Any, given: dict[str, Any]) -> Any:
    if given.get("sinks") is not None:
        sinks = np.broadcast_to(fine(given["sinks"])[..., None, None], (*scores.shape[:-1], 1))
        scores = np.where((sinks == np.inf) & (scores < np.inf), -np.inf, scores)  # such a sink takes all the weight
        scores = np.concatenate((scores, np.minimum(sinks, np.finfo(float).max)), -1)
    with np.errstate(all="ignore"):
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
        weights = np.where(np.isposinf(top), np.nan, weights)
        total = weights.sum(-1, keepdims=True)
        weights = np.where(total == 0, 0, weights / total)[..., : v.shape[-2]]
        hidden = weights == 0
        products = np.where(hidden[..., None], 0, weights[..., None] * v[..., None, :, :])
    return products.sum(-2)
