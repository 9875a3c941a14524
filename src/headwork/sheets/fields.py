"""The keys of a problem and of a part: what each may hold, checked one by one."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from headwork.around import ARRANGEMENTS
from headwork.errors import HeadworkError, did_you_mean
from headwork.formulas import FORMULAS, SQRT_D_K, Scale, formula_named
from headwork.notation import GRADIENTS, ROLES, Notation, is_role, is_vector
from headwork.numbers.enclosure import sign
from headwork.numbers.parse import parse_number
from headwork.numbers.surd import Real
from headwork.readings.exact import Matrix
from headwork.sheets.added import read_bias, read_mask, read_window
from headwork.sheets.angles import read_positions, read_rotary
from headwork.sheets.checks import (
    LARGEST_SIDE,
    as_count,
    as_flag,
    as_integer,
    as_matrices,
    as_number,
    as_optional_number,
    as_table,
    as_text,
    at,
    at_key,
    one_of,
    only_keys,
    shortened,
)
from headwork.sheets.sheet import DECIMALS, KINDS, LOSSES, SOFTMAXES, Key, Part, Problem
from headwork.sheets.sizes import PATTERNS, pattern

_PROBLEM = [
    *("title", "text", "formula", "heads", "kv_heads", "scale", "softcap", "mask", "window", "padding", "bias"),
    *("rotary", "positions", "around", "eps", "softmax", "blocks", "tokens", "keys", "decimals", "places"),
    *("first_index", "vectors", "notation", "given", "sizes", "marking", "part"),
]
_PART = [
    *("label", "kind", "points", "text", "find", "given", "answer", "mean", "variance", "loss", "target", "rate"),
    "entries",
]
_SIZES = ["batch", "tokens", "past", "keys", "d_model", "d_context", "d_k", "d_v", "d_out", "d_ff", "heads", "kv_heads"]
USUAL_ROLES = ("X", "W_Q", "W_K", "W_V", "W_O", "Q", "K", "V", "scores", "scaled", "weights", "head_output", "output")
LONGEST_NAME = 24  # characters of a token


def read_problem(table: Mapping[str, Any], default_title: str) -> Problem:
    """One problem from its table."""
    only_keys(table, _PROBLEM)
    first = at_key("first_index", as_integer, table.get("first_index", 1), 0, 1)
    return Problem(
        title=at_key("title", as_text, table.get("title", default_title)),
        text=at_key("text", as_text, table.get("text", "")),
        formula=at_key("formula", one_of, table.get("formula"), FORMULAS),
        heads=at_key("heads", as_count, table.get("heads")),
        kv_heads=at_key("kv_heads", as_count, table.get("kv_heads")),
        scale=at_key("scale", _scale, table.get("scale"), str(table.get("formula"))),
        mask=at_key("mask", read_mask, table.get("mask", "none")),
        window=at_key("window", read_window, table.get("window")),
        padding=at_key("padding", _token_names, table.get("padding", [])),
        bias=at_key("bias", read_bias, table.get("bias")),
        softcap=at_key("softcap", _softcap, table.get("softcap")),
        rotary=at_key("rotary", read_rotary, table.get("rotary")),
        positions=at_key("positions", read_positions, table.get("positions")),
        blocks=at_key("blocks", _blocks, table.get("blocks"), str(table.get("formula"))),
        around=at_key("around", _around, table.get("around", "none"), str(table.get("formula"))),
        eps=at_key("eps", _eps, table.get("eps"), str(table.get("around", "none"))),
        softmax=read_softmax(table.get("softmax", "whole")),
        tokens=at_key("tokens", _token_names, table.get("tokens", [])),
        keys=at_key("keys", _token_names, table.get("keys", [])),
        decimals=at_key("decimals", one_of, table.get("decimals", "short"), DECIMALS),
        places=read_places(table.get("places", 2)),
        notation=Notation(at_key("notation", _names, table.get("notation", {})), first),
        columns=at_key("vectors", one_of, table.get("vectors", "rows"), ("rows", "columns")) == "columns",
        given=at_key("given", _given, table.get("given", {}), first),
        sizes=at_key("sizes", _sizes, table.get("sizes", {})),
        marking=at_key("marking", as_table, table.get("marking", {})),
        parts=at_key("part", _parts, table.get("part"), first),
    )


def read_places(value: Any) -> int:
    return at_key("places", as_integer, value, 0, 50)


def read_softmax(value: Any) -> str:
    return at_key("softmax", one_of, value, SOFTMAXES)


def _parts(tables: Any, first: int) -> tuple[Part, ...]:
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise HeadworkError("at least one [[part]] is needed, each with what to find")
    parts = tuple(
        at(f"part {shortened(str(table.get('label', number)))}", _part, table, number, first)
        for number, table in enumerate(tables, 1)
    )
    labels = [part.label for part in parts]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise HeadworkError(f"label '{twice}' stands on two parts; give each its own")
    return parts


def _part(table: Mapping[str, Any], number: int, first: int) -> Part:
    only_keys(table, _PART)
    kind = at_key("kind", one_of, table.get("kind", "value"), KINDS)
    part = Part(
        label=as_text(table.get("label", str(number))),
        kind=kind,
        text=at_key("text", as_text, table.get("text", "")),
        find=at_key("find", _find, table.get("find", [])),
        given=at_key("given", _given, _with_target(table), first),
        answer=at_key("answer", as_text, table.get("answer", "")),
        mean=at_key("mean", as_optional_number, table.get("mean")),
        variance=at_key("variance", as_optional_number, table.get("variance")),
        loss=at_key("loss", one_of, table["loss"], LOSSES) if "loss" in table else "",
        rate=at_key("rate", as_optional_number, table.get("rate")),
        entries=at_key("entries", as_flag, table.get("entries", False)),
        points=at_key("points", _points, table.get("points")),
    )
    if kind in ("value", "prove", "moments") and not part.find:
        raise HeadworkError(f"key 'find' is missing; a part of kind '{kind}' needs it")
    if kind != "gradient" and (stray := [key for key in ("loss", "target", "rate") if key in table]):
        raise HeadworkError(f"key '{stray[0]}' belongs to a part of kind 'gradient', not '{kind}'")
    if kind != "prove" and "entries" in table:
        raise HeadworkError(f"key 'entries' belongs to a part of kind 'prove', not '{kind}'")
    if kind == "explain" and not part.answer:
        raise HeadworkError("key 'answer' is missing; a part of kind 'explain' needs it")
    return part


def _with_target(table: Mapping[str, Any]) -> Any:
    """What a part gives; the target of its loss is one matrix more."""
    given = table.get("given", {})
    return {**given, "target": table["target"]} if "target" in table and isinstance(given, dict) else given


def _given(table: Any, first: int) -> dict[Key, Matrix]:
    if not isinstance(table, dict):
        raise HeadworkError("must be a table of matrices")
    found: dict[Key, Matrix] = {}
    for name, value in table.items():
        role, head = role_and_head(name, first)
        if pattern(role) is None:
            raise HeadworkError(
                f"'{name}' cannot be given{did_you_mean(name, PATTERNS)}; choose from {', '.join(PATTERNS)}"
            )
        matrices = at_key(name, as_matrices, value, is_vector(role))
        if isinstance(matrices, list):
            if head is not None:
                raise HeadworkError(f"'{name}' is one head's matrix, but a list of matrices was given")
            found |= {(role, h): matrix for h, matrix in enumerate(matrices)}
        else:
            found[role, head] = matrices
    return found


def role_and_head(name: str, first: int) -> Key:
    """ "Q_2" is role Q, head 1 when heads are counted from 1."""
    if is_role(name):
        return name, None
    role, _, number = name.rpartition("_")
    if is_role(role) and re.fullmatch("[0-9]{1,9}", number):
        head = int(number) - first
        if head < 0:
            raise HeadworkError(f"'{name}': heads are counted from {first} on this sheet")
        return role, head
    roles = [*ROLES, *(f"d_{each}" for each in ROLES)]
    meant = did_you_mean(name, roles) or did_you_mean(role, roles)
    known = f"; choose from {', '.join(USUAL_ROLES)} …, or one head's such as Q_{first}"
    raise HeadworkError(f"unknown role '{name[:40]}'{meant or known}")


def _scale(value: Any, formula: str) -> Scale:
    scaled = formula_named(formula).scaled
    if value is None:
        return SQRT_D_K if scaled else None
    if value == "none":
        return None
    if not scaled:
        raise HeadworkError(f"{formula} is not scaled; use scaled_dot_product or remove the key")
    if value == SQRT_D_K:
        return SQRT_D_K
    number = as_number(value)
    if not number:
        raise HeadworkError('is 0, and nothing can be divided by it; write "none" for no scaling')
    return number


def _softcap(value: Any) -> Real | None:
    number = as_optional_number(value)
    if number is not None and (not number or sign(number) < 0):
        raise HeadworkError("must be greater than 0: scores stay between −softcap and softcap")
    return number


def _blocks(value: Any, formula: str) -> int | tuple[int, ...]:
    if value is None:
        return 2 if formula_named(formula).blocks else 1
    if not formula_named(formula).blocks:
        raise HeadworkError(f"{formula} takes all keys at once; use blockwise or remove the key")
    if isinstance(value, list):
        return tuple(as_integer(size, 1, LARGEST_SIDE) for size in value)
    return as_integer(value, 1, LARGEST_SIDE)


def _around(value: Any, formula: str) -> str:
    chosen = one_of(value, ARRANGEMENTS)
    if chosen != "none" and not formula_named(formula).projects:
        raise HeadworkError(f"{formula} has no X to add to; use single_head, multi_head or multi_head_blocks")
    return chosen


def _eps(value: Any, around: str) -> Real:
    if value is None:
        return parse_number(0)
    if not around.endswith("norm"):
        raise HeadworkError('belongs to a layer norm; add around = "post-norm" or "pre-norm", or remove the key')
    number = as_number(value)
    if sign(number) < 0:
        raise HeadworkError("is negative; what is added to a variance is 0 or more, such as 0.00001")
    return number


def _token_names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name.strip() for name in value):
        raise HeadworkError('must be a list of names, such as ["the", "cat", "sat"]')
    if long := next((name for name in value if len(name) > LONGEST_NAME), None):
        raise HeadworkError(f"{shortened(long)} is too long for a name; give at most {LONGEST_NAME} characters")
    return tuple(name.strip() for name in value)


def _points(value: Any) -> Fraction | None:
    number = as_optional_number(value)
    if number is not None and (not isinstance(number, Fraction) or number < 0):
        raise HeadworkError("must be a whole number or a fraction from 0 on, such as 3 or 1/2")
    return number


def _names(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table from roles to names")
    for key, name in value.items():
        role = re.sub(r"\[i(,j)?\]$", "", key)
        if key == "gradient":
            at_key(key, one_of, name, GRADIENTS)
            continue
        if not is_role(role):
            meant = did_you_mean(role, ROLES) or f"; choose from {', '.join(USUAL_ROLES)} …"
            raise HeadworkError(f"unknown role '{role}'{meant}")
        if not isinstance(name, str) or not re.fullmatch(r"[^\W_][^\s\\{}$<>&#%\"'`]{0,19}", name):
            raise HeadworkError(f"'{key}' needs a name of 1 to 20 letters and digits, such as Z or W_Q")
    return value


def _sizes(value: Any) -> dict[str, int | str]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table of sizes")
    only_keys(value, _SIZES)
    for name, size in value.items():
        at_key(name, parse_size, size)
    return value


def parse_size(value: Any) -> int | str:
    """A positive number, or a symbol: a letter with an optional subscript such as n or d_k."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z]\w{0,11}", value, re.ASCII):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**9:
        return value
    raise HeadworkError(f"{value!r} is not a size; give a whole number from 1 on, or a symbol such as n or d_k")


def _find(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise HeadworkError('must be a list of names, such as ["Q", "scores_1[2,1]"]')
    return tuple(value)
