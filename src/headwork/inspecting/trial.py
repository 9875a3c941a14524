"""A trial: one way of calling somebody's attention, held against the formula and the catalogue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwork.build import Sizes, build
from headwork.graph import Step
from headwork.inspecting.arrays import VALUES
from headwork.inspecting.calling import Caller, Case, CaseSizes, with_masks
from headwork.mistakes.diagnose import Variants
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array

CLOSE = 1e-5  # relative; a function may work in single precision inside
WEIGHTS = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")


class Trial:
    """One way of calling, held against the formula and the catalogue."""

    def __init__(self, caller: Caller, heads: int, masked: bool = False, sizes: CaseSizes | None = None) -> None:
        self.caller, self.heads, self.masked = caller, heads, masked
        self.sizes = replace(sizes or CaseSizes(), heads=heads)
        self.case = caller.draw(self.sizes, np.random.default_rng(1))
        if masked:
            self.case["mask"] = np.tril(np.ones((self.sizes.tokens, self.sizes.keys)))
        self.answer = caller(dict(self.case), heads)
        self.verdict, self.tags, self.causal = self._judge()

    @property
    def rank(self) -> int:
        return ["disagrees", "mistake", "agrees"].index(self.verdict)

    def _judge(self) -> tuple[str, list[str], bool]:
        """Against the formula, then against it with a causal mask built in, where none was handed over."""
        found: list[tuple[list[str], bool]] = []
        for causal in (False,) if self.masked else (False, True):
            last, handed = graph_of(self.case, self.heads, causal)
            if last is None:
                continue
            tags = judged(last, handed, self.answer)
            if tags == [] and not (self.caller.kind == "module" and "W_O" not in self.case):
                return "agrees", [], causal
            if tags == []:
                return "mistake", ["forgot-output-projection"], causal
            if tags is not None:
                found.append((tags, causal))
        if found:
            return "mistake", *found[0]
        if split_first(self.case, self.heads, self.answer):
            return "mistake", ["split-before-projection"], False
        return "disagrees", [], False

    def with_mask(self) -> Trial | None:
        """The same function with a mask: the first form of mask that tells us anything."""
        unsure: Trial | None = None
        for caller in with_masks(self.caller):
            try:
                trial = Trial(caller, self.heads, masked=True)
            except Exception:  # a form of mask that it does not take
                continue
            if trial.verdict != "disagrees":
                return trial
            unsure = unsure or trial
        return unsure

    def notes(self) -> list[str]:
        notes = ["A causal mask is built in."] if self.causal else []
        if self.caller.kind == "module" and "W_O" not in self.case:
            notes.append("None of its parameters is an output projection.")
        if "W_Q" in self.case and self.case["W_Q"].shape[1] > self.case["X"].shape[-1]:
            width, d_model = self.case["W_Q"].shape[1] // self.heads, self.case["X"].shape[-1]
            notes.append(f"Every head is {width} wide: d_model = {d_model} times the heads, not shared by them.")
        return notes


def graph_of(case: Case, heads: int, causal: bool = False) -> tuple[Step | None, dict[Step, Array]]:
    """The formula for a case, and what is handed to it; None where the projections do not fit it."""
    tokens = case["Q" if "Q" in case else "X"].shape[-2]
    keys = case["K"].shape[-2] if "K" in case else tokens
    mask = "mask" in case or causal
    if "Q" in case:
        d_k, d_v = case["Q"].shape[-1], case["V"].shape[-1]
        sizes = Sizes(tokens, keys, 1, 1, 1, 1, d_k, d_v, 1)
        last = build("scaled_dot_product", sizes, mask=mask)
        roles = {role: case[role] for role in "QKV"}
    else:
        roles = {role: case[role] for role in ("X", *WEIGHTS) if role in case}
        if not {"W_Q", "W_K", "W_V"} <= roles.keys() or roles["W_Q"].shape[0] != roles["X"].shape[-1]:
            return None, {}
        width, d_model = roles["W_V"].shape[1], roles["X"].shape[-1]
        roles.setdefault("W_O", np.eye(width))
        d_k, d_out = roles["W_Q"].shape[1] // heads, roles["W_O"].shape[1]
        sizes = Sizes(tokens, tokens, d_model, d_model, heads, heads, d_k, width // heads, d_out)
        last = build("multi_head_blocks", sizes, mask=mask, biases=[role for role in roles if role.startswith("b_")])
    if mask:
        seen = case["mask"].astype(bool) if "mask" in case else np.tril(np.ones((tokens, keys), bool))
        roles["mask"] = np.where(seen, 0.0, -np.inf)
    by_role = Variant(last, VALUES).by_key
    return last, {by_role[role, None]: array for role, array in roles.items()}


def judged(last: Step, handed: dict[Step, Array], answer: Array) -> list[str] | None:
    """[] for agreement, the tags that predict the answer, or None."""
    variants = Variants(last, VALUES)
    if same(answer, variants.right.value(last, handed)):
        return []
    single = [tag for tag, graph in variants.single if same(answer, graph.predict(last, handed))]
    if single:
        return list(dict.fromkeys(single))
    both = ["+".join(tags) for tags, graph in variants.pairs() if same(answer, graph.predict(last, handed))]
    return list(dict.fromkeys(both)) or None


def split_first(case: Case, heads: int, answer: Array) -> bool:
    """One small projection, shared by the heads, on each head's part of X."""
    if "W_Q" not in case or case["W_Q"].shape[0] * heads != case["X"].shape[-1]:
        return False
    wide = dict(case)
    for role in ("W_Q", "W_K", "W_V"):
        wide[role] = np.asarray(np.kron(np.eye(heads), case[role]), np.float64)
    for role in ("b_Q", "b_K", "b_V"):
        if role in case:
            wide[role] = np.tile(case[role], heads)
    return any(
        last is not None and judged(last, handed, answer) == []
        for last, handed in (graph_of(wide, heads, causal) for causal in (False, True))
    )


def same(answer: Array, predicted: Array | None, close: float = CLOSE) -> bool:
    if predicted is None or answer.shape != predicted.shape or not np.isfinite(predicted).all():
        return False
    return bool(np.all(np.abs(answer - predicted) <= close * (1 + np.abs(predicted).max())))
