"""What an edit changes in the blocks of a line: entries, heat maps and notes, where only these differ."""

from collections.abc import Mapping, Sequence
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


def changes(new: Sequence[b.Block], old: Sequence[b.Block]) -> list[tuple[int, str]] | None:
    """The entries of matrices, heat maps and notes that differ, each with its place among all of them, as HTML; None
    where anything else differs."""
    found = _Found()
    return found.changed if found.alike(tuple(new), tuple(old)) else None


class _Found:
    def __init__(self) -> None:
        self.changed: list[tuple[int, str]] = []
        self.place = 0

    def alike(self, new: Any, old: Any) -> bool:
        """Whether two trees are the same but for their entries; those that differ are noted on the way."""
        if type(new) is not type(old):
            return False
        if isinstance(new, Grid):
            return self.grids(new, old)
        if isinstance(new, b.Heat):
            return self.whole(True, heat_svg(new))
        if isinstance(new, b.Paragraph) and new.kind == old.kind == "note":
            return self.whole(new != old, prose_html(new.text))
        if isinstance(new, tuple):
            return len(new) == len(old) and all(map(self.alike, new, old))
        if (parts := PARTS.get(type(new))) is None:
            return bool(new == old)
        return all(self.alike(getattr(new, part), getattr(old, part)) for part in parts)

    def whole(self, differs: bool, html: str) -> bool:
        if differs:
            self.changed.append((self.place, html))
        self.place += 1
        return True

    def grids(self, new: Grid, old: Grid) -> bool:
        if (new.key, new.holds, [*map(len, new.rows)]) != (old.key, old.holds, [*map(len, old.rows)]):
            return False
        for here, there in zip(new.rows, old.rows, strict=True):
            for entry, before in zip(here, there, strict=True):
                if entry is not before and entry != before:
                    self.changed.append((self.place, inside(entry)))
                self.place += 1
        return True
