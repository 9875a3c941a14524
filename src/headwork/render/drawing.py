"""A drawing: boxes, lines and labels as data, which every format writes in its own way."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from headwork import maths as m
from headwork.graph import Head
from headwork.inline import inline

SIZE, SMALL = 13.0, 11.0
SCRIPT = 0.72  # size of a subscript, as part of what it stands below

Point = tuple[float, float]


@dataclass(frozen=True)
class Of:
    """Which step a shape belongs to."""

    role: str
    head: Head = None


@dataclass(frozen=True)
class Rect:
    """A box. Its look is "plain", "source", "elsewhere", "card", "cell" (shaded by its share) or "hidden"."""

    x: float
    y: float
    width: float
    height: float
    look: str = "plain"
    colour: str = ""  # a family of roles; ink without it
    of: Of | None = None
    share: float = 0.0

    def moved(self, x: float, y: float) -> "Rect":
        return replace(self, x=self.x + x, y=self.y + y)


@dataclass(frozen=True)
class Line:
    """A line through these points; an arrow where it has a head."""

    points: tuple[Point, ...]
    head: bool = False
    colour: str = ""
    dashed: bool = False

    def moved(self, x: float, y: float) -> "Line":
        return replace(self, points=tuple((a + x, b + y) for a, b in self.points))


@dataclass(frozen=True)
class Label:
    """A formula on its base line."""

    maths: m.Maths
    x: float
    y: float
    anchor: str = "middle"  # or "start", "end"
    size: float = SIZE
    colour: str = ""
    of: Of | None = None
    turned: bool = False  # read from the bottom up

    def moved(self, x: float, y: float) -> "Label":
        return replace(self, x=self.x + x, y=self.y + y)

    @property
    def left(self) -> float:
        return self.x - label_width(self.maths, self.size) * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]


Shape = Rect | Line | Label


@dataclass
class Drawing:
    """Shapes on a canvas, with a title and the same in words for those who do not see them."""

    title: str
    words: str
    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """Some characters, how far up they stand, how large, and whether slanted."""

    text: str
    rise: float = 0.0
    scale: float = 1.0
    slanted: bool = False


NARROW, WIDE = "fijlrtI,.·|()[]/′:; ", "mwMW…—"


def label_width(maths: m.Maths, size: float = SIZE) -> float:
    """About how wide a label is, rather too much than too little."""
    return sum(run.scale * sum(map(_advance, run.text)) for run in runs(maths)) * size


def _advance(character: str) -> float:
    if character in NARROW:
        return 0.36
    return 0.9 if character in WIDE else 0.76 if character.isupper() else 0.58


def runs(maths: m.Maths, rise: float = 0.0, scale: float = 1.0) -> Iterator[Run]:
    """A formula on one line: fractions with a slash, roots without a bar."""
    if isinstance(maths, m.Letter):
        yield Run(maths.text, rise, scale, slanted=len(maths.text.rstrip("′")) == 1)
    elif isinstance(maths, m.Number | m.Words):
        yield Run(maths.text, rise, scale)
    elif isinstance(maths, m.Sign):
        spaced = maths.text in "=+≈|→÷"
        text = "∗" if maths.text == "∘" else maths.text  # which text fonts lack
        yield Run(f"\u00a0{text}\u00a0" if spaced else text, rise, scale)
    elif isinstance(maths, m.Row):
        for item in maths.items:
            yield from runs(item, rise, scale)
    elif isinstance(maths, m.Named):
        yield from runs(maths.of, rise, scale)
    elif isinstance(maths, m.Below | m.Above):
        yield from runs(maths.base, rise, scale)
        shift = 0.38 if isinstance(maths, m.Above) else -0.22
        yield from runs(maths.script, rise + shift * scale, scale * SCRIPT)
    elif isinstance(maths, m.Ratio):
        yield from _bracketed(maths.over, rise, scale)
        yield Run("/", rise, scale)
        yield from _bracketed(maths.under, rise, scale)
    elif isinstance(maths, m.Barred):
        yield Run(inline(maths), rise, scale, slanted=True)
    elif isinstance(maths, m.RootOf):
        yield Run("√", rise, scale)
        yield from _bracketed(maths.of, rise, scale)
    else:
        assert not isinstance(maths, m.Gap | m.Grid), "labels hold no matrices"


def _bracketed(maths: m.Maths, rise: float, scale: float) -> Iterator[Run]:
    """A sum below a slash or a root needs brackets; a product above one does not."""
    summed = isinstance(maths, m.Row) and any(item in (m.Sign("+"), m.Sign("−")) for item in maths.items)
    if summed:
        yield Run("(", rise, scale)
    yield from runs(maths, rise, scale)
    if summed:
        yield Run(")", rise, scale)
