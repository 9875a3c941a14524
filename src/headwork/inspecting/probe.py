"""What the child process does: find how a function is called, compare it with the formula, try the corners.

Everything it finds is emitted at once, as plain data; the report is written by the parent.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headwork.build import Sizes as GraphSizes
from headwork.build import build
from headwork.graph import Step
from headwork.inspecting.calling import Caller, Case, Sizes, built, callers, heads_of, with_masks
from headwork.inspecting.sandbox import Emit, described, one_thread
from headwork.mistakes.diagnose import Diagnosis
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array

CLOSE = 1e-5  # relative; a function may work in single precision inside
WEIGHTS = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")


def probe(load: Callable[[], Any], emit: Emit) -> None:
    """The whole inspection."""
    warnings.simplefilter("ignore")  # an overflow shows in the result
    emit({"stage": "loading it"})
    target = load()
    one_thread()  # loading may have brought torch in
    function = built(target)
    heads = heads_of(function)
    best: Trial | None = None
    refused = ""
    for caller in callers(function):
        emit({"stage": f"calling it as {caller.text}"})
        try:
            trial = Trial(caller, heads)
        except Exception as error:  # the wrong convention raises anything at all
            refused = refused or described(error)
            continue
        best = trial if best is None or trial.rank > best.rank else best
        if trial.verdict == "agrees":
            break
    if best is None:
        emit({"verdict": "uncallable", "why": refused or "no way of calling it is known"})
        return
    masked = best.with_mask() if best.verdict == "agrees" else None
    final = masked if masked is not None and masked.verdict != "agrees" else best
    emit(
        {
            "verdict": final.verdict,
            "tags": final.tags,
            "convention": best.caller.text,
            "mask": masked.caller.mask_form if masked is not None else "",
            "causal": best.causal,
            "notes": best.notes(),
        }
    )
    if final.verdict != "agrees":
        emit({"stage": "looking for the smallest input that shows it"})
        _smallest(final, target, emit)
        if final.verdict == "disagrees":
            emit({"first": first_difference(final)})
    _corners(best, masked, emit)


class Trial:
    """One way of calling, held against the formula and the catalogue."""

    def __init__(self, caller: Caller, heads: int, masked: bool = False, sizes: Sizes | None = None) -> None:
        self.caller, self.heads, self.masked = caller, heads, masked
        self.sizes = replace(sizes or Sizes(), heads=heads)
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
        sizes = GraphSizes(tokens, keys, 1, 1, 1, 1, d_k, d_v, 1)
        last = build("scaled_dot_product", sizes, mask=mask)
        roles = {role: case[role] for role in "QKV"}
    else:
        roles = {role: case[role] for role in ("X", *WEIGHTS) if role in case}
        if not {"W_Q", "W_K", "W_V"} <= roles.keys() or roles["W_Q"].shape[0] != roles["X"].shape[-1]:
            return None, {}
        width, d_model = roles["W_V"].shape[1], roles["X"].shape[-1]
        roles.setdefault("W_O", np.eye(width))
        sizes = GraphSizes(
            tokens,
            tokens,
            d_model,
            d_model,
            heads,
            heads,
            roles["W_Q"].shape[1] // heads,
            width // heads,
            roles["W_O"].shape[1],
        )
        last = build("multi_head_blocks", sizes, mask=mask, biases=[role for role in roles if role.startswith("b_")])
    if mask:
        seen = case["mask"].astype(bool) if "mask" in case else np.tril(np.ones((tokens, keys), bool))
        roles["mask"] = np.where(seen, 0.0, -np.inf)
    by_role = Variant(last).by_key
    return last, {by_role[role, None]: array for role, array in roles.items()}


def judged(last: Step, handed: dict[Step, Array], answer: Array) -> list[str] | None:
    """[] for agreement, the tags that predict the answer, or None."""
    diagnosis = Diagnosis(last)
    if _same(answer, diagnosis.right.value(last, handed)):
        return []
    single = [tag for tag, graph in diagnosis.single if _same(answer, graph.predict(last, handed))]
    if single:
        return list(dict.fromkeys(single))
    both = ["+".join(tags) for tags, graph in diagnosis.pairs() if _same(answer, graph.predict(last, handed))]
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


def _same(answer: Array, predicted: Array | None, close: float = CLOSE) -> bool:
    if predicted is None or answer.shape != predicted.shape or not np.isfinite(predicted).all():
        return False
    return bool(np.all(np.abs(answer - predicted) <= close * (1 + np.abs(predicted).max())))


def first_difference(trial: Trial) -> str:
    """The first step that can be told apart from outside. With V the identity the output is the weights."""
    if trial.caller.kind != "qkv":
        return "output"
    sizes = replace(trial.sizes, d_v=trial.sizes.keys)
    case = trial.caller.draw(sizes, np.random.default_rng(2))
    case |= {"V": np.broadcast_to(np.eye(sizes.keys), case["V"].shape).copy()}
    if "mask" in trial.case:
        case["mask"] = trial.case["mask"]
    last, handed = graph_of(case, trial.heads)
    assert last is not None
    try:
        weights = trial.caller(case, trial.heads)
    except Exception:
        return "head_output"
    if _same(weights, Variant(last).value(last, handed)):
        return "head_output"
    sums = weights.sum(axis=-1)
    return "scaled" if np.all(weights >= 0) and np.allclose(sums, 1, atol=1e-4) else "weights"


def _smallest(trial: Trial, target: Any, emit: Emit) -> None:
    """The fewest whole numbers on which the code and the formula part."""
    for sizes in _small_sizes(trial):
        for seed in range(6):
            try:
                caller = _whole_numbers(trial.caller, target, sizes, seed)
                case = caller.draw(sizes, np.random.default_rng(seed), whole=True)
                if trial.masked:
                    case["mask"] = np.tril(np.ones((sizes.tokens, sizes.tokens)))
                answer = caller(dict(case), sizes.heads)
                last, handed = graph_of(case, sizes.heads, trial.causal)
            except Exception:
                continue
            if last is not None and not _same(answer, Variant(last).value(last, handed), 1e-3):
                first = {role: a.reshape(-1, *a.shape[-2:])[0].tolist() for role, a in case.items()}
                returned = answer.reshape(-1, *answer.shape[-2:])[0]
                finite = [[float(x) if np.isfinite(x) else str(x) for x in row] for row in returned]
                emit({"example": first, "returned": finite, "heads": sizes.heads, "causal": trial.causal})
                return


def _small_sizes(trial: Trial) -> Iterator[Sizes]:
    widths = (1, 2, 3) if trial.caller.kind == "qkv" else (1, 2)
    sizes = [(tokens, width) for tokens in (1, 2, 3) for width in widths]
    for tokens, width in sorted(sizes, key=lambda pair: pair[0] * pair[1]):
        yield Sizes(tokens, tokens, width, width, 1 if trial.caller.kind == "qkv" else 2)


def _whole_numbers(caller: Caller, target: Any, sizes: Sizes, seed: int) -> Caller:
    """A module small enough for pencil, its parameters small whole numbers."""
    if caller.kind != "module":
        return caller
    import torch

    if isinstance(target, torch.nn.Module):
        raise TypeError("a module that exists has the sizes it has")
    module = built(target, sizes.heads * sizes.d_k, sizes.heads)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-1, 3, parameter.shape))
    return replace(
        next(iter(callers(module))), leading=caller.leading, mask_name=caller.mask_name, mask_form=caller.mask_form
    )


def _corners(trial: Trial, masked: Trial | None, emit: Emit) -> None:
    from headwork.inspecting.corners import CORNERS

    for name, corner in CORNERS.items():
        emit({"stage": f"the corner '{name}'"})
        try:
            outcome = corner(trial, masked)
        except Exception as error:
            outcome = (False, described(error))
        if outcome is not None:
            emit({"corner": name, "holds": outcome[0], "text": outcome[1]})


def loader(target: Any) -> Callable[[], Any]:
    """Something callable as it is; "package.module:name" or "file.py:name" imported, in the child."""
    if not isinstance(target, str):
        return lambda: target

    def load() -> Any:
        place, _, name = target.rpartition(":")
        if place.endswith(".py"):
            from importlib.util import module_from_spec, spec_from_file_location

            spec = spec_from_file_location("inspected", place)
            if spec is None or spec.loader is None:
                raise ImportError(f"{place} cannot be imported")
            module = module_from_spec(spec)
            sys.modules["inspected"] = module
            spec.loader.exec_module(module)
        else:
            from importlib import import_module

            sys.path.insert(0, "")
            module = import_module(place)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
        return found

    return load
