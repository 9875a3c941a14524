"""The first step that differs, as far as it can be told from outside: through values that make the weights visible.

What a head puts out is linear in its values. With the identity for V it is the weights, and their logarithms are the
scaled scores, but for a number in every row. A layer is given such values, and a W_O that lets one column of one head
through, by way of its own parameters.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.building import parameters_of
from headwork.inspecting.calling import Case
from headwork.inspecting.layouts import first_matrix
from headwork.inspecting.projections import Own, projections
from headwork.inspecting.trial import WEIGHTS, Trial, graph_of, same
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array


def first_difference(trial: Trial) -> str:
    """Its role: scores, scaled, weights; or what comes after them."""
    last = {"qkv": "head_output", "wide": "joined"}.get(trial.caller.kind, "output")
    if trial.caller.kind == "wide" or (trial.caller.framework == "numpy" and trial.caller.kind == "layer"):
        return last
    before = {role: trial.case[role] for role in WEIGHTS if role in trial.case}
    try:
        bench = _Bare(trial) if trial.caller.kind == "qkv" else _Projected(trial)
        return _told(bench) or last
    except Exception:  # it does not take such values
        return last
    finally:
        if trial.caller.kind == "layer":
            write(trial.caller.function, trial.heads, before)


def _told(bench: "_Bare | _Projected") -> str:
    generator = np.random.default_rng(6)
    one, other = (generator.normal(0, 1, bench.shape) for _ in range(2))
    from_one, from_other = bench.with_values(one), bench.with_values(other)
    if same(from_one, from_other):
        return bench.values  # which it reads nothing of
    nothing = bench.with_values(np.zeros(bench.shape))
    if not same(bench.with_values(one + other) + nothing, from_one + from_other):
        return "scores"  # which then hang on the values
    if not same(nothing, np.zeros_like(nothing)):
        return ""  # something is added to what the heads put out
    theirs, ours, scaled = bench.weights()
    if same(theirs, ours):
        return "" if bench.joins(one) else "joined"
    if not bench.heads_stay_apart(generator) or _in_another_order(theirs, ours, bench.trial.heads):
        return "joined"
    if np.any(theirs < 0) or not np.allclose(theirs.sum(axis=-1), 1, atol=1e-4):
        return "weights"
    told = np.log(np.maximum(theirs, 1e-300))
    told, scaled, weights = (m - m.mean(axis=-1, keepdims=True) for m in (told, scaled, ours))
    if same(told, weights):
        return "weights"  # a softmax of them once more
    factor = (told * scaled).sum() / (scaled * scaled).sum()
    if np.allclose(told, factor * scaled, atol=1e-4 * np.abs(told).max()):
        return "scaled"
    rising = np.diff(np.take_along_axis(theirs, np.argsort(scaled, axis=-1), axis=-1))
    return "weights" if np.all(rising >= -1e-6) else "scores"  # right ones, shared out in another way


def _in_another_order(theirs: Array, ours: Array, heads: int) -> bool:
    if heads == 1:
        return False
    right = np.split(ours, heads)
    return all(any(same(one, other) for other in right) for one in np.split(theirs, heads))


class _Bare:
    """A function of Q, K and V. There is a column more than keys: it may return its weights beside its answer."""

    values = "head_output"

    def __init__(self, trial: Trial) -> None:
        sizes = replace(trial.sizes, d_v=trial.sizes.keys + 1)
        self.trial, self.case = trial, trial.caller.draw(sizes, np.random.default_rng(2))
        self.shape = self.case["V"].shape

    def with_values(self, values: Array) -> Array:
        return self.trial.caller({**self.case, "V": values}, self.trial.heads)

    def heads_stay_apart(self, generator: np.random.Generator) -> bool:
        return True

    def joins(self, values: Array) -> bool:
        return True

    def weights(self) -> tuple[Array, Array, Array]:
        """The code's, the formula's, and the formula's scaled scores."""
        theirs = self.with_values(np.broadcast_to(np.eye(*self.shape[-2:]), self.shape).copy())
        return theirs[..., :-1], _step(self.case, 1, "weights", None), _step(self.case, 1, "scaled", None)


