"""What is added to the scores by position: masks, windows and biases, as a sheet writes them and as matrices.

A token's position is counted among the keys: the last token stands at the last key, also where earlier ones have left
keys behind.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from headwork.build import Sizes
from headwork.errors import HeadworkError, did_you_mean
from headwork.numbers.certain import AnyNumber
from headwork.numbers.functions import power
from headwork.numbers.parse import parse_number
from headwork.numbers.surd import Real
from headwork.readings.exact import HIDDEN, Entry, Matrix, plus
from headwork.readings.moving import by_entry
from headwork.sheets.checks import as_matrices, as_number, at, one_of, only_keys, shortened
from headwork.sheets.sheet import Bias, EachHead, Problem

FARTHEST = 10**6  # keys to one side that a window may have: more than any sheet


# As a sheet writes them.


def read_mask(value: Any) -> str | Matrix | EachHead:
    """A name, a matrix, or one of these for every head."""
    if isinstance(value, list) and value and all(isinstance(one, str) or _is_matrix(one) for one in value):
        return EachHead(at(f"head {number}", _one_mask, one) for number, one in enumerate(value, 1))
    return _one_mask(value)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, list) for row in value)


def _one_mask(value: Any) -> str | Matrix:
    if isinstance(value, str):
        return one_of(value, ("none", "causal"))
    if not _is_matrix(value) or not all(value):
        raise HeadworkError('must be "none", "causal", a matrix of true/false or of numbers, or one for every head')
    rows = [[_mask_entry(x) for x in row] for row in value]
    if any(len(row) != len(rows[0]) for row in rows):
        raise HeadworkError("is ragged: every row needs as many entries")
    return tuple(tuple(row) for row in rows)


def _mask_entry(value: Any) -> Entry:
    """true may be read; false and "-inf" are hidden; a number is added as it is."""
    if isinstance(value, bool):
        return parse_number(0) if value else HIDDEN
    if value in ("-inf", "-∞", "−∞"):
        return HIDDEN
    return as_number(value)


def read_window(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    sides = value if isinstance(value, list) and len(value) == 2 else [None]
    if not all(isinstance(n, int) and not isinstance(n, bool) and -1 <= n <= FARTHEST for n in sides):
        raise HeadworkError(
            f"{shortened(value)} was given; write [left, right], how many keys on each side of its own a token reads, "
            "with −1 for all of them: [2, 0]"
        )
    return value[0], value[1]


def read_bias(value: Any) -> Bias | None:
    if value is None:
        return None
    if isinstance(value, str):
        one_of(value, ("alibi",))
        return Bias(alibi=True)
    if not isinstance(value, dict):
        found = as_matrices(value, vector=False)
        return Bias(matrices=tuple(found) if isinstance(found, list) else (found,))
    only_keys(value, ["alibi", "relative"])
    if len(value) != 1:
        raise HeadworkError('takes one table: { alibi = ["1/2", "1/4"] } or { relative = [[…]] }')
    if "alibi" in value:
        return Bias(alibi=True, slopes=at("alibi", _numbers, value["alibi"]))
    return Bias(relative=at("relative", _tables, value["relative"]))


def _numbers(value: Any) -> tuple[Real, ...]:
    if not isinstance(value, list) or not value:
        raise HeadworkError('needs a slope for every head, such as ["1/2", "1/4"]')
    return tuple(map(as_number, value))


def _tables(value: Any) -> tuple[tuple[Real, ...], ...]:
    if not _is_matrix(value) or not all(len(row) % 2 for row in value):
        raise HeadworkError(
            "needs a row for every head, of an odd number of biases: those for keys to the left, the one for the "
            "token's own, those for keys to the right, such as [[-1, 0, 1]]"
        )
    return tuple(tuple(map(as_number, row)) for row in value)


# As matrices.


def masks(problem: Problem, sizes: Sizes) -> tuple[Matrix, ...]:
    """None, one for all heads, or one for each: what any of the problem's keys hides is hidden."""
    each = problem.mask if isinstance(problem.mask, EachHead) else (problem.mask,)
    if isinstance(problem.mask, EachHead):
        _check_heads("mask", len(each), sizes, "matrices or names")
    if not problem.masked:
        return ()
    found = [at("key 'mask'", _mask, mask, problem.window, sizes) for mask in each]
    padding = at("key 'padding'", _padding, problem, sizes) if problem.padding else None
    return tuple(found if padding is None else (by_entry(plus, mask, padding) for mask in found))


