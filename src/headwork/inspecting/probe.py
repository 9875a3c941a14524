"""What the child process does: find how a function is called, compare it with the formula, try the corners.

Everything it finds is emitted at once, as plain data; the report is written by the parent.
"""

import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from typing import Any

import numpy as np

from headwork.inspecting.arrays import VALUES
from headwork.inspecting.calling import Caller, CaseSizes, built, callers, heads_of
from headwork.inspecting.corners import CORNERS
from headwork.inspecting.sandbox import Emit, described, one_thread
from headwork.inspecting.trial import Trial, graph_of, same
from headwork.mistakes.predict import Variant


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
    if same(weights, Variant(last, VALUES).value(last, handed)):
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
            if last is not None and not same(answer, Variant(last, VALUES).value(last, handed), 1e-3):
                first = {role: a.reshape(-1, *a.shape[-2:])[0].tolist() for role, a in case.items()}
                returned = answer.reshape(-1, *answer.shape[-2:])[0]
                finite = [[float(x) if np.isfinite(x) else str(x) for x in row] for row in returned]
                emit({"example": first, "returned": finite, "heads": sizes.heads, "causal": trial.causal})
                return


def _small_sizes(trial: Trial) -> Iterator[CaseSizes]:
    widths = (1, 2, 3) if trial.caller.kind == "qkv" else (1, 2)
    sizes = [(tokens, width) for tokens in (1, 2, 3) for width in widths]
    for tokens, width in sorted(sizes, key=lambda pair: pair[0] * pair[1]):
        yield CaseSizes(tokens, tokens, width, width, 1 if trial.caller.kind == "qkv" else 2)


def _whole_numbers(caller: Caller, target: Any, sizes: CaseSizes, seed: int) -> Caller:
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
        if not place.endswith(".py"):
            sys.path.insert(0, "")
            return pkgutil.resolve_name(target)
        spec = spec_from_file_location("inspected", place)
        assert spec is not None, "a file that ends in .py"
        assert spec.loader is not None
        sys.modules["inspected"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return attrgetter(name)(module)

    return load
