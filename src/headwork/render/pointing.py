"""What a page that can be pointed at knows of every entry: where it came from, and its arithmetic."""

from collections.abc import Iterator

from headwork.notation import Notation
from headwork.ops import Add, Softmax
from headwork.readings.exact import Hidden
from headwork.render.arithmetic import arithmetic_display
from headwork.render.blocks import How
from headwork.render.cells import Style
from headwork.render.equations import operand_key
from headwork.working import Equation, arithmetic

MOST_PLACES = 20_000  # numbers that go into one matrix; beyond them the page would weigh megabytes


def pointed_at(equation: Equation, key: str, notation: Notation, style: Style, *, causal: bool) -> Iterator[How]:
    """Every entry of a worked equation; nothing for one that is given, or too large to be followed by hand."""
    if not equation.worked or equation.value is None:
        return
    entries = [(i, j) for i, row in enumerate(equation.value) for j in range(len(row))]
    if len(entries) * len(equation.origin(0, 0).places) > MOST_PLACES:
        return
    for place in entries:
        yield entry_how(equation, place, key, notation, style, causal)


def entry_how(
    equation: Equation, place: tuple[int, int], key: str, notation: Notation, style: Style, causal: bool
) -> How:
    """One entry, where the page has it."""
    origin = equation.origin(*place)
    line = arithmetic(origin, notation)
    shown = (equation.shown_place(source) for source in origin.places)
    sources = tuple((operand_key(key, number), row, column) for number, row, column in shown)
    own = line.result if isinstance(line.step.op, Add) else line.terms[0][0]
    hidden = isinstance(line.step.op, Add | Softmax) and isinstance(own, Hidden)
    reason = _reason(origin.row, origin.column, notation.first_index, causal) if hidden else ""
    return How((key, *place), sources, arithmetic_display(line, style).lines, reason)


def _reason(row: int, column: int, first: int, causal: bool) -> str:
    """Why an entry is hidden."""
    hidden = f"Hidden: the mask keeps token {row + first} from reading key {column + first}"
    return f"{hidden}, which comes later." if causal else f"{hidden}."
