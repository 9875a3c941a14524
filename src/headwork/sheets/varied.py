"""How a problem varies its formula, and the matrices that this takes."""

from collections.abc import Mapping
from typing import Literal

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.formulas import formula_named
from headwork.readings.exact import Matrix
from headwork.sheets.added import biases, distances, masks, slopes
from headwork.sheets.angles import rotary_tables, sinusoids
from headwork.sheets.sheet import EachHead, Problem, Rotary
from headwork.sheets.sizes import has_past
from headwork.variations import Pairs, Variations


def variations(problem: Problem, sizes: Sizes) -> Variations:
    """What the problem's keys, and what is given, ask for."""
    roles = {role for role, _ in problem.given}
    positioned = "positions" in roles or problem.positions is not None
    bias = problem.bias
    sloped = slopes(problem, sizes)
    each = bias is not None and (len(bias.matrices) > 1 or bool(bias.relative) or bias.alibi)
    if positioned and not formula_named(problem.formula).projects:
        raise HeadworkError(f"key 'positions': {problem.formula} takes no X that they could be added to; remove it")
    return Variations(
        past=("X_past" if "X_past" in roles else "K_past") if has_past(problem) else "",
        positions=positioned,
        rotary=_pairs(problem, roles),
        softcap=problem.softcap,
        slopes=sloped,
        bias="" if bias is None or sloped else _how(each, sizes),
        mask=_how(isinstance(problem.mask, EachHead), sizes) if problem.masked else "",
    )


def _pairs(problem: Problem, roles: set[str]) -> Pairs | None:
    """Which columns are turned together, where some are: by tables that are given, or by angles."""
    rotary = problem.rotary or (Rotary() if {"cos", "sin"} & roles else None)
    if rotary is None:
        return None
    if (rotary.angles is not None) == bool({"cos", "sin"} & roles):
        raise HeadworkError(
            "rotary positions need their angles once: rotary = { degrees = [30, 90] }, or both cos and sin as given"
        )
    return rotary.pairs


def _how(each: bool, sizes: Sizes) -> Literal["one", "each"]:
    return "each" if each and sizes.heads != 1 else "one"


def check_one_sequence(problem: Problem) -> None:
    """Positions count the tokens of one sequence: not of X and of a context."""
    roles = {role for role, _ in problem.given}
    keys = [
        *(["window"] if problem.window else []),
        *(["bias"] if problem.bias and not problem.bias.matrices else []),
        *(["rotary"] if _pairs(problem, roles) else []),
        *(["X_past"] if has_past(problem) else []),
    ]
    if "context" in roles and keys:
        raise HeadworkError(
            f"'{keys[0]}' counts positions, and those of X and of the context are not one sequence; leave it out, or "
            "give a mask or a bias as a matrix"
        )


def _sinusoids(problem: Problem, sizes: Sizes) -> tuple[Matrix, ...]:
    """Of the new tokens, whose positions go on after the cache; where earlier tokens are given as they are, of all."""
    earlier = any(role == "X_past" for role, _ in problem.given)
    return (sinusoids(problem.positions, sizes, 0 if earlier else sizes.past),) if problem.positions else ()


def matrices(problem: Problem, sizes: Sizes) -> Mapping[str, tuple[Matrix, ...]]:
    """What is given by name, as matrices by role: one for all heads, or one for each."""
    if not isinstance(sizes.tokens, int) or not isinstance(sizes.keys, int):
        return {}
    angles = problem.rotary and problem.rotary.angles
    cos_and_sin = rotary_tables(angles, sizes) if angles else ()
    return {
        "positions": _sinusoids(problem, sizes),
        "cos": cos_and_sin[:1],
        "sin": cos_and_sin[1:],
        "mask": masks(problem, sizes),
        "bias": biases(problem, sizes),
        "distance": (distances(sizes),) if slopes(problem, sizes) else (),
    }
