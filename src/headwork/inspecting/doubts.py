"""Reasons not to bear witness: where nothing fits, it may be our reading of the code that is wrong, not the code."""

from dataclasses import replace

import numpy as np

from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.layouts import LAYOUTS, AxisOrder
from headwork.inspecting.masking import upside_down
from headwork.inspecting.trial import Trial, graph_of
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array

ALIKE = 1e-6
FINE = 1e-6  # a change that single precision still sees


def doubts(trial: Trial) -> str:
    """Why the trial says nothing about the code; or nothing, and it does."""
    inverted = trial.masked and trial.tags == ["mask-inverted"]
    if inverted and upside_down(trial.caller.mask, trial.caller.kind == "layer"):
        return (
            f"it agrees if '{trial.caller.mask.name}' is {trial.caller.mask.form}; "
            "if True is to mean that a key may be read it is consistent with mask-inverted"
        )
    if trial.verdict == "mistake" and trial.caller.kind == "layer" and "W_O" not in trial.case and trial.joined:
        return "it agrees up to the joined heads; an output projection is not among its parameters"
    if trial.verdict == "agrees" and trial.caller.kind == "qkv" and not trial.caller.layout.leading:
        return _otherwise_in_batches(trial)
    if trial.verdict != "disagrees":
        return ""
    if _coarse(trial):
        return "it works in half precision, in which a mistake cannot be told from rounding; let it work in float32"
    if trial.masked:
        return f"without a mask it agrees; what form '{trial.caller.mask.name}' has is not known"
    return _unlike_attention(trial)


def _otherwise_in_batches(trial: Trial) -> str:
    """What is right for single matrices may be wrong for the batches that it takes too, as a softmax over axis 1 is."""
    for axes in (1, 2):
        taken = [t for layout in LAYOUTS if layout.leading == axes and (t := _laid_out(trial, layout)) is not None]
        if taken and all(other.verdict != "agrees" for other in taken):
            like = f", consistent with {taken[0].tags[0]}" if taken[0].tags else ""
            return f"it agrees for {trial.caller.layout.text}, and not for {taken[0].caller.layout.text}{like}"
    return ""


def _laid_out(trial: Trial, layout: AxisOrder) -> Trial | None:
    """The same in another layout, if it takes that and gives back what could be an answer."""
    try:
        other = Trial(replace(trial.caller, layout=layout), trial.heads, trial.sizes)
    except Exception:  # it is for single matrices alone, which is right too
        return None
    expected = (*other.case["Q"].shape[:-1], other.case["V"].shape[-1])
    return other if other.answer.shape == expected else None


def _unlike_attention(trial: Trial) -> str:
    last, handed = graph_of(trial.case, trial.heads)
    if last is None:
        return "its projections do not fit together as the formula has them"
    expected = Variant(last, PREDICTED).value(last, handed)
    if trial.answer.shape != expected.shape:
        return f"it returned shape {trial.answer.shape} where {expected.shape} was to be expected"
    if trial.caller.found.left_over:
        return f"the formula has no place for its parameter {trial.caller.found.left_over[0]}"
    if not np.isfinite(trial.answer).any():
        return "it returns nothing but NaN or infinity"
    if not _alike(trial.caller(dict(trial.case), trial.heads), trial.answer):
        return "it gives another answer every time"
    if not _same_wherever_tokens_stand(trial):
        return "what it gives depends on where a token stands, as with rotary or relative positions"
    return ""


def _coarse(trial: Trial) -> bool:
    """Whether a change too small for half precision is lost, and a large one is not."""

    def kept(by: float) -> float:
        case = {role: x * (1 + by) if role in ("X", "Q", "K", "V") else x for role, x in trial.case.items()}
        answer = trial.caller(case, trial.heads)
        return float(np.mean(answer == trial.answer)) if answer.shape == trial.answer.shape else 0.0

    return kept(FINE) > 0.5 > kept(0.25)


def _same_wherever_tokens_stand(trial: Trial) -> bool:
    """Tokens in another order give the same rows in that order; so do keys with their values, which changes nothing."""
    case = dict(trial.case)
    generator = np.random.default_rng(5)
    tokens, keys = (generator.permutation(n) for n in (trial.sizes.tokens, trial.sizes.keys))
    for role, order in (("X", tokens), ("Q", tokens), ("K", keys), ("V", keys)):
        if role in case:
            case[role] = case[role][..., order, :]
    return _alike(trial.caller(case, trial.heads), trial.answer[..., tokens, :])


def _alike(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    largest = np.abs(other[np.isfinite(other)]).max(initial=0)
    return np.allclose(one, other, rtol=0, atol=ALIKE * (1 + largest), equal_nan=True)  # NaN every time is one answer
