"""Calls with every option at random, forward and backward, each against the formula in float64.

    python bench/mixed_calls.py --count 10000 --seed 1
    python bench/mixed_calls.py --count 1 --seed 1 --first 4711     # one of them again

NumPy's function and its gradients and `headwork.torch`'s on every call; of four, two are plain, one is of packed
sequences and one reads a cache (`mixed_packed.py`). A call is wrong where an entry is farther from float64 than
rounding allows, or not finite where the formula is.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwork.engine import BlockMask, attention, attention_backward

FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
GIVEN = ("mask", "sinks", "alibi", "relative")


class Call:
    """One call: tensors that may have gradients, and the rest of the options."""

    gradients = True
    item = 0  # of a packed sequence, by which dropout tells it from the others

    def __init__(self, number: int, seed: int) -> None:
        self.rng = rng = np.random.default_rng((seed, number))
        self.dtype = FLOATS[rng.integers(len(FLOATS))]
        self.layout = "bshd" if rng.random() < 0.3 else "bhsd"
        self.batch = [(), (1,), (2,), (3, 2)][rng.integers(4)]
        self.kv_heads, self.group = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        self.heads = self.kv_heads * self.group
        self.tokens, self.keys = self.size(), self.size()
        self.d_k, self.d_v = (int(rng.choice([1, 2, 7, 8, 16, 33, 64])) for _ in range(2))
        self.options: dict[str, Any] = {}
        self.choose()
        q = self.array(self.heads, self.tokens, self.d_k)
        self.tensors = {
            "q": q,
            "k": self.array(self.kv_heads, self.keys, self.d_k),
            "v": self.array(self.kv_heads, self.keys, self.d_v),
        } | self.biases()

    def size(self) -> int:
        return int(self.rng.choice([0, 1, 2, 5, 17, 40, 130], p=[0.02, 0.16, 0.14, 0.2, 0.2, 0.2, 0.08]))

    def some(self, chance: float = 0.3) -> bool:
        return bool(self.rng.random() < chance)

    def choose(self) -> None:
        rng, options = self.rng, self.options
        options["causal"] = [False, False, "top_left", "bottom_right", True][rng.integers(5)]
        if options["causal"] is True:
            self.keys = self.tokens
        if self.some():
            options["window"] = (int(rng.integers(-1, 20)), int(rng.integers(-1, 20)))
        if self.some():
            options["scale"] = float(rng.normal())
        if self.some():
            options["softcap"] = float(rng.uniform(0.5, 30))
        for name in ("lengths", "starts"):
            if self.some():
                options[name] = rng.integers(0, self.keys + 1, self.batch)
        if self.some():
            options |= {"dropout": float(rng.choice([0.1, 0.5, 0.9, 1.0])), "seed": int(rng.integers(2**62))}
        if self.some():
            sizes = [int(rng.choice([1, 3, 16, 32, 64, 200])) for _ in range(2)]
            lead = [(), (self.heads,), (1,), (*self.batch, self.heads)][rng.integers(4)]
            table = (*lead, -(-self.tokens // sizes[0]), -(-self.keys // sizes[1]))
            options["blocks"] = BlockMask(rng.random(table) < 0.6, *sizes)

    def array(self, heads: int, rows: int, width: int) -> Tensor:
        shape = (*self.batch, rows, heads, width) if self.layout == "bshd" else (*self.batch, heads, rows, width)
        values = torch.from_numpy(np.asarray(self.rng.standard_normal(shape))).to(self.dtype)
        if self.some() and values.numel():  # other strides
            wide = torch.zeros(*shape[:-1], 2 * width, dtype=self.dtype)
            wide[..., ::2] = values
            return wide[..., ::2]
        return values

    def biases(self) -> dict[str, Tensor]:
        rng, found = self.rng, {}
        lead = [(self.heads,), (1,), (*self.batch, self.heads)][rng.integers(3)]

        def drawn(shape: tuple[int, ...]) -> Tensor:
            return torch.from_numpy(np.asarray(rng.standard_normal(shape))).to(self.dtype)

        if self.some():
            found["sinks"] = drawn(lead)
        if self.some():
            found["alibi"] = drawn(lead).abs() / 4
        if self.some():
            found["relative"] = drawn((*lead, 2 * int(rng.integers(0, 20)) + 1))
        placed = "window" in self.options or "alibi" in found or "relative" in found
        if (self.options["causal"] is True or (not self.options["causal"] and placed)) and self.some():
            self.options["offset"] = int(rng.integers(-9, 9)) if self.some() else rng.integers(-9, 9, self.batch)
        if self.some(0.4):
            whole = (*self.batch, self.heads, self.tokens, self.keys)
            shape = tuple(1 if self.some() else n for n in whole)[int(rng.integers(len(whole) - 1)) :]
            seen = torch.from_numpy(np.asarray(rng.random(shape) < 0.7))
            found["mask"] = seen if self.some(0.5) else drawn(shape).masked_fill(~seen, -math.inf)
        return found

    def formula(self, tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return formula(self, tensors)

    def in_numpy(self, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
        arrays = {name: array(t) for name, t in self.tensors.items()}
        q, k, v = (arrays.pop(name) for name in "qkv")
        options = {**self.options, **arrays, "layout": self.layout}
        out, lse = attention(q, k, v, **options, return_lse=True)
        additive = "mask" in arrays and arrays["mask"].dtype != np.bool_
        asked: dict[str, Any] = {"mask_gradient": additive, "bias_gradient": "alibi" in arrays or "relative" in arrays}
        upward = {"dlse": array(dlse.to(torch.float64 if self.dtype == torch.float64 else torch.float32))}
        got = attention_backward(q, k, v, out, lse, array(dout), **upward, **asked, **options)
        found = {"out": out, "lse": lse} | {f"d{name}": x for name, x in got._asdict().items() if x is not None}
        threads = attention(q, k, v, **options, threads=1)
        if not (np.asarray(threads, np.float64) == np.asarray(out, np.float64)).all():
            raise AssertionError("other bits for one thread")
        return {name: tensor_of(x) for name, x in found.items()}

    def call_torch(self, leaves: dict[str, Tensor], numbers: dict[str, Any]) -> tuple[Tensor, Tensor]:
        from headwork.torch import attention as in_tensors

        rest: dict[str, Any] = {n: t for n, t in leaves.items() if n not in "qkv"} | numbers
        rest["layout"] = self.layout
        found: Any = in_tensors(*(leaves[n] for n in "qkv"), **rest, return_lse=True)
        return found[0], found[1]

    def in_torch(self, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
        leaves = {n: t.clone().requires_grad_(t.is_floating_point()) for n, t in self.tensors.items()}
        numbers = {n: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for n, x in self.options.items()}
        if "blocks" in numbers:
            blocks = numbers["blocks"]
            numbers["blocks"] = BlockMask(torch.from_numpy(blocks.visible), blocks.tokens, blocks.keys)
        out, lse = self.call_torch(leaves, numbers)
        total = (out * dout).sum() + torch.where(lse.isfinite(), lse * dlse, 0).sum()
        total.backward()
        found = {"out": out.detach(), "lse": lse.detach()}
        return found | {
            f"d{n}": torch.zeros_like(t) if t.grad is None else t.grad for n, t in leaves.items() if t.requires_grad
        }

    def __str__(self) -> str:
        shapes = {name: tuple(t.shape) for name, t in self.tensors.items()}
        return f"{self.dtype} {self.layout} {shapes} {self.options}"


def kept(call: Call) -> Tensor:
    """What dropout multiplies every weight by, from docs/reference/engine.md, one number at a time."""
    whole = (*call.batch, call.heads, call.tokens, call.keys)
    if not call.options.get("dropout"):
        return torch.ones(whole, dtype=torch.float64)
    below = int(call.options["dropout"] * 2**24 + 0.5)
    word = 2**64 - 1

    def scattered(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) & word
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        return x ^ (x >> 31)

    columns = np.arange(call.keys, dtype=np.uint32)
    rows = []
    for item in range(call.item, call.item + math.prod(call.batch)):
        for head in range(call.heads):
            for row in range(call.tokens):
                key = scattered(scattered(scattered(scattered(call.options["seed"]) ^ item) ^ head) ^ row)
                x = columns + np.uint32(key & 0xFFFFFFFF)
                x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
                x = (x ^ (x >> np.uint32(15)) ^ np.uint32(key >> 32)) * np.uint32(0x846CA68B)
                rows.append(((x ^ (x >> np.uint32(16))) >> np.uint32(8)) >= below)
    gain = 2**24 / (2**24 - below) if below < 2**24 else 0.0
    return torch.from_numpy(np.array(rows, dtype=np.float64).reshape(whole)) * gain


def formula(call: Call, tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """(out, lse) with every matrix written out; heads first."""
    options = call.options
    q, k, v = (t.transpose(-2, -3) if call.layout == "bshd" else t for t in (tensors[n] for n in "qkv"))
    k, v = (t.repeat_interleave(call.group, -3) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * options.get("scale", call.d_k**-0.5)
    if "softcap" in options:
        scores = options["softcap"] * torch.tanh(scores / options["softcap"])
    lengths, starts = (
        torch.from_numpy(np.broadcast_to(options.get(name, other), call.batch).copy())
        for name, other in (("lengths", call.keys), ("starts", 0))
    )
    offset = lengths - call.tokens if options["causal"] == "bottom_right" else options.get("offset", 0)
    offset = torch.as_tensor(offset).broadcast_to(call.batch)[..., None, None, None]
    key = torch.arange(call.keys)
    distance = key - (torch.arange(call.tokens)[:, None] + offset)
    seen = (key < lengths[..., None, None, None]) & (key >= starts[..., None, None, None])
    if options["causal"]:
        seen = seen & (distance <= 0)
    left, right = options.get("window", (-1, -1))
    seen = seen & (distance >= -left) if left >= 0 else seen
    seen = seen & (distance <= right) if right >= 0 else seen
    if "blocks" in options:
        blocks = options["blocks"]
        rows, columns = torch.arange(call.tokens) // blocks.tokens, key // blocks.keys
        seen = seen & torch.from_numpy(blocks.visible)[..., rows[:, None], columns]
    if "alibi" in tensors:
        scores = scores - tensors["alibi"][..., None, None] * distance.abs()
    if "relative" in tensors:
        table = tensors["relative"]
        reach = table.shape[-1] // 2
        place = (distance.clamp(-reach, reach) + reach).broadcast_to(scores.shape)
        table = table.broadcast_to(*call.batch, call.heads, 2 * reach + 1)
        rows = table[..., None, :].expand(*scores.shape[:-1], 2 * reach + 1)
        scores = scores + torch.gather(rows, -1, place)
    if "mask" in tensors:
        mask = tensors["mask"]
        seen = seen & (mask if mask.dtype == torch.bool else mask != -math.inf)
        scores = scores if mask.dtype == torch.bool else scores + mask.masked_fill(mask == -math.inf, 0)
    scores = scores.masked_fill(~seen, -math.inf)
    sink = tensors.get("sinks", torch.tensor(-math.inf, dtype=torch.float64))[..., None, None]
    everything = torch.cat((scores, sink.broadcast_to(*scores.shape[:-1], 1)), -1)
    empty = (everything == -math.inf).all(-1, keepdim=True)
    lse = everything.masked_fill(empty, 0).logsumexp(-1).masked_fill(empty[..., 0], -math.inf)
    weights = everything.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)[..., :-1].masked_fill(~seen, 0)
    return (weights * kept(call)) @ v, lse


def reference(call: Call, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
    """Results and gradients in float64."""
    fine = {n: t.to(torch.float64).clone() if t.is_floating_point() else t for n, t in call.tensors.items()}
    for tensor in fine.values():
        tensor.requires_grad_(tensor.is_floating_point())
    out, lse = call.formula(fine)
    out = out.transpose(-2, -3) if call.layout == "bshd" else out
    if not call.gradients:
        return {"out": out.detach(), "lse": lse.detach()}
    total = (out * dout.to(torch.float64)).sum() + torch.where(lse.isfinite(), lse * dlse, 0).sum()
    total.backward()
    found = {"out": out.detach(), "lse": lse.detach()}
    return found | {
        f"d{n}": torch.zeros_like(t) if t.grad is None else t.grad for n, t in fine.items() if t.requires_grad
    }


def array(tensor: Tensor) -> Any:
    import ml_dtypes

    if tensor.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        kind = str(tensor.dtype).removeprefix("torch.")
        return tensor.contiguous().view(torch.uint8).numpy().view(getattr(ml_dtypes, kind))
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def tensor_of(found: Any) -> Tensor:
    return torch.from_numpy(np.array(found, dtype=np.float64))


def in_numpy(call: Call, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
    return call.in_numpy(dout, dlse)


def in_torch(call: Call, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
    return call.in_torch(dout, dlse)


def wrong(call: Call, ways: tuple[Any, ...] = (in_numpy, in_torch)) -> str:
    """What is wrong with our answers to a call; "" where nothing is."""
    return judged(call, ways)[0]


def judged(call: Call, ways: tuple[Any, ...]) -> tuple[str, float]:
    """(what is wrong, or ""; the largest error, as a part of what is allowed)."""
    shape = (*call.batch, call.tokens, call.heads) if call.layout == "bshd" else (*call.batch, call.heads, call.tokens)
    draw = [
        torch.from_numpy(np.asarray(call.rng.standard_normal(s)))
        for s in ((*shape, call.d_v), (*call.batch, call.heads, call.tokens))
    ]
    dout, dlse = draw[0].to(call.dtype), draw[1]
    exact = reference(call, dout, dlse)
    # A last place of a large score moves a weight by as many of its own.
    scores = exact["lse"].masked_fill(~exact["lse"].isfinite(), 0).abs().max().item() if exact["lse"].numel() else 0.0
    accumulates = torch.float64 if call.dtype == torch.float64 else torch.float32
    worst = 0.0
    for way in ways:
        got = way(call, dout, dlse)
        for name, fine in exact.items():
            ours = got[name].to(torch.float64)
            if ours.shape != fine.shape:
                return f"{way.__name__} {name}: shape {tuple(ours.shape)}, not {tuple(fine.shape)}", math.inf
            if not torch.equal(ours.isfinite(), fine.isfinite()):
                return f"{way.__name__} {name}: finite elsewhere", math.inf
            if bool(fine.isnan().any()) or not fine.numel():
                continue
            unit = torch.finfo(call.dtype).eps if name != "lse" else torch.finfo(torch.float32).eps
            size = fine.masked_fill(~fine.isfinite(), 0).abs().max().item()
            gain = 1 / (1 - call.options["dropout"]) if 0 < call.options.get("dropout", 0) < 1 else 1
            terms = (
                gain
                * (1 + math.sqrt(call.tokens * call.group * math.prod(call.batch)))
                * (call.keys if name == "dalibi" else 1)
            )
            apart = (ours - fine).masked_fill(~fine.isfinite(), 0).abs().max().item()
            size += terms * (4 if name.startswith("d") else 1)
            allowed = (24 * unit + 4 * scores * torch.finfo(accumulates).eps) * size
            part = 0.0 if apart == 0 else apart / allowed if allowed else math.inf
            if part > 1:
                return f"{way.__name__} {name}: {apart:.2g} apart, of {size:.2g}", part
            worst = max(worst, part)
    return "", worst


def main() -> None:
    from mixed_packed import Cache, Packed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--numpy-only", action="store_true")
    chosen = parser.parse_args()
    failed, worst = 0, 0.0
    kinds = (Call, Packed, Call, Cache)
    for number in range(chosen.first, chosen.first + chosen.count):
        call = kinds[number % 4](number, chosen.seed)
        found, part = judged(call, (in_numpy,) if chosen.numpy_only else (in_numpy, in_torch))
        worst = max(worst, part)
        if found:
            failed += 1
            print(f"{number}: {found}\n    {call}", flush=True)
        if (number + 1) % 1000 == 0:
            print(f"… up to {number + 1}, {failed} wrong", file=sys.stderr, flush=True)
    print(f"{chosen.count} calls, {failed} wrong, the largest error {worst:.2f} of what is allowed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
