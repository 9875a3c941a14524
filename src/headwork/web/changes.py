"""What an edit changes in the blocks of a line: entries, heat maps and notes, where only these differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headwork.maths import Above, Barred, Below, Grid, Named, Ratio, RootOf, Row
from headwork.render import blocks as b
from headwork.render.html import heat_svg, prose_html
from headwork.render.mathml import inside

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
        return self.whole(True, heat_svg(new))

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
