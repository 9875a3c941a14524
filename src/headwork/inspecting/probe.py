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

from headwork.inspecting.building import CONFIGS, HEADS, built, heads_of, is_layer, parameters_asked
from headwork.inspecting.calling import Caller, callers
from headwork.inspecting.corners import CORNERS
from headwork.inspecting.differing import first_difference
from headwork.inspecting.doubts import doubts
from headwork.inspecting.layouts import CaseSizes
from headwork.inspecting.sandbox import Emit, described, one_thread
from headwork.inspecting.smallest import smallest
from headwork.inspecting.trial import Trial

LAYER = CaseSizes(tokens=5, keys=5, d_k=6, d_v=6, heads=4, batch=3)  # and d_model = 24, kv_heads = 2


def probe(load: Callable[[], Any], emit: Emit) -> None:
    """The whole inspection."""
    warnings.simplefilter("ignore")  # an overflow shows in the result
    emit({"stage": "loading it"})
    target = load()
    one_thread()  # loading may have brought torch in
    best, refused = _best(target, emit)
    if best is None:
        emit({"verdict": "uncallable", "why": refused or "no way of calling it is known"})
        return
    masks = best.with_masks() if best.verdict == "agrees" else []
    final = next((trial for trial in masks if trial.verdict != "agrees"), best)
    masked = masks[0] if masks else None
    if final.verdict == "disagrees":
        emit({"stage": "looking for two mistakes"})
        final.look_for_two()
    doubt = doubts(final)
    emit(
        {
            "verdict": "uncallable" if doubt else final.verdict,
            "why": doubt,
            "tags": final.tags,
            "convention": best.caller.text,
            "mask": ", ".join(dict.fromkeys(trial.caller.mask.form for trial in masks)),
            "causal": best.causal,
            "notes": best.notes(),
        }
    )
    if doubt:
        return
    if final.verdict != "agrees":
        emit({"stage": "looking for the smallest input that shows it"})
        smallest(final, target, emit)
        if final.verdict == "disagrees":
            emit({"first": first_difference(final)})
    _corners(best, masked, emit)


def _best(target: Any, emit: Emit) -> tuple[Trial | None, str]:
    """The trial that comes nearest to the formula, over every way of calling; or why there is none."""
    best: Trial | None = None
    refused = ""
    try:
        ways = [*_ways(target)]
    except Exception as error:  # it cannot be built, or its parameters are not found
        return None, described(error)
    for square in (False, True):
        for caller, heads in ways:
            emit({"stage": f"calling it as {caller.text}"})
            for sizes in _sizes(caller, heads, square):
                try:
                    trial = Trial(caller, heads, sizes)
                except Exception as error:  # the wrong convention raises anything at all
                    refused = refused or described(error)
                    continue
                if square and trial.verdict != "mistake":
                    continue  # where all sizes are one number, much passes for right
                best = trial if best is None or trial.rank > best.rank else best
                if trial.verdict == "agrees":
                    return trial, ""
                break
        if best is not None and best.verdict != "disagrees":
            break
    return best, refused


def _ways(target: Any) -> Iterator[tuple[Caller, int]]:
    """Every way of calling it, and the number of heads it then has."""
    d_model = LAYER.heads * LAYER.d_k
    function = built(target, d_model, LAYER.heads)
    if not is_layer(function):
        yield from ((caller, CaseSizes().heads) for caller in callers(function, CaseSizes().heads))
        return
    if is_layer(target):
        numbers, d_model = heads_of(function, None), 0
    else:  # a class that asks for no number of heads has one
        asked = any(name in (*HEADS, *CONFIGS) for name in parameters_asked(target))
        numbers = heads_of(function, LAYER.heads if asked else 1)
    for heads in numbers:
        yield from ((caller, heads) for caller in callers(function, heads, d_model))


def _sizes(caller: Caller, heads: int, square: bool) -> Iterator[CaseSizes]:
    """All different; a function may need some of them alike. `square`: all one number, which K without its transpose
    needs."""
    if caller.kind != "layer":
        yield from [CaseSizes(4, 4, 4, 4)] if square else CaseSizes().eased()
        return
    d_k = max(1, caller.d_model // heads)
    taken = {heads, caller.d_model, d_k, d_k * d_k, LAYER.batch}
    tokens = d_k if square else next(number for number in (5, 7, 11, 13) if number not in taken)
    yield replace(LAYER, tokens=tokens, keys=tokens, d_k=d_k, d_v=d_k)


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
