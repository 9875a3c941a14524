"""What shows a disagreement: the smallest input on which the code and the formula part."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.building import built, is_layer
from headwork.inspecting.calling import Caller, callers
from headwork.inspecting.layouts import CaseSizes, first_matrix
from headwork.inspecting.sandbox import Emit
from headwork.inspecting.trial import Trial, graph_of, same
from headwork.mistakes.predict import Variant


def smallest(trial: Trial, target: Any, emit: Emit) -> None:
    """The fewest whole numbers on which the code and the formula part."""
    for sizes in _small_sizes(trial):
        for seed in range(6):
            try:
                caller = _whole_numbers(trial.caller, target, sizes, seed)
                case = caller.draw(sizes, np.random.default_rng(seed), whole=True)
                if trial.masked:
                    case["mask"] = caller.mask.seen(sizes.tokens, sizes.tokens)
                heads = 1 if caller.kind == "qkv" else sizes.heads
                answer = caller(dict(case), heads)
                last, handed = graph_of(case, heads, trial.causal)
            except Exception:
                continue
            if last is not None and not same(answer, Variant(last, PREDICTED).value(last, handed), 1e-3):
                first = {role: first_matrix(array).tolist() for role, array in case.items()}
                finite = [[float(x) if np.isfinite(x) else str(x) for x in row] for row in first_matrix(answer)]
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
    ways = callers(module, sizes.heads, d_model)
    return replace(next(ways), layout=caller.layout, mask=caller.mask, opened=caller.opened)
