"""SymPy expressions as a person writes them: n_q·n_k·(d_k − 1), d/h, 2μ²σ² + σ⁴."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwork import maths as m
from headwork.notation import Name
from headwork.numbers.surd import Real, Surd

if TYPE_CHECKING:
    from sympy import Expr

# Products name batches first, then heads, tokens and widths, as shapes do; other symbols follow by name.
_ORDER = ("D", "B", "h", "n", "n_q", "n_k", "d", "d_k", "d_v")
# Entries: what stands on the left of a product comes first.
_LEFT_TO_RIGHT = ("x", "c", "q", "scores", "scaled", "z", "a", "weights", "head", "joined", "h", "k", "v", "w", "b")


def algebra(expression: Expr | int) -> m.Maths:
    """The expression as mathematics, factors and terms in a fixed order.

    >>> import sympy
    >>> from headwork.inline import inline
    >>> n, d = sympy.symbols("n d")
    >>> inline(algebra(d * n * (n - 1)))
    'n·d·(n − 1)'
    """
    import sympy

    expression = sympy.sympify(expression)  # an int or an expression of ours, never text
    if expression.is_Add:
        return m.signed_sum(map(algebra, _in_order(expression.args)))
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow:
        return _power(expression)
    if isinstance(expression, sympy.exp):
        return m.power_of_e(algebra(expression.args[0]))
    if isinstance(expression, sympy.Sum):
        return _sum_over(expression)
    if isinstance(expression, sympy.Indexed):
        return Name.read(str(expression.base)).with_subscripts(*expression.indices).maths
    if isinstance(expression, sympy.Max):
        return m.applied("max", m.between(map(algebra, sorted(expression.args, key=str)), ","))
    if expression.is_Rational:
        size = abs(expression)
        over: m.Maths = m.Number(str(size.p))
        fraction = over if size.q == 1 else m.Ratio(over, m.Number(str(size.q)))
        return m.minus(fraction) if expression < 0 else fraction
    if not expression.is_Symbol:
        raise TypeError(f"{expression} is neither a number, a symbol, a sum, a product nor a power")
    return Name.read(expression.name).maths


def as_sympy(number: Real | int) -> Any:
    """An exact number of ours as one of SymPy's."""
    import sympy

    if isinstance(number, Surd):
        return sympy.Add(*(as_sympy(c) * sympy.sqrt(r) for r, c in number.terms.items()))
    return sympy.Rational(number.numerator, number.denominator)


def _sum_over(expression: Any) -> m.Maths:
    """Σ_k for the sum over all, Σ_k≤a and Σ_a<k≤b for the sum over some."""
    index, first, last = expression.limits[0]
    runs: list[m.Maths] = [m.Letter(str(index))]
    if first != 1:
        runs = [algebra(first - 1), m.Sign("<"), *runs]
    if str(last) != "n":
        runs += [m.Sign("≤"), algebra(last)]
    return m.Row((m.Below(m.Sign("Σ"), m.row(*runs)), m.Words(" "), m.factor(algebra(expression.function))))


def _product(expression: Any) -> m.Maths:
    coefficient, rest = expression.as_coeff_Mul()
    above: list[Any] = []
    below: list[Any] = []
    for part in rest.as_ordered_factors():
        base, power = part.as_base_exp()
        if power.is_number and power.is_negative:
            below.append(base**-power)
        else:
            above.append(part)
    over = _factors(abs(coefficient.p), above)
    product = over if coefficient.q == 1 and not below else m.Ratio(over, _factors(coefficient.q, below))
    return m.minus(product) if coefficient < 0 else product


def _factors(coefficient: Any, factors: list[Any]) -> m.Maths:
    numbers = [m.Number(str(coefficient))] if coefficient != 1 or not factors else []
    return m.between([*numbers, *(m.factor(algebra(f)) for f in sorted(factors, key=_factor_order))], "·")


def _power(expression: Any) -> m.Maths:
    base, power = expression.args
    if power.is_number and power.is_negative:
        return m.Ratio(m.Number("1"), algebra(base**-power))
    if power.is_Rational and (power.p, power.q) == (1, 2):
        return m.RootOf(algebra(base))
    return m.Above(m.factor(algebra(base)), algebra(power))


def _factor_order(part: Any) -> tuple[int, int, int, str]:
    """Sizes in their order, then entries as a product has them, then others by name; sums last."""
    import sympy

    entry_of = [part.base] if isinstance(part, sympy.Indexed) else part.free_symbols
    names = sorted(map(str, entry_of))
    size = min((_ORDER.index(name) for name in names if name in _ORDER), default=len(_ORDER))
    bases = [name.partition("_")[0] for name in names]
    entry = min((_LEFT_TO_RIGHT.index(base) for base in bases if base in _LEFT_TO_RIGHT), default=99)
    return (int(part.is_Add or isinstance(part, sympy.Sum)), size, entry, str(part))


def _in_order(terms: Sequence[Any]) -> list[Any]:
    """By degree; but 1 − p, not −p + 1: where a minus would come first, what it is taken off comes before it."""
    ordered = sorted(terms, key=_term_order)
    takes_off = [term.could_extract_minus_sign() for term in ordered]
    if not takes_off[0]:
        return ordered
    return [term for sign in (False, True) for term, off in zip(ordered, takes_off, strict=True) if off == sign]


def _term_order(term: Any) -> tuple[int, str]:
    """Higher degree first, plain numbers last."""
    powers = [f.as_base_exp()[1] for f in term.as_ordered_factors() if f.free_symbols]
    degree = sum(power for power in powers if power.is_Integer)
    return (-int(degree) if term.free_symbols else 1, str(term))
