"""The picture of a graph: boxes are operations, arrows are matrices with their shapes.

Everything is read off the `Diagram`: which steps there are, what each rests on and which head it belongs to. The
first head is drawn step by step; the others, which differ in nothing but their number, with their projections and
one box for the rest; more than a few of those stand as one, stacked.
"""

from dataclasses import dataclass, field

from headwork.graph import Block, Head
from headwork.maths import Maths, Row, Words
from headwork.readings.shapes import shape_maths, size_text
from headwork.render.arrangement import Arrangement, Frame
from headwork.render.drawing import Drawing, label_width
from headwork.render.picture_text import picture_words
from headwork.working import Diagram

LANE = 108.0  # from one column of boxes to the next
BOX, ARROW = 24.0, 38.0  # heights
RAIL = 34.0  # room at either side for what runs past a head
CARD = 26.0  # room for a head's title
STACKED = 5.0  # from one card of a stack to the next
SIZE, SMALL = 13.0, 11.0
MANY = 3  # heads that are drawn one by one


def draw(diagram: Diagram) -> Drawing:
    """The picture, as wide as a column of text."""
    return _Painter(diagram).drawing


@dataclass
class _Painter:
    """Draws section under section, and remembers where each matrix can be picked up."""

    diagram: Diagram
    at: float = 8.0
    outlets: dict[int, tuple[float, float]] = field(default_factory=dict)  # row → where its arrow starts

    def __post_init__(self) -> None:
        self.graph = Arrangement(self.diagram)
        self.lanes = self.graph.lanes
        self.width = self.lanes * LANE + 2 * RAIL
        self.drawing = Drawing("Attention, step by step", picture_words(self.diagram), self.width)
        self.rails = {row: i for i, row in enumerate(self.graph.shared_sources())}
        self.waiting: list[int] = []  # outputs of heads on their way down the right side
        self._sources()
        self._section(self.graph.outside(before=True), "")
        self._cuts()
        self._heads()
        self._section(self.graph.outside(before=False), "")
        self._outputs()
        self.drawing.height = self.at + 6

    def x(self, lane: float) -> float:
        return RAIL + (lane + 0.5) * LANE

    # What comes in.

    def _sources(self) -> None:
        """Inputs that several boxes read stand at the top."""
        rows = list(self.rails)
        if not rows:
            return
        for i, row in enumerate(rows):
            lane = (self.lanes / len(rows)) * (i + 0.5) - 0.5
            self._draw(Frame(row, None, lane, lane, 0, look="source"), self.at)
        self.at += BOX

    # Heads.

    def _heads(self) -> None:
        heads = self.graph.heads
        drawn = heads if len(heads) <= MANY else heads[:2]
        for i, head in enumerate(drawn):
            rest = len(heads) > MANY and i == 1
            section = self.graph.section(head, whole=i == 0, drawn=self.outlets)
            self._section(section, self._head_title(head, rest), stacked=rest or isinstance(head, str))

    def _head_title(self, head: Head, rest: bool) -> str:
        name = self.graph.head_name(head)
        if isinstance(head, str):
            return f"head {name}, one of {size_text(self.graph.head_count)}"
        if not rest:
            return f"block {name}" if isinstance(head, Block) else f"head {name}"
        alike = f"heads {name} to {self.graph.head_name(self.graph.heads[-1])}, each like this"
        shared = self.graph.sharing
        return alike if shared == 1 else f"{alike}; {shared} heads share each K and V"

    def _cuts(self) -> None:
        """Wide matrices as the blocks that they are cut into."""
        cuts = [(row, cut) for row in self.outlets if (cut := self.graph.cut(row))]
        for row, cut in cuts:
            x, y = self.outlets[row]
            lane = (x - RAIL) / LANE - 0.5
            if not self.graph.given(row):
                self.drawing.line((x, y), (x, y + ARROW), head=True)
                self._named(row, x, y)
                y += ARROW
            self._draw(Frame(row, cut, lane, lane, 0), y)
        if cuts:
            self.at = max(y for _, y in self.outlets.values())

    def _section(self, section: list[Frame], title: str, stacked: bool = False) -> None:
        if not section:
            return
        top = self.at + (10 + 2 * STACKED if stacked else 10)
        if title:
            self.at = top + CARD - 8
        start = self._bring(section)
        depth = max(box.layer for box in section)
        for box in section:
            self._draw(box, start + box.layer * (BOX + ARROW))
        for box in section:
            self._arrows(box, section, start)
        bottom = start + depth * (BOX + ARROW) + BOX
        self._loose_ends(section, start)
        if title:
            joined = self.graph.read_by_another(section[-1].row)
            bottom += 20 if joined else ARROW
            self._card(title, top, bottom, stacked)
            if joined:
                self._leave(section, bottom)
            self.at = bottom + 8
        else:
            self.at = bottom

    def _card(self, title: str, top: float, bottom: float, stacked: bool) -> None:
        left, wide = RAIL - 6, self.lanes * LANE + 12
        for i in (2, 1) if stacked else ():
            x, y = left + i * STACKED, top - i * STACKED
            self.drawing.line((x, y), (x + wide - 4, y), (x + wide - 4, y + 26))
        self.drawing.box(left, top, wide, bottom - top, look="card")
        self.drawing.label(Words(title), left + 8, top + 14, anchor="start", size=SMALL)

    # Arrows.

    def _bring(self, section: list[Frame]) -> float:
        """Lines from shared inputs to the boxes that read them; returns where the boxes start."""
        entering = [(row, box) for box in section if not box.joins for row in box.outside if row in self.outlets]
        if not entering:
            starts = any(box.look == "source" for box in section if box.layer == 0)  # with inputs of its own
            return self.at + ARROW if self.at > 20 and not starts else self.at
        sources = list(dict.fromkeys(row for row, _ in entering))
        start = self.at + ARROW + 7 * (len(sources) - 1)
        for i, row in enumerate(sources):
            level = self.at + 12 + 7 * i
            lanes = sorted(box.entry_lane(row) for r, box in entering if r == row)
            self._from_rail(row, level, lanes)
            for lane in lanes:
                self.drawing.line((self.x(lane), level), (self.x(lane), start), head=True)
        return start

    def _from_rail(self, row: int, level: float, lanes: list[float]) -> None:
        """Straight down where nothing stands between, else down the left side."""
        x, y = self.outlets[row]
        ends = [self.x(lane) for lane in lanes]
        if level - y < ARROW + BOX + 20:
            self.drawing.line((x, y), (x, level))
            self.drawing.line((min(*ends, x), level), (max(*ends, x), level))
        else:
            rail = 8.0 + 6 * self.rails.get(row, list(self.outlets).index(row) % 4)
            turn = y + 6
            self.drawing.line((x, y), (x, turn), (rail, turn), (rail, level), (max(ends), level))
        if row in self.rails:
            shape = shape_maths(self.graph.rows[row].shape)
            for end in ends:
                self.drawing.label(shape, end + 5, level + 13, anchor="start", size=SMALL)

    def _arrows(self, box: Frame, section: list[Frame], start: float) -> None:
        """From the boxes above into this one; a label stands where each arrow leaves."""
        bottom_of = {b.row: start + b.layer * (BOX + ARROW) + BOX for b in section}
        for source in box.inputs:
            if source in bottom_of and source != box.row:
                x = self.outlets[source][0]
                into = min(max(x, self.x(box.first) - LANE / 2 + 12), self.x(box.last) + LANE / 2 - 12)
                top = start + box.layer * (BOX + ARROW)
                elbow = [] if into == x else [(x, top - 12), (into, top - 12)]
                self.drawing.line((x, bottom_of[source]), *elbow, (into, top), head=True)
                if not self.graph.given(source):
                    self._named(source, x, bottom_of[source])
            elif source in self.waiting:
                self._arrive(source, box, start)

    def _named(self, row: int, x: float, y: float) -> None:
        equation = self.graph.rows[row]
        self.drawing.label(equation.name.maths, x + 5, y + 13, anchor="start", size=SIZE - 1)
        self.drawing.label(shape_maths(equation.shape), x + 5, y + 26, anchor="start", size=SMALL)

    def _leave(self, section: list[Frame], bottom: float) -> None:
        """A head's output turns to the right side, on its way to the joining."""
        box = section[-1]
        x, y = self.outlets[box.row]
        rail = self.width - 8 - 7 * len(self.waiting)
        self.drawing.label(self._with_shape(box.row), x + 6, y + 15, anchor="start", size=SIZE - 1)
        self.drawing.line((x, y), (x, bottom + 8), (rail, bottom + 8))
        self.outlets[box.row] = (rail, bottom + 8)
        self.waiting.append(box.row)

    def _with_shape(self, row: int) -> Maths:
        equation = self.graph.rows[row]
        return Row((equation.name.maths, Words("  "), shape_maths(equation.shape)))

    def _loose_ends(self, section: list[Frame], start: float) -> None:
        """What nothing else reads leaves on an arrow of its own; the last matrix does so at the very end."""
        last = len(self.graph.rows) - 1
        for box in section:
            if box.row != last and box.look == "plain" and not self.graph.read_by_another(box.row):
                x, y = self.x(box.lane), start + box.layer * (BOX + ARROW) + BOX
                self.drawing.line((x, y), (x, y + ARROW - 6), head=True)
                self._named(box.row, x, y)

    def _arrive(self, row: int, box: Frame, start: float) -> None:
        x, y = self.outlets[row]
        into = self.x(box.last) + LANE / 2 - 12 - 14 * self.waiting.index(row)
        turn = start - 10
        self.drawing.line((x, y), (x, turn), (into, turn), (into, start), head=True)

    # Boxes.

    def _draw(self, box: Frame, y: float) -> None:
        left, right = self.x(box.first) - LANE / 2 + 6, self.x(box.last) + LANE / 2 - 6
        label = box.label or self._with_shape(box.row)
        size = min(SIZE, SIZE * (right - left - 6) / max(label_width(label), 1))
        self.drawing.box(left, y, right - left, BOX, look=box.look)
        self.drawing.label(label, (left + right) / 2, y + BOX - 7.5, size=size)
        self.outlets[box.row] = (self.x(box.lane), y + BOX)

    def _outputs(self) -> None:
        """The last matrix leaves at the bottom."""
        last = len(self.graph.rows) - 1
        if last not in self.outlets:
            return
        x, y = self.outlets[last]
        self.drawing.line((x, y), (x, y + ARROW - 6), head=True)
        self._named(last, x, y)
        self.at = max(self.at, y + ARROW)
