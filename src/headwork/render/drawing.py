"""A drawing: boxes, arrows and labels, written out as SVG. Lines take the colour of the text around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from headwork.inline import inline
from headwork.maths import (
    Above,
    Barred,
    Below,
    Gap,
    Grid,
    Letter,
    Maths,
    Named,
    Number,
    Ratio,
    RootOf,
    Row,
    Sign,
    Words,
)

FONT = "New Computer Modern, Latin Modern Roman, STIX Two Text, Cambria, Georgia, serif"
SIZE = 13.0
SCRIPT = 0.72  # size of a subscript, as part of what it stands below
_DARK = "<style>svg{color:#1a1a1a}@media(prefers-color-scheme:dark){svg{color:#ececec}}</style>"
LOOKS = {
    "plain": 'rx="3" fill="currentColor" fill-opacity="0.07" stroke="currentColor" stroke-width="1"',
    "source": 'rx="10" fill="none" stroke="currentColor" stroke-width="1.4"',
    "card": 'rx="8" fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width="1" stroke-dasharray="4 3"',
    "elsewhere": 'rx="10" fill="none" stroke="currentColor" stroke-width="1" stroke-dasharray="3 2"',
}

Point = tuple[float, float]


@dataclass
class Drawing:
    """Shapes on a canvas, with a title and the same in words for those who do not see them."""

    title: str
    words: str
    width: float
    height: float = 0.0
    shapes: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, *, look: str = "plain") -> None:
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {LOOKS[look]}/>')

    def shade(self, x: float, y: float, side: float, share: float) -> None:
        """A square, the fuller the larger the share from 0 to 1."""
        self.shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="#2563c9" '
            f'fill-opacity="{0.04 + 0.9 * share:.3f}" stroke="currentColor" stroke-opacity="0.4" stroke-width="0.6"/>'
        )

    def line(self, *points: Point, head: bool = False) -> None:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.shapes.append(f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.1"/>')
        if head:
            x, y = points[-1]
            self.shapes.append(f'<path d="M{x - 3.5:.1f} {y - 6:.1f}h7l-3.5 6z" fill="currentColor"/>')

    def label(self, maths: Maths, x: float, y: float, *, anchor: str = "middle", size: float = SIZE) -> None:
        """A formula on its base line."""
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:.1f}" fill="currentColor">'
            f"{_runs(maths, size)}</text>"
        )

    def svg(self, *, alone: bool = False) -> str:
        """The drawing as SVG; `alone` when it is a file and has no page to take its colour from."""
        shapes = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}" role="img" font-family="{FONT}">'
            f"<title>{escape(self.title)}</title><desc>{escape(self.words)}</desc>"
            f"{_DARK if alone else ''}\n{shapes}\n</svg>"
        )


@dataclass(frozen=True)
class Run:
    """Some characters, how far up they stand, how large, and whether slanted."""

    text: str
    rise: float = 0.0
    scale: float = 1.0
    slanted: bool = False


def label_width(maths: Maths, size: float = SIZE) -> float:
    """About how wide a label is."""
    return sum(len(run.text) * run.scale for run in runs(maths)) * size * 0.52


def _runs(maths: Maths, size: float) -> str:
    """Runs as SVG: each moves the base line from where the one before left it."""
    written, at = [], 0.0
    for run in runs(maths):
        move = f' dy="{(at - run.rise) * size:.1f}"' if run.rise != at else ""
        scale = f' font-size="{run.scale * size:.1f}"' if run.scale != 1 else ""
        slanted = ' font-style="italic"' if run.slanted else ""
        at = run.rise
        written.append(f"<tspan{move}{scale}{slanted}>{escape(run.text)}</tspan>")
    return "".join(written)


def runs(maths: Maths, rise: float = 0.0, scale: float = 1.0) -> Iterator[Run]:
    """A formula on one line: fractions with a slash, roots without a bar."""
    if isinstance(maths, Letter):
        yield Run(maths.text, rise, scale, slanted=len(maths.text.rstrip("′")) == 1)
    elif isinstance(maths, Number | Words):
        yield Run(maths.text, rise, scale)
    elif isinstance(maths, Sign):
        spaced = maths.text in "=+≈|→÷"
        text = "∗" if maths.text == "∘" else maths.text  # which text fonts lack
        yield Run(f"\u00a0{text}\u00a0" if spaced else text, rise, scale)
    elif isinstance(maths, Row):
        for item in maths.items:
            yield from runs(item, rise, scale)
    elif isinstance(maths, Named):
        yield from runs(maths.of, rise, scale)
    elif isinstance(maths, Below | Above):
        yield from runs(maths.base, rise, scale)
        shift = 0.38 if isinstance(maths, Above) else -0.22
        yield from runs(maths.script, rise + shift * scale, scale * SCRIPT)
    elif isinstance(maths, Ratio):
        yield from _bracketed(maths.over, rise, scale)
        yield Run("/", rise, scale)
        yield from _bracketed(maths.under, rise, scale)
    elif isinstance(maths, Barred):
        yield Run(inline(maths), rise, scale, slanted=True)
    elif isinstance(maths, RootOf):
        yield Run("√", rise, scale)
        yield from _bracketed(maths.of, rise, scale)
    else:
        assert not isinstance(maths, Gap | Grid), "labels hold no matrices"


def _bracketed(maths: Maths, rise: float, scale: float) -> Iterator[Run]:
    """A sum below a slash or a root needs brackets; a product above one does not."""
    summed = isinstance(maths, Row) and any(item in (Sign("+"), Sign("−")) for item in maths.items)
    if summed:
        yield Run("(", rise, scale)
    yield from runs(maths, rise, scale)
    if summed:
        yield Run(")", rise, scale)
