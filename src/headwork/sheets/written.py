"""The keys that vary a formula as a file or a browser has them: texts, whole numbers, lists and tables of these."""

from fractions import Fraction
from typing import Any

from headwork.errors import HeadworkError
from headwork.numbers.digits import exact_decimal
from headwork.numbers.surd import Real, Surd
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.sheets.sheet import Angles, Bias, EachHead, Problem, Rotary


def written_keys(problem: Problem) -> dict[str, Any]:
    """Those of the problem's keys that say how its formula is varied, where they say anything."""
    found = {
        "softcap": None if problem.softcap is None else plain(problem.softcap),
        "mask": None if problem.mask == "none" else _mask(problem.mask),
        "window": None if problem.window is None else list(problem.window),
        "padding": list(problem.padding) or None,
        "bias": None if problem.bias is None else _bias(problem.bias),
        "rotary": None if problem.rotary is None else _rotary(problem.rotary),
        "around": None if problem.around == "none" else problem.around,
        "eps": plain(problem.eps) if problem.eps else None,
        "positions": None if problem.positions is None else _angles(problem.positions),
        "tokens": list(problem.tokens) or None,
        "keys": list(problem.keys) or None,
        "decimals": None if problem.decimals == "short" else problem.decimals,
    }
    return {key: value for key, value in found.items() if value is not None}


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
