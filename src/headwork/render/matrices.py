"""Matrices drawn in text: brackets, columns aligned on the decimal point, blocks side by side."""

from __future__ import annotations

from collections.abc import Sequence

Block = list[str]  # lines of equal width


def bracketed(rows: Sequence[Sequence[str]]) -> Block:
    """A matrix in brackets.

    >>> print("\\n".join(bracketed([["1", "2.5"], ["10", "3"]])))
    ⎡ 1  2.5⎤
    ⎣10  3  ⎦
    """
    columns = [aligned(column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(row) for row in zip(*columns, strict=True)]
    if len(lines) == 1:
        return [f"[{lines[0]}]"]
    left = ["⎡", *"⎢" * (len(lines) - 2), "⎣"]
    right = ["⎤", *"⎥" * (len(lines) - 2), "⎦"]
    return [f"{a}{line}{b}" for a, line, b in zip(left, lines, right, strict=True)]


def aligned(column: Sequence[str]) -> list[str]:
    """Texts padded to one width, decimal points (or last digits of integers) above one another."""
    wholes, parts = zip(*(_at_point(text) for text in column), strict=True)
    before, after = max(map(len, wholes)), max(map(len, parts))
    return [f"{whole:>{before}}{part:<{after}}" for whole, part in zip(wholes, parts, strict=True)]


def _at_point(text: str) -> tuple[str, str]:
    plain = text.lstrip("−").replace(".", "", 1)
    if not plain.isdecimal() or "." not in text:
        return text, ""
    point = text.index(".")
    return text[:point], text[point:]


def beside(*blocks: Block | str, gap: str = " ") -> Block:
    """Blocks side by side, their middle lines level; of an even number the upper one counts as the middle."""
    lines = [[block] if isinstance(block, str) else block for block in blocks]
    above = max(_middle(block) for block in lines)
    below = max(len(block) - _middle(block) for block in lines)
    padded = [_padded(block, above - _middle(block), above + below) for block in lines]
    return [gap.join(row).rstrip() for row in zip(*padded, strict=True)]


def _middle(block: Block) -> int:
    return (len(block) - 1) // 2


def _padded(block: Block, above: int, height: int) -> Block:
    room = max(map(len, block))
    lines = [line.ljust(room) for line in block]
    return [" " * room] * above + lines + [" " * room] * (height - above - len(block))


def width(block: Block) -> int:
    return max(map(len, block))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Block:
    """A plain table under a rule; the first `left` columns are flush left, the others flush right."""
    columns = [[str(x) for x in column] for column in zip(header, *rows, strict=True)]
    padded = [
        [x.ljust(max(map(len, column))) if i < left else x.rjust(max(map(len, column))) for x in column]
        for i, column in enumerate(columns)
    ]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    rule = "─" * max(map(len, lines))
    return [lines[0], rule, *lines[1:]]


def columns_that_fit(header: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[list[int]]:
    """Column numbers for one table, or for several that each repeat the names (columns 0 and 1)."""
    widths = [max(len(row[i]) for row in (header, *rows)) + 2 for i in range(len(header))]
    tables = [[0, 1]]
    for i in range(2, len(header)):
        if len(tables[-1]) > 2 and sum(widths[j] for j in tables[-1]) + widths[i] > room:
            tables.append([0, 1])
        tables[-1].append(i)
    return tables
