"""What shows a disagreement: the first step that differs, and the smallest input on which it does."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.building import built, is_layer
from headwork.inspecting.calling import Caller, Case, callers
from headwork.inspecting.layouts import CaseSizes
from headwork.inspecting.sandbox import Emit
from headwork.inspecting.trial import Trial, graph_of, same
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array


def first_difference(trial: Trial) -> str:
    """The first step that can be told apart from outside.

    The values make the weights visible: with the identity for V the output is the weights, and their logarithms are
    the scores, but for a number in every row.
    """
    if trial.caller.kind not in ("qkv", "projections"):
        return "output"
    try:
        theirs, ours, scaled = _weights(trial)
    except Exception:  # it does not take values of this shape
        return "head_output" if trial.caller.kind == "qkv" else "output"
    if same(theirs, ours):
        return "head_output" if trial.caller.kind == "qkv" else "output"
    if np.any(theirs < 0) or not np.allclose(theirs.sum(axis=-1), 1, atol=1e-4):
        return "weights"
    told = np.log(np.maximum(theirs, 1e-300))
    told, scaled = (m - m.mean(axis=-1, keepdims=True) for m in (told, scaled))
    factor = (told * scaled).sum() / (scaled * scaled).sum()
    return "scaled" if np.allclose(told, factor * scaled, atol=1e-4 * np.abs(told).max()) else "scores"


def _weights(trial: Trial) -> tuple[Array, Array, Array]:
    """The code's weights, the formula's, and the formula's scaled scores."""
    if trial.caller.kind == "qkv":
        sizes = replace(trial.sizes, d_v=trial.sizes.keys)
        case = trial.caller.draw(sizes, np.random.default_rng(2))
        case |= {"V": np.broadcast_to(np.eye(sizes.keys), case["V"].shape).copy()}
        theirs = trial.caller(case, trial.heads)
    else:
        case = dict(trial.case)
        case["X"] = np.broadcast_to(case["X"].reshape(-1, *case["X"].shape[-2:])[0], case["X"].shape).copy()
        theirs = _through_w_v(trial, case)
    last, handed = graph_of(case, trial.heads, trial.causal)
    assert last is not None
    meaning = Variant(last, PREDICTED).everything(handed)
    by_role = {step.role: array for step, array in meaning.items() if step.head in (None, 0)}
    return theirs, np.broadcast_to(by_role["weights"], theirs.shape), np.broadcast_to(by_role["scaled"], theirs.shape)


def _through_w_v(trial: Trial, case: Case) -> Array:
    """The first head's weights, column by column: W_V puts a 1 where token j stands, and W_O leaves it there."""
    X = case["X"].reshape(-1, *case["X"].shape[-2:])[0]
    width = case["W_V"].shape[1]
    columns = []
    for token in range(X.shape[0]):
        V = np.zeros((X.shape[0], width))
        V[token, 0] = 1.0
        made = {**case, "W_V": np.linalg.pinv(X) @ V}
        made |= {role: np.eye(width) for role in ("W_O",) if role in case}
        made |= {role: np.zeros_like(case[role]) for role in ("b_V", "b_O") if role in case}
        columns.append(trial.caller(made, trial.heads)[..., 0])
    return np.stack(columns, axis=-1)


def smallest(trial: Trial, target: Any, emit: Emit) -> None:
    """The fewest whole numbers on which the code and the formula part."""
    for sizes in _small_sizes(trial):
        for seed in range(6):
            try:
                caller = _whole_numbers(trial.caller, target, sizes, seed)
                case = caller.draw(sizes, np.random.default_rng(seed), whole=True)
                if trial.masked:
                    case["mask"] = np.tril(np.ones((sizes.tokens, sizes.tokens)))
                heads = 1 if caller.kind == "qkv" else sizes.heads
                answer = caller(dict(case), heads)
                last, handed = graph_of(case, heads, trial.causal)
            except Exception:
                continue
            if last is not None and not same(answer, Variant(last, PREDICTED).value(last, handed), 1e-3):
                first = {role: a.reshape(-1, *a.shape[-2:])[0].tolist() for role, a in case.items()}
                returned = answer.reshape(-1, *answer.shape[-2:])[0]
                finite = [[float(x) if np.isfinite(x) else str(x) for x in row] for row in returned]
                emit({"example": first, "returned": finite, "heads": heads, "causal": trial.causal})
                return


def _small_sizes(trial: Trial) -> Iterator[CaseSizes]:
    bare = trial.caller.kind == "qkv"
    sizes = [(tokens, width) for tokens in (1, 2, 3) for width in ((1, 2, 3) if bare else (1, 2))]
    for tokens, width in sorted(sizes, key=lambda pair: pair[0] * pair[1]):
        for d_v in (width, width + 1) if bare else (width,):
            yield CaseSizes(tokens, tokens, width, d_v, 1 if bare else min(2, trial.heads), 1)


def _whole_numbers(caller: Caller, target: Any, sizes: CaseSizes, seed: int) -> Caller:
    """A layer small enough for pencil, its parameters small whole numbers."""
    if caller.kind != "layer":
        return caller
    import torch

    if is_layer(target) or caller.framework != "torch":
        raise TypeError("a layer that exists has the sizes it has")
    d_model = sizes.heads * sizes.d_k
    module = built(target, d_model, sizes.heads)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-1, 3, parameter.shape))
    return replace(next(iter(callers(module, sizes.heads, d_model))), layout=caller.layout, mask=caller.mask)
