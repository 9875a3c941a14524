"""SymPy expressions as a person writes them: n_q·n_k·(d_k − 1), d/h, 2μ²σ² + σ⁴."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwork.numbers.surd import Real, Surd

if TYPE_CHECKING:
    from sympy import Expr

# Products name batches first, then heads, tokens and widths, as shapes do; other symbols follow by name.
_ORDER = ("D", "B", "h", "n", "n_q", "n_k", "d", "d_k", "d_v")
# Entries: what stands on the left of a product comes first.
_LEFT_TO_RIGHT = ("x", "c", "q", "scores", "scaled", "z", "a", "weights", "head", "joined", "h", "k", "v", "w", "b")
_RAISED = str.maketrans("0123456789-/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")


def algebra_text(expression: Expr | int, multiply: str = "·") -> str:
    """The expression in Unicode, factors and terms in a fixed order.

    >>> import sympy
    >>> n, d = sympy.symbols("n d")
    >>> algebra_text(d * n * (n - 1))
    'n·d·(n − 1)'
    """
    import sympy

    expression = sympy.sympify(expression)  # an int or an expression of ours, never text
    if expression.is_Add:
        terms = sorted(expression.args, key=_term_order)
        return _signed([algebra_text(t, multiply) for t in terms])
    if expression.is_Mul:
        return _product(expression, multiply)
    if expression.is_Pow:
        return _power(expression, multiply)
    if isinstance(expression, sympy.exp):
        return f"e^({algebra_text(expression.args[0], multiply)})"
    return str(expression).replace("-", "−")


def as_sympy(number: Real | int) -> Any:
    """An exact number of ours as one of SymPy's."""
    import sympy

    if isinstance(number, Surd):
        return sympy.Add(*(as_sympy(c) * sympy.sqrt(r) for r, c in number.terms.items()))
    return sympy.Rational(number.numerator, number.denominator)


def _product(expression: Any, multiply: str) -> str:
    coefficient, rest = expression.as_coeff_Mul()
    above: list[Any] = []
    below: list[Any] = []
    for factor in rest.as_ordered_factors():
        base, power = factor.as_base_exp()
        if power.is_number and power.is_negative:
            below.append(base**-power)
        else:
            above.append(factor)
    numbers = [str(abs(coefficient.p))] if abs(coefficient.p) != 1 or not above else []
    text = multiply.join(numbers + [_bracketed(f, multiply) for f in sorted(above, key=_factor_order)])
    divisor = [str(coefficient.q)] if coefficient.q != 1 else []
    divisor += [_bracketed(f, multiply) for f in sorted(below, key=_factor_order)]
    if divisor:
        joined = multiply.join(divisor)
        text += f"/({joined})" if len(divisor) > 1 else f"/{joined}"
    return f"−{text}" if coefficient < 0 else text


def _power(expression: Any, multiply: str) -> str:
    base, power = expression.args
    if power.is_number and power.is_negative:
        return f"1/{_bracketed(base**-power, multiply)}"
    if power.is_Rational and (power.p, power.q) == (1, 2):
        return f"√{_bracketed(base, multiply)}"
    return f"{_bracketed(base, multiply)}{str(power).translate(_RAISED)}"


def _bracketed(factor: Any, multiply: str) -> str:
    text = algebra_text(factor, multiply)
    return f"({text})" if factor.is_Add else text


def _signed(terms: list[str]) -> str:
    first, *rest = terms
    return first + "".join(f" − {t[1:]}" if t.startswith("−") else f" + {t}" for t in rest)


def _factor_order(factor: Any) -> tuple[int, int, int, str]:
    """Sizes in their order, then entries as a product has them, then others by name; sums last."""
    names = sorted(str(s) for s in factor.free_symbols)
    size = min((_ORDER.index(name) for name in names if name in _ORDER), default=len(_ORDER))
    bases = [name.partition("_")[0] for name in names]
    entry = min((_LEFT_TO_RIGHT.index(base) for base in bases if base in _LEFT_TO_RIGHT), default=99)
    return (int(factor.is_Add), size, entry, str(factor))


def _term_order(term: Any) -> tuple[int, str]:
    """Higher degree first, plain numbers last."""
    powers = [f.as_base_exp()[1] for f in term.as_ordered_factors() if f.free_symbols]
    degree = sum(power for power in powers if power.is_Integer)
    return (-int(degree) if term.free_symbols else 1, str(term))
