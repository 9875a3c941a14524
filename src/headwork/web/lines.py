"""One line of a part as the page has it, and what an edit changes in it: entries, heat maps and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from headwork import working as w
from headwork.maths import Above, Barred, Below, Grid, Named, Ratio, RootOf, Row
from headwork.readings.exact import Matrix
from headwork.render import blocks as b
from headwork.render.cells import grid
from headwork.render.diagram import picture_of
from headwork.render.equations import operand_key
from headwork.render.html import block_html, inside, prose_html
from headwork.render.layout import Layout
from headwork.render.page import line_blocks
from headwork.render.svg import svg

# What a node is made of, in the order in which a page has it; of any other only the whole is compared.
PARTS: Mapping[type[Any], tuple[str, ...]] = {
    b.Display: ("key", "lines"),
    b.Aligned: ("left", "pieces", "remark"),
    Row: ("items",),
    Ratio: ("over", "under"),
    Above: ("base", "script"),
    Below: ("base", "script"),
    Named: ("role", "of"),
    RootOf: ("of",),
    Barred: ("of",),
}
Changed = list[tuple[int, str]]  # the place among all entries, heat maps and notes of a line, and what stands there now


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


# What differs between two lines: where only entries, heat maps and notes do, these.


def changes(new: Sequence[b.Block], old: Sequence[b.Block]) -> Changed | None:
    """The entries of matrices, heat maps and notes that differ, each with its place among all of them, as HTML; None
    where anything else differs."""
    found = _Found()
    return found.changed if found.alike(tuple(new), tuple(old)) else None


def entries_changed(new: Iterable[Grid], old: Iterable[Grid]) -> Changed:
    """The same of matrices in the same shapes, one after the other."""
    found = _Found()
    for one, before in zip(new, old, strict=True):
        found.entries(one, before)
    return found.changed


class _Found:
    def __init__(self) -> None:
        self.changed: Changed = []
        self.place = 0

    def alike(self, new: Any, old: Any) -> bool:
        """Whether two trees are the same but for their entries; those that differ are noted on the way."""
        kind = type(new)
        if kind is not type(old):
            return False
        rule = RULES.get(kind)
        return bool(new == old) if rule is None else rule(self, new, old)

    def each(self, new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
        return len(new) == len(old) and all(map(self.alike, new, old))

    def parts(self, names: tuple[str, ...], new: Any, old: Any) -> bool:
        return all(self.alike(getattr(new, name), getattr(old, name)) for name in names)

    def heat(self, new: b.Heat, old: b.Heat) -> bool:
        return self.whole(True, svg(picture_of(new)))

    def paragraph(self, new: b.Paragraph, old: b.Paragraph) -> bool:
        if new.kind == old.kind == "note":
            return self.whole(new != old, prose_html(new.text))
        return new == old

    def whole(self, differs: bool, html: str) -> bool:
        if differs:
            self.changed.append((self.place, html))
        self.place += 1
        return True

    def grids(self, new: Grid, old: Grid) -> bool:
        if (new.key, new.holds, [*map(len, new.rows)]) != (old.key, old.holds, [*map(len, old.rows)]):
            return False
        self.entries(new, old)
        return True

    def entries(self, new: Grid, old: Grid) -> None:
        if new is old:
            self.place += sum(map(len, new.rows))
            return
        for here, there in zip(new.rows, old.rows, strict=True):
            for entry, before in zip(here, there, strict=True):
                if entry is not before and entry != before:
                    self.changed.append((self.place, inside(entry)))
                self.place += 1


def _of(names: tuple[str, ...]) -> Callable[[_Found, Any, Any], bool]:
    return lambda found, new, old: found.parts(names, new, old)


RULES: Mapping[type[Any], Callable[[_Found, Any, Any], bool]] = {
    tuple: _Found.each,
    Grid: _Found.grids,
    b.Heat: _Found.heat,
    b.Paragraph: _Found.paragraph,
    **{kind: _of(names) for kind, names in PARTS.items()},
}
