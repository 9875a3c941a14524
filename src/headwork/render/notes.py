"""Short texts that every page has in common: a weight that is nearly 0 or 1, a count in numbers or symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwork.readings.exact import Hidden
from headwork.readings.shapes import size_text
from headwork.working import Near

if TYPE_CHECKING:
    from headwork.numbers.closed import Exact
    from headwork.readings.counts import Count

MOST_NOTES = 8  # a page of saturated weights makes its point with the first few
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def near_notes(near: Sequence[Near]) -> list[str]:
    """A sentence for each of the first few, and how many more there are."""
    more = len(near) - MOST_NOTES
    return [*map(near_text, near[:MOST_NOTES]), *([f"and {more} more like these"] if more > 0 else [])]


def near_text(near: Near) -> str:
    """weights_0[0,1] is not 1 but 1 − 1.65·10⁻⁶²"""
    assert not isinstance(near.distance, Hidden)
    distance = figures(near.distance, 3)
    value = distance if near.whole == 0 else f"1 − {distance}"
    return f"{near.name} is not {near.whole} but {value}"


def figures(number: Exact, count: int) -> str:
    """So many significant figures; with a power of ten where the number is very small or very large."""
    from headwork.numbers.digits import leading_digits, scientific, significant

    _, power = leading_digits(number, count)
    if -4 < power < 7:
        return significant(number, count).replace("-", "−")
    mantissa, _, raised = scientific(number, count).partition("e")
    return f"{mantissa}·10{raised.translate(_RAISED)}".replace("-", "−")


def count_texts(count: Count) -> tuple[str, ...]:
    """×, +, ÷, exp and bytes."""
    numbers = (count.multiplications, count.additions, count.divisions, count.exponentials, count.bytes)
    return tuple(size_words(number) for number in numbers)


def size_words(size: Any) -> str:
    if isinstance(size, int):
        return f"{size:,}" if size else "·"
    import sympy

    return size_text(sympy.factor_terms(sympy.expand(size)))