def _padding(problem: Problem, sizes: Sizes) -> Matrix:
    """−∞ in the column of every key that goes by one of these names."""
    names = problem.keys or problem.tokens
    if len(names) != sizes.keys:
        raise HeadworkError(
            f"hides keys by their names, and {len(names) or 'none'} of {sizes.keys} keys have one; name them all, "
            'keys = ["the", "cat", "<pad>"], or tokens = […] where these are the keys'
        )
    if stranger := next((name for name in problem.padding if name not in names), None):
        known = did_you_mean(stranger, names) or f"; the keys are {', '.join(dict.fromkeys(names))}"
        raise HeadworkError(f"'{stranger}' is the name of no key{known}")
    row: tuple[Entry, ...] = tuple(HIDDEN if name in problem.padding else Fraction(0) for name in names)
    return tuple(row for _ in range(sizes.tokens))


def _mask(mask: str | Matrix, window: tuple[int, int] | None, sizes: Sizes) -> Matrix:
    whole = _by_distance(sizes, lambda distance: Fraction(0)) if isinstance(mask, str) else mask
    sides = [(-1, 0)] if mask == "causal" else []
    for left, right in [*sides, *([window] if window else [])]:
        if sizes.keys < sizes.tokens:
            raise HeadworkError(
                f"a token's own key comes last, so there are at least as many keys as tokens, not {sizes.keys} and "
                f"{sizes.tokens}; give the mask as a matrix"
            )
        seen = _by_distance(sizes, partial(_seen, left, right))
        whole = by_entry(plus, whole, seen)
    return whole


def _seen(left: int, right: int, distance: int) -> Entry:
    """0 for a key that lies within, −∞ for one beyond."""
    within = (left < 0 or distance >= -left) and (right < 0 or distance <= right)
    return Fraction(0) if within else HIDDEN


def _by_distance(sizes: Sizes, entry: Callable[[int], Entry]) -> Matrix:
    """A matrix whose entries depend on how far to the right of a token a key lies."""
    first = sizes.keys - sizes.tokens
    return tuple(tuple(entry(j - first - i) for j in range(sizes.keys)) for i in range(sizes.tokens))


def biases(problem: Problem, sizes: Sizes) -> tuple[Matrix, ...]:
    """None, one for all heads, or one for each; of ALiBi none where its biases are worked out."""
    bias = problem.bias
    if bias is None or slopes(problem, sizes):
        return ()
    if bias.alibi:
        return tuple(_by_distance(sizes, partial(_dropped, slope)) for slope in _every_slope(bias, sizes))
    if bias.relative:
        _check_heads("bias", len(bias.relative), sizes, "rows")
        return tuple(_by_distance(sizes, partial(_clipped, row)) for row in bias.relative)
    if len(bias.matrices) > 1:
        _check_heads("bias", len(bias.matrices), sizes, "matrices")
    return bias.matrices


def _clipped(table: tuple[Real, ...], distance: int) -> Real:
    """Beyond its ends a table says the same as at them."""
    middle = len(table) // 2
    return table[max(0, min(middle + distance, len(table) - 1))]


def distances(sizes: Sizes) -> Matrix:
    """How many keys lie between: what ALiBi's slopes are multiplied by."""
    return _by_distance(sizes, lambda distance: Fraction(abs(distance)))


def _dropped(slope: AnyNumber, distance: int) -> AnyNumber:
    return -slope * abs(distance)


def slopes(problem: Problem, sizes: Sizes) -> tuple[Real, ...]:
    """ALiBi's, where all of them have closed forms; else the biases themselves are given."""
    found = _every_slope(problem.bias, sizes)
    closed = tuple(slope for slope in found if isinstance(slope, Real))
    return closed if len(closed) == len(found) else ()


def _every_slope(bias: Bias | None, sizes: Sizes) -> tuple[AnyNumber, ...]:
    """As given, or as the paper has them for so many heads."""
    if bias is None or not bias.alibi or not isinstance(sizes.heads, int):
        return ()
    if bias.slopes:
        _check_heads("bias", len(bias.slopes), sizes, "slopes")
        return bias.slopes
    return paper_slopes(sizes.heads)


def paper_slopes(heads: int) -> tuple[AnyNumber, ...]:
    """2^(−8/h), 2^(−16/h) … for h a power of 2; else those of the power below, and every other one of the next.

    Beyond 16 heads some are no square roots: of those every digit is certain.

    >>> [str(slope) for slope in paper_slopes(4)]
    ['1/4', '1/16', '1/64', '1/256']
    """
    below = 1 << (heads.bit_length() - 1)
    exponents = [Fraction(8 * i, below) for i in range(1, below + 1)]
    exponents += [Fraction(8 * i, 2 * below) for i in range(1, 2 * (heads - below), 2)]
    return tuple(power(Fraction(1, 2), exponent) for exponent in exponents)


def _check_heads(key: str, number: int, sizes: Sizes, what: str) -> None:
    if isinstance(sizes.heads, int) and number != sizes.heads:
        there = "is 1 head" if sizes.heads == 1 else f"are {sizes.heads} heads"
        raise HeadworkError(f"key '{key}': holds {number} {what}, but there {there}; give one for every head")
