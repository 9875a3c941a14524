"""Two more kinds of calls for `mixed_calls.py`: sequences packed one after another, and caches that are read, in one
piece or in blocks, of 8 bits or more.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import torch
from mixed_calls import Call, array, formula, tensor_of
from torch import Tensor

from headwork.engine import attention_decode, attention_varlen, attention_varlen_backward

EIGHT_BITS = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)


class Packed(Call):
    """Sequences of different lengths, one after another."""

    def choose(self) -> None:
        self.batch = ()
        self.sizes = [(self.size(), self.size()) for _ in range(int(self.rng.integers(1, 5)))]
        super().choose()
        for name in ("lengths", "starts", "blocks"):
            self.options.pop(name, None)
        if self.options["causal"] is True:
            self.sizes = [(tokens, tokens) for tokens, _ in self.sizes]
        self.tokens, self.keys = (sum(sizes) for sizes in zip(*self.sizes, strict=True))

    def biases(self) -> dict[str, Tensor]:
        found = super().biases()
        self.options.pop("offset", None)
        found.pop("mask", None)
        return found

    def ends(self, which: int) -> list[int]:
        return [0, *np.cumsum([sizes[which] for sizes in self.sizes]).tolist()]

    def formula(self, tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        axis = -3 if self.layout == "bshd" else -2
        found = []
        for number, (tokens, keys) in enumerate(self.sizes):
            one = copy(self)
            one.tokens, one.keys, one.item = tokens, keys, number
            at = {"q": (self.ends(0)[number], tokens), "k": (self.ends(1)[number], keys)}
            at["v"] = at["k"]
            found.append(formula(one, {n: t.narrow(axis, *at[n]) if n in at else t for n, t in tensors.items()}))
        outs, rows = zip(*found, strict=True)
        return torch.cat(outs, -2), torch.cat(rows, -1)

    def in_numpy(self, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
        arrays = {name: array(t) for name, t in self.tensors.items()}
        q, k, v = (arrays.pop(name) for name in "qkv")
        options: dict[str, Any] = {**self.options, **arrays, "layout": self.layout[1:]}
        first, second = self.ends(0), self.ends(1)
        out, lse = attention_varlen(q, k, v, first, second, **options, return_lse=True)
        asked: dict[str, Any] = {"bias_gradient": "alibi" in arrays or "relative" in arrays}
        asked["dlse"] = array(dlse.to(torch.float64 if self.dtype == torch.float64 else torch.float32))
        got = attention_varlen_backward(q, k, v, out, lse, array(dout), first, second, **asked, **options)
        found = {"out": out, "lse": lse} | {f"d{name}": x for name, x in got._asdict().items() if x is not None}
        return {name: tensor_of(x) for name, x in found.items()}

    def call_torch(self, leaves: dict[str, Tensor], numbers: dict[str, Any]) -> tuple[Tensor, Tensor]:
        from headwork.torch import attention_varlen as in_tensors

        rest: dict[str, Any] = {n: t for n, t in leaves.items() if n not in "qkv"} | numbers
        rest["layout"] = self.layout[1:]
        first, second = (torch.tensor(self.ends(which)) for which in (0, 1))
        q, k, v = (leaves[n] for n in "qkv")
        found: Any = in_tensors(q, k, v, first, second, **rest, return_lse=True)
        return found[0], found[1]


class Cache(Call):
    """The newest tokens read the keys and values that have been kept. It has no gradients."""

    gradients = False

    def choose(self) -> None:
        rng = self.rng
        self.batch = (int(rng.integers(1, 4)),)
        self.tokens = int(rng.choice([1, 1, 1, 2, 5]))
        super().choose()
        self.keys = self.keys or 1
        for name in ("dropout", "seed", "starts", "blocks"):
            self.options.pop(name, None)
        self.options["causal"] = "bottom_right" if self.some(0.7) else False
        self.options["lengths"] = rng.integers(0, self.keys + 1, self.batch)
        if self.some():
            self.options["starts"] = rng.integers(0, self.keys + 1, self.batch)
        self.kind = EIGHT_BITS[rng.integers(3)] if self.some(0.6) and self.dtype != torch.float64 else None
        self.block = int(rng.choice([1, 2, 16, 32])) if self.some(0.6) else 0

    def biases(self) -> dict[str, Tensor]:
        found = super().biases()
        found.pop("mask", None)
        self.options["offset"] = self.options["lengths"] - self.tokens  # where the tokens stand, causal or not
        return found

    def kept(self) -> dict[str, Tensor]:
        """Keys and values as the cache has them, with scales where they have 8 bits."""
        from headwork.torch import quantize

        if self.kind is None:
            return {name: self.tensors[name] for name in "kv"}
        found = {}
        for name in "kv":
            found[name], found[f"{name}_scales"] = quantize(self.tensors[name], self.kind)
        return found

    def formula(self, tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        kept = self.kept()
        fine = {n: kept[n].to(torch.float64) for n in "kv"}
        for name in fine:
            if self.kind is not None:
                fine[name] = fine[name] * kept[f"{name}_scales"].to(torch.float64)[..., None]
        return formula(self, tensors | fine)

    def in_blocks(self, kept: dict[str, Tensor]) -> dict[str, Tensor]:
        """A pool of blocks in any order, and the table that names those of every sequence."""
        axis = 1 if self.layout == "bshd" else 2
        count = -(-self.keys // self.block)
        order = torch.from_numpy(self.rng.permutation(self.batch[0] * count))
        found = {"block_table": order.reshape(self.batch[0], count)}
        for name, tensor in kept.items():
            shape = list(tensor.shape)
            shape[axis] = count * self.block
            whole = torch.zeros(shape, dtype=torch.float32)
            whole.narrow(axis, 0, self.keys).copy_(tensor.to(torch.float32))
            blocks = whole.unflatten(axis, (count, self.block)).movedim(axis, 1).flatten(0, 1)
            pool = torch.empty_like(blocks)
            pool[order] = blocks
            found[name] = pool.to(tensor.dtype)
        return found

    def asked(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        kept = self.kept()
        tensors = {n: t for n, t in self.tensors.items() if n not in "kv"}
        tensors |= self.in_blocks(kept) if self.block and self.dtype != torch.float64 else kept
        options = {n: x for n, x in self.options.items() if n != "offset"} | {"layout": self.layout}
        return tensors, options | {"causal": bool(self.options["causal"])}

    def in_numpy(self, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
        tensors, options = self.asked()
        arrays = {n: array(t) for n, t in tensors.items()}
        q, k, v = (arrays.pop(n) for n in "qkv")
        out, lse = attention_decode(q, k, v, **arrays, **options, return_lse=True)
        return {"out": tensor_of(out), "lse": tensor_of(lse)}

    def in_torch(self, dout: Tensor, dlse: Tensor) -> dict[str, Tensor]:
        from headwork.torch import attention_decode as in_tensors

        tensors, options = self.asked()
        numbers = {n: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for n, x in options.items()}
        q, k, v = (tensors.pop(n) for n in "qkv")
        rest: dict[str, Any] = {**tensors, **numbers}
        found: Any = in_tensors(q, k, v, **rest, return_lse=True)
        return {"out": found[0], "lse": found[1]}

    def __str__(self) -> str:
        return f"{super().__str__()}, kept as {self.kind}, in blocks of {self.block}"
