"""One line of a part as the page has it, and what is sent when its numbers change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from headwork import working as w
from headwork.maths import Grid
from headwork.readings.exact import Matrix
from headwork.render import blocks as b
from headwork.render.cells import grid
from headwork.render.equations import operand_key
from headwork.render.html import block_html
from headwork.render.layout import Layout
from headwork.render.page import line_blocks
from headwork.web.changes import PARTS, Changed, changes, entries_changed


@dataclass
class ShownLine:
    """A line; its blocks, and they as HTML, are made when they are asked for. `key` is what its matrices are called."""

    line: w.Line
    layout: Layout
    key: str = ""

    @cached_property
    def blocks(self) -> tuple[b.Block, ...]:
        return tuple(line_blocks(self.line, replace(self.layout, keys=iter((self.key,)))))

    @cached_property
    def html(self) -> str:
        return "".join(map(block_html, self.blocks))

    @cached_property
    def grids(self) -> dict[str, tuple[Grid, bool]] | None:
        """Its matrices in the order of the page, each with whether it is exact; None where more is shown."""
        if not isinstance(self.line, w.Equation) or len(self.blocks) > 1 or self.layout.room is not None:
            return None
        return {one.key: grid(self.matrices[one.key], self.layout.style, *_held(one)) for one in _grids(self.blocks)}

    @cached_property
    def matrices(self) -> dict[str, Matrix]:
        """What the equation is made of and what it comes to, by key."""
        assert isinstance(self.line, w.Equation)
        made_of = {operand_key(self.key, i): o.value for i, o in enumerate(self.line.operands)}
        return {key: value for key, value in {**made_of, self.key: self.line.value}.items() if value is not None}

    def changed_from(self, old: ShownLine) -> Changed | None:
        """The entries, heat maps and notes that differ; None where anything else does."""
        quick = self._entries(old)
        return changes(self.blocks, old.blocks) if quick is None else quick

    def _entries(self, old: ShownLine) -> Changed | None:
        """The same where nothing but numbers in matrices can differ; their display need not be made for it."""
        if old.grids is None or not isinstance(self.line, w.Equation) or self.line.near:
            return None
        made = {key: self._anew(key, *known, old) for key, known in old.grids.items()}
        if self._relations(made) != self._relations(old.grids):
            return None
        self.grids = made
        return entries_changed((one for one, _ in made.values()), (one for one, _ in old.grids.values()))

    def _anew(self, key: str, was: Grid, exact: bool, old: ShownLine) -> tuple[Grid, bool]:
        if unchanged(self.matrices[key], old.matrices[key]):
            return was, exact
        return grid(self.matrices[key], self.layout.style, *_held(was))

    def _relations(self, grids: dict[str, tuple[Grid, bool]]) -> tuple[bool, bool]:
        """Whether "=" stands before what goes in, and before what comes out."""
        return all(exact for key, (_, exact) in grids.items() if key != self.key), grids[self.key][1]


def _held(shown: Grid) -> tuple[str, Any]:
    return shown.key, shown.holds


def _grids(node: Any) -> Iterator[Grid]:
    """The matrices in blocks, in the order of the page."""
    if isinstance(node, Grid):
        yield node
    for part in node if isinstance(node, tuple) else (getattr(node, name) for name in PARTS.get(type(node), ())):
        yield from _grids(part)


def unchanged(new: Matrix | None, before: Matrix | None) -> bool:
    """Whether two matrices hold the very same numbers: what was not worked out anew is the same object."""
    if new is before or new is None or before is None:
        return new is before
    return all(a is b for rows in zip(new, before, strict=True) for a, b in zip(*rows, strict=True))
