"""The corners in which attention goes wrong without a mistake in the formula."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.calling import Case, arrays_of
from headwork.inspecting.masking import FLAG
from headwork.inspecting.trial import Trial, graph_of, same
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array

Outcome = tuple[bool, str] | None  # None: the corner does not arise


def _as_it_was_found(trial: Trial, case: Case) -> tuple[Array, Array]:
    """What the function gives, and what the formula or the mistake that was named gives: a corner is about the rest."""
    last, handed = graph_of(case, trial.heads, trial.causal)
    assert last is not None
    graphs = [last]
    if trial.tags and "+" not in trial.tags[0]:
        graphs = CATALOGUE[trial.tags[0]].made_in(last)[_way(trial) :] or [last]
    expected = Variant(graphs[0], PREDICTED).predict(last, handed)
    assert expected is not None
    return trial.caller(case, trial.heads), expected


def _way(trial: Trial) -> int:
    """Which of the ways of making the mistake it is."""
    last, handed = graph_of(trial.case, trial.heads, trial.causal)
    assert last is not None
    made = (Variant(graph, PREDICTED).predict(last, handed) for graph in CATALOGUE[trial.tags[0]].made_in(last))
    return next((number for number, matrix in enumerate(made) if same(trial.answer, matrix)), 0)


def _judged(trial: Trial, case: Case, close: float = 1e-4) -> tuple[bool, str]:
    answer, expected = _as_it_was_found(trial, case)
    if not np.isfinite(answer).all():
        return False, "it returns NaN or infinity"
    if answer.shape != expected.shape:
        return False, f"it returns shape {answer.shape} where {expected.shape} is right"
    if trial.verdict == "disagrees" or any("+" in tag for tag in trial.tags):
        return True, "finite, and of the right shape"
    apart = float(np.abs(answer - expected).max())
    return (True, "right") if apart <= close * (1 + np.abs(expected).max()) else (False, f"it is off by {apart:.3g}")


def large_scores(trial: Trial, masked: Trial | None) -> Outcome:
    """Scores in the thousands: e^s overflows unless the largest is taken away first."""
    case = dict(trial.case)
    for role in ("Q", "X"):
        if role in case:
            case[role] = case[role] * 3e4
    return _judged(trial, case)


def nothing_to_read(trial: Trial, masked: Trial | None) -> Outcome:
    """A token that may read no key: we say zeros; others say NaN, or the mean of all values."""
    if masked is None or masked.caller.mask.form == FLAG or masked.caller.mask.axes == 1:
        return None
    case = dict(masked.case)
    case["mask"] = case["mask"].copy()
    case["mask"][1] = 0
    answer = masked.caller(case, masked.heads)
    row = answer[..., 1, :]
    if np.isnan(row).any():
        return False, "a token that may read nothing gives NaN"
    if "Q" not in case:
        return True, "finite"
    return (True, "zeros") if np.all(np.abs(row) < 1e-9) else (False, "a token that may read nothing still reads")


def more_keys_than_tokens(trial: Trial, masked: Trial | None) -> Outcome:
    if trial.caller.kind not in ("qkv", "wide"):
        return None
    sizes = replace(trial.sizes, tokens=3, keys=5, d_v=trial.sizes.d_k)
    return _judged(trial, trial.caller.draw(sizes, np.random.default_rng(3)))


def wide_values(trial: Trial, masked: Trial | None) -> Outcome:
    if trial.caller.kind not in ("qkv", "wide"):
        return None
    sizes = replace(trial.sizes, keys=trial.sizes.tokens, d_v=trial.sizes.d_k + 2)
    return _judged(trial, trial.caller.draw(sizes, np.random.default_rng(4)))


def not_contiguous(trial: Trial, masked: Trial | None) -> Outcome:
    """Views with strides of their own must give the same."""
    caller = replace(trial.caller, handing=_strided)
    same = np.allclose(caller(trial.case, trial.heads), trial.answer, atol=1e-6)
    return (True, "the same") if same else (False, "a non-contiguous input changes the result")


def _strided(array: Any) -> Any:
    if array.ndim < 2:
        return array
    turned = array.swapaxes(-1, -2)
    return (np.ascontiguousarray(turned) if isinstance(turned, np.ndarray) else turned.contiguous()).swapaxes(-1, -2)


def inputs_left_alone(trial: Trial, masked: Trial | None) -> Outcome:
    """The arrays that were handed over are as before."""
    kept: list[tuple[Any, Array]] = []

    def watched(array: Any) -> Any:
        kept.append((array, np.array(arrays_of(array)[0])))
        return array

    replace(trial.caller, handing=watched).raw(trial.case, trial.heads)
    changed = any(not np.array_equal(arrays_of(now)[0], before) for now, before in kept)
    return (False, "it changes its inputs") if changed else (True, "unchanged")


def half_precision(trial: Trial, masked: Trial | None) -> Outcome:
    """float16 in: finite, and right to two figures."""
    if trial.caller.kind == "layer":
        return None
    half = copy(trial)
    half.caller = replace(trial.caller, dtype="float16")
    return _judged(half, trial.case, close=2e-2)


CORNERS: Mapping[str, Callable[[Trial, Trial | None], Outcome]] = {
    "large scores": large_scores,
    "nothing to read": nothing_to_read,
    "more keys than tokens": more_keys_than_tokens,
    "d_v is not d_k": wide_values,
    "non-contiguous input": not_contiguous,
    "inputs left alone": inputs_left_alone,
    "float16": half_precision,
}
