"""The arithmetic of one entry in text: terms with numbers in, the sum, the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from headwork.numbers.closed import Closed
from headwork.numbers.expsum import UNIT
from headwork.numbers.surd import Real, Surd
from headwork.ops import Add, Divide, Given, Join, MatMul, Op, Softmax, Split, Transpose
from headwork.readings.exact import Entry, Hidden
from headwork.render.cells import Style, cell
from headwork.render.notes import figures
from headwork.working import Arithmetic

FIGURES = 4  # of exponentials, which have no end


def arithmetic_text(line: Arithmetic, style: Style) -> list[str]:
    """The lines for one entry: z_3,1 = 1·0 + (−2)·3 …"""
    head = f"{line.name} "
    if line.op is None:
        return [f"{head}{_equals(line.result, style)}   as given"]
    if not line.terms:
        return [f"{head}{_equals(line.result, style)}"]
    steps = ARITHMETIC[type(line.op)](line, style)
    result = _equals(line.result, style)
    if steps and steps[-1] == result:
        steps = steps[:-1]
    lines = [*steps, result]
    return [head + lines[0], *(" " * len(head) + more for more in lines[1:])]


def _equals(entry: Entry, style: Style) -> str:
    shown, exact = cell(entry, style)
    return f"{'=' if exact else '≈'} {shown}"


def _number(entry: Entry, style: Style) -> str:
    """A number as a factor or term: brackets around what starts with a minus sign or is a sum."""
    shown, _ = cell(entry, style)
    return f"({shown})" if shown.startswith("−") or " " in shown else shown


def _matmul(line: Arithmetic, style: Style) -> list[str]:
    exact = all(cell(x, style)[1] for pair in line.terms for x in pair)
    products = " + ".join("·".join(_number(x, style) for x in pair) for pair in line.terms)
    lines = [f"{'=' if exact else '≈'} {products}"]
    if exact and len(line.terms) > 1:
        terms = [a * b for a, b in line.terms if not isinstance(a, Hidden) and not isinstance(b, Hidden)]
        lines.append(f"= {signed_sum([cell(term, style)[0] for term in terms])}")
    return lines


def signed_sum(terms: list[str]) -> str:
    """4 + 0 − 24."""
    first, *rest = terms
    return first + "".join(f" − {t[1:]}" if t.startswith("−") else f" + {t}" for t in rest)


def _divide(line: Arithmetic, style: Style) -> list[str]:
    (number, by), *_ = line.terms
    divisor, _ = cell(by, Style(exact=True))
    return [f"= {_number(number, style)} / {divisor}"]


def _add(line: Arithmetic, style: Style) -> list[str]:
    (a, b), *_ = line.terms
    lines = [f"= {_number(a, style)} + {_number(b, style)}"]
    if isinstance(b, Hidden):
        lines.append("= −∞   hidden by the mask")
    return lines


def _softmax(line: Arithmetic, style: Style) -> list[str]:
    (own,), summed = line.terms
    if isinstance(own, Hidden):
        return ["= e^(−∞) / … = 0   hidden by the mask"]
    seen = [s for s in summed if isinstance(s, Fraction | Surd)]
    below = " + ".join(_power(s, style) for s in seen)
    exact = all(cell(s, style)[1] for s in seen)
    formula = f"{'=' if exact else '≈'} {_power(own, style)} / ({below})"
    assert isinstance(own, Fraction | Surd)
    above, powers, total = _exponential([own]), [_exponential([s]) for s in seen], _exponential(seen)
    return [formula, f"≈ {above} / ({' + '.join(powers)})", f"≈ {above} / {f'({total})' if '·' in total else total}"]


def _exponential(exponents: list[Real]) -> str:
    """The sum of e to these, in a few figures."""
    total: dict[Real, Real] = {}
    for s in exponents:
        total[s] = total.get(s, Fraction(0)) + 1
    only = total.get(Fraction(0)) if len(total) == 1 else None
    return figures(only or Closed({UNIT: total}), FIGURES)


def _power(exponent: Entry, style: Style) -> str:
    shown, _ = cell(exponent, style)
    return f"e^({shown})" if len(shown) > 1 else f"e^{shown}"


def _moved(line: Arithmetic, style: Style) -> list[str]:
    return [f"= an entry of {line.operands[0]}"]


ARITHMETIC: Mapping[type[Op], Callable[[Arithmetic, Style], list[str]]] = {
    Given: lambda line, style: [],
    MatMul: _matmul,
    Transpose: _moved,
    Divide: _divide,
    Add: _add,
    Softmax: _softmax,
    Split: _moved,
    Join: _moved,
}
