"""Several items as one problem: below one another, each hidden from the others. Gradients add up over them by that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.formulas import cut, formula_named
from headwork.readings.exact import HIDDEN, Entry, Matrix
from headwork.sheets.added import masks
from headwork.sheets.angles import rotary_tables, sinusoids
from headwork.sheets.sheet import EachHead, Key, Part, Problem, Rotary
from headwork.sheets.sizes import has_past, infer_sizes, pattern

ZERO: Entry = Fraction(0)
OF_ITEMS = ("tokens", "keys")  # what has as many rows, or columns, as an item has of these stands once for every item


def together(each: Sequence[Problem]) -> Problem:
    """One problem of all items: what each has of its own below one another, and a mask that keeps them apart."""
    first, sizes = each[0], [infer_sizes(problem) for problem in each]
    _check(first, sizes)
    rotary, given = first.rotary, [_with_tables(problem, of) for problem, of in zip(each, sizes, strict=True)]
    return replace(
        first,
        text=f"{first.text} The items stand below one another, and the mask hides each from the others.".strip(),
        mask=_mask([masks(problem, of) or (_nothing(of),) for problem, of in zip(each, sizes, strict=True)]),
        window=None,
        padding=(),
        bias=first.bias
        and replace(first.bias, matrices=tuple(_apart([m] * len(each), ZERO) for m in first.bias.matrices)),
        rotary=Rotary(rotary.pairs) if rotary and ("cos", None) in given[0] else rotary,
        positions=None,
        blocks=_blocks(first, sizes),
        tokens=tuple(chain.from_iterable(problem.tokens for problem in each)),
        keys=tuple(chain.from_iterable(problem.keys for problem in each)),
        sizes={name: size for name, size in first.sizes.items() if name not in ("batch", *OF_ITEMS)},
        given=_below(given),
        parts=tuple(_part(parts) for parts in zip(*(problem.parts for problem in each), strict=True)),
    )


def _check(problem: Problem, sizes: Sequence[Sizes]) -> None:
    """What cannot be said of items below one another."""
    by_distance = bool(problem.bias and not problem.bias.matrices) or bool(problem.rotary and problem.rotary.angles)
    if has_past(problem):
        raise HeadworkError(
            "gradients of several items are worked without a cache; make each item a problem of its own"
        )
    if problem.positions and problem.positions.places is None:
        raise HeadworkError(
            "gradients of several items take sinusoids rounded, as a printed table has them: add places, as in "
            "positions = { places = 4 }"
        )
    if any(name.removeprefix("d_").startswith("positions") for part in problem.parts for name in part.find):
        raise HeadworkError(
            "gradients of positions that all items share are not worked; make each item a problem of its own"
        )
    if by_distance and (uneven := next((of for of in sizes if of.keys != of.tokens), None)):
        raise HeadworkError(
            f"items below one another have distances within each only where it has as many keys as tokens, not "
            f"{uneven.keys} and {uneven.tokens}; make each item a problem of its own"
        )


def _with_tables(problem: Problem, sizes: Sizes) -> Mapping[Key, Matrix]:
    """What is given for an item, its positions written out: they start again with every item.

    Scores of rotary positions depend on distances alone, but for tables that are rounded.
    """
    tables: dict[Key, Matrix] = {}
    if problem.positions:
        tables["positions", None] = sinusoids(problem.positions, sizes, 0)
    if problem.rotary and problem.rotary.angles and problem.rotary.angles.places is not None:
        cos, sin = rotary_tables(problem.rotary.angles, sizes)
        tables |= {("cos", None): cos, ("sin", None): sin}
    return {**problem.given, **tables}


def _below(given: Sequence[Mapping[Key, Matrix]]) -> dict[Key, Matrix]:
    """What has a row for every token or key of an item, below one another; what is learned stays as it is."""
    found = {}
    for role, head in given[0]:
        matrices = [own[role, head] for own in given]
        rows, columns = pattern(role) or ("", "")
        if columns in OF_ITEMS:
            raise HeadworkError(
                f"{role} is given for one item, and gradients take all of them together; leave it out, or make each "
                "item a problem of its own"
            )
        found[role, head] = tuple(chain.from_iterable(matrices)) if rows in OF_ITEMS else matrices[0]
    return found


def _part(items: Sequence[Part]) -> Part:
    return replace(items[0], given=_below([part.given for part in items]))


def _mask(each: Sequence[tuple[Matrix, ...]]) -> Matrix | EachHead:
    """For every head, or for all, the items' own masks, and what belongs to another item hidden."""
    found = [_apart(matrices, HIDDEN) for matrices in zip(*each, strict=True)]
    return found[0] if len(found) == 1 else EachHead(found)


def _apart(matrices: Sequence[Matrix], elsewhere: Entry) -> Matrix:
    """Blocks along the diagonal."""
    widths = [len(matrix[0]) for matrix in matrices]
    before = [sum(widths[:item]) for item in range(len(widths) + 1)]
    return tuple(
        (elsewhere,) * before[item] + row + (elsewhere,) * (before[-1] - before[item + 1])
        for item, matrix in enumerate(matrices)
        for row in matrix
    )


def _nothing(sizes: Sizes) -> Matrix:
    return tuple((ZERO,) * sizes.keys for _ in range(sizes.tokens))


def _blocks(problem: Problem, sizes: Sequence[Sizes]) -> int | tuple[int, ...]:
    """Every item's own keys, cut as they are by themselves."""
    if not formula_named(problem.formula).blocks:
        return problem.blocks
    return tuple(chain.from_iterable(cut(of.keys, problem.blocks) for of in sizes))
