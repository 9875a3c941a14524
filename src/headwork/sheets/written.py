"""The keys of a problem and of a part as a file or a browser has them: texts, whole numbers, lists and tables of these.

Matrices that are given are left out: a file has them in lines of its own, a browser as grids.
"""

from fractions import Fraction
from typing import Any

from headwork.errors import HeadworkError
from headwork.formulas import SQRT_D_K, Scale, formula_named
from headwork.numbers.digits import exact_decimal
from headwork.numbers.surd import Real, Surd
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.sheets.sheet import Angles, Bias, EachHead, Part, Problem, Rotary

LEFT_OUT = {
    "scale": SQRT_D_K,
    "mask": "none",
    "around": "none",
    "decimals": "short",
    "softmax": "whole",
    "kind": "value",
}


def problem_table(problem: Problem) -> dict[str, Any]:
    """Every key of a problem that says something, in the order in which a file has them."""
    formula = formula_named(problem.formula)
    return _told(
        formula=problem.formula,
        text=problem.text,
        heads=problem.heads,
        kv_heads=problem.kv_heads,
        scale=_scale(problem.scale) if formula.scaled else None,
        softcap=_number(problem.softcap),
        mask=_mask(problem.mask),
        window=list(problem.window or ()),
        padding=list(problem.padding),
        bias=None if problem.bias is None else _bias(problem.bias),
        rotary=None if problem.rotary is None else _rotary(problem.rotary),
        around=problem.around,
        eps=_number(problem.eps or None),
        positions=None if problem.positions is None else _angles(problem.positions),
        tokens=list(problem.tokens),
        keys=list(problem.keys),
        decimals=problem.decimals,
        blocks=_blocks(problem.blocks) if formula.blocks else None,
        softmax=problem.softmax,
        places=problem.places,
        first_index=problem.notation.first_index,
        vectors="columns" if problem.columns else None,
        notation=dict(problem.notation.names),
        sizes=dict(problem.sizes),
        marking=dict(problem.marking),
    )


def part_table(part: Part) -> dict[str, Any]:
    """The same of a part."""
    return _told(
        label=part.label,
        kind=part.kind,
        points=_number(part.points),
        text=part.text,
        answer=part.answer,
        find=list(part.find),
        mean=_number(part.mean),
        variance=_number(part.variance),
        loss=part.loss,
        rate=_number(part.rate),
        entries=part.entries or None,
    )


def _told(**keys: Any) -> dict[str, Any]:
    """What is neither empty nor what a sheet that leaves the key out has anyway."""
    return {key: value for key, value in keys.items() if value not in (None, "", [], {}, LEFT_OUT.get(key))}


def _number(number: Real | None) -> int | str | None:
    return None if number is None else plain(number)


def plain(entry: Entry) -> int | str:
    """3, "0.25", "1/3", "2*sqrt(3)/3": whole numbers bare, all else as text that is read back exactly."""
    if isinstance(entry, Hidden):
        return "-inf"
    if not isinstance(entry, Fraction | Surd):
        raise HeadworkError(f"{entry!r} is no number a sheet can give; give a fraction or a root")
    return int(entry) if isinstance(entry, Fraction) and entry.denominator == 1 else real_text(entry)


def real_text(number: Real) -> str:
    """A real number in the grammar of `numbers.parse`.

    >>> from headwork.numbers.surd import root
    >>> real_text(Fraction(1, 3)), real_text(Fraction(1, 4)), real_text(root(Fraction(4, 27)))
    ('1/3', '0.25', '2*sqrt(3)/9')
    """
    if isinstance(number, Surd):
        terms = "".join(_term(c, r) for r, c in sorted(number.terms.items()))
        return terms.removeprefix(" + ") if terms.startswith(" +") else terms.replace(" - ", "-", 1)
    return exact_decimal(number, 12) or str(number)


def _term(coefficient: Fraction, radicand: int) -> str:
    """+ 2*sqrt(3)/9, with the sign that it has in a sum."""
    above, below = abs(coefficient.numerator), coefficient.denominator
    factors = [str(above)] if above != 1 or radicand == 1 else []
    factors += [f"sqrt({radicand})"] if radicand != 1 else []
    return f" {'-' if coefficient < 0 else '+'} {'*'.join(factors)}{f'/{below}' if below != 1 else ''}"


def rows(matrix: Matrix) -> list[list[int | str]]:
    return [list(map(plain, row)) for row in matrix]


def _scale(scale: Scale) -> int | str:
    return scale if isinstance(scale, str) else "none" if scale is None else plain(scale)


def _blocks(blocks: int | tuple[int, ...]) -> int | list[int]:
    return list(blocks) if isinstance(blocks, tuple) else blocks


def _mask(mask: str | Matrix | EachHead) -> Any:
    if isinstance(mask, EachHead):
        return list(map(_mask, mask))
    return mask if isinstance(mask, str) else rows(mask)


def _bias(bias: Bias) -> Any:
    if bias.alibi:
        return {"alibi": list(map(plain, bias.slopes))} if bias.slopes else "alibi"
    if bias.relative:
        return {"relative": rows(bias.relative)}
    return rows(bias.matrices[0]) if len(bias.matrices) == 1 else list(map(rows, bias.matrices))


def _rotary(rotary: Rotary) -> Any:
    return rotary.pairs if rotary.angles is None else {"pairs": rotary.pairs, **_angles(rotary.angles)}


def _angles(angles: Angles) -> dict[str, Any]:
    found: dict[str, Any] = {"first": angles.first}
    if angles.places is not None:
        found["places"] = angles.places
    if angles.base is None:
        return {"degrees": list(map(plain, angles.degrees)), **found}
    return {"base": plain(angles.base), **found}