class _Projected:
    """A layer, or a function of x and projections: the values come through W_V."""

    values = "V"

    def __init__(self, trial: Trial) -> None:
        self.trial, self.case = trial, dict(trial.case)
        X = first_matrix(self.case["X"])
        self.case["X"] = np.broadcast_to(X, self.case["X"].shape).copy()
        self.case |= {role: np.zeros_like(self.case[role]) for role in ("b_V", "b_O") if role in self.case}
        self.back, self.tokens = np.linalg.pinv(X), X.shape[0]
        self.shape = (self.tokens, self.case["W_V"].shape[1])
        self.d_k = self.case["W_Q"].shape[1] // trial.heads
        kv_heads = self.case["W_K"].shape[1] // self.d_k
        self.d_v = self.shape[1] // kv_heads

    def with_values(self, values: Array, W_O: Array | None = None) -> Array:
        case = {**self.case, "W_V": self.back @ values}
        if W_O is not None and "W_O" in case:
            case["W_O"] = W_O
        if self.trial.caller.kind == "layer":
            write(self.trial.caller.function, self.trial.heads, {r: a for r, a in case.items() if r in WEIGHTS})
        return first_matrix(self.trial.caller(case, self.trial.heads))

    def heads_stay_apart(self, generator: np.random.Generator) -> bool:
        """With the same values for every token each head puts out a multiple of them, wherever it looks."""
        values: Array = generator.normal(1, 1, self.d_v)
        all_heads = np.tile(values, (self.tokens, self.shape[1] // self.d_v))
        joined = self.with_values(all_heads, self._let_through(slice(None)))
        times = joined[:, : self.trial.heads * self.d_v].reshape(self.tokens, self.trial.heads, self.d_v) / values
        return bool(np.allclose(times, times[..., :1], atol=1e-4 * np.abs(times).max()))

    def joins(self, values: Array) -> bool:
        """Whether the heads come out side by side, as far as W_O has columns for them."""
        self.case["W_V"] = self.back @ values
        ours = self._ours("joined", None)
        joined = self.with_values(values, self._let_through(slice(None)))
        width = min(ours.shape[1], joined.shape[1])
        return same(joined[:, :width], ours[:, :width])

    def _let_through(self, columns: Any) -> Array | None:
        """A W_O that leaves these columns of the joined heads where they are."""
        if "W_O" not in self.case:
            return None
        W_O = np.zeros_like(self.case["W_O"])
        kept = np.arange(min(W_O.shape))[columns]
        W_O[kept, kept] = 1.0
        return W_O

    def weights(self) -> tuple[Array, Array, Array]:
        """Of all heads, one under the other, a token's column at a time."""
        theirs = []
        for head in range(self.trial.heads):
            column = head * self.d_v
            W_O = self._let_through(slice(column, column + 1))
            each = []
            for token in range(self.tokens):
                values = np.zeros(self.shape)
                values[token, :: self.d_v] = 1.0  # in every head: which one's values it reads comes later
                each.append(self.with_values(values, W_O)[:, column])
            theirs.append(np.stack(each, axis=-1))
        ours, scaled = ([self._ours(role, head) for head in range(self.trial.heads)] for role in ("weights", "scaled"))
        return np.concatenate(theirs), np.concatenate(ours), np.concatenate(scaled)

    def _ours(self, role: str, head: int | None) -> Array:
        return first_matrix(_step(self.case, self.trial.heads, role, head))


def _step(case: Case, heads: int, role: str, head: int | None) -> Array:
    last, handed = graph_of(case, heads)
    assert last is not None
    variant = Variant(last, PREDICTED)
    return variant.everything(handed)[variant.by_key[role, head]]


def write(layer: Any, heads: int, own: Own) -> None:
    """A torch layer's parameters set so that these are its projections. Where each entry goes is read off a layer whose
    parameters are their own places."""
    import torch

    parameters = [*parameters_of(layer)]
    starts = np.cumsum([0, *(p.array.size for p in parameters)])
    places = [
        replace(p, array=np.arange(start, start + p.array.size, dtype=np.float64).reshape(p.array.shape))
        for p, start in zip(parameters, starts[:-1], strict=True)
    ]
    where = projections(places, heads).readings[0]
    numbers = np.concatenate([p.array.ravel() for p in parameters])
    for role, array in own.items():
        numbers[where[role].astype(int)] = array
    torch.nn.utils.vector_to_parameters(torch.from_numpy(numbers), layer.parameters())
