"""The arithmetic of one entry: terms with numbers in, the sum, the result; and where on the page they come from."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from headwork import maths as m
from headwork import ops
from headwork.graph import Step
from headwork.notation import Notation
from headwork.numbers.certain import AnyNumber
from headwork.numbers.functions import power_of_e, total
from headwork.readings.exact import Entry, Hidden
from headwork.render.blocks import Aligned, Display, How
from headwork.render.cells import Style, cell, figures
from headwork.render.equations import operand_key
from headwork.working import Arithmetic, Equation, arithmetic

FIGURES = 4  # of exponentials, which have no end
MOST_PLACES = 20_000  # numbers that go into one matrix; beyond them the page would weigh megabytes
Rule = Callable[[Arithmetic, Style], Sequence[Aligned]]


def arithmetic_display(line: Arithmetic, style: Style) -> Display:
    """z_3,1 = 1·0 + (−2)·3 …, line by line."""
    result = _equals(line.result, style)
    steps = list(ARITHMETIC[type(line.step.op)](line, style)) if line.terms else []
    if not steps or steps[-1].pieces != result.pieces:
        steps.append(result if line.sources else Aligned(None, result.pieces, ("as given",)))
    first, *more = steps
    return Display((Aligned(line.name.maths, first.pieces, first.remark), *more))


def _line(relation: str, maths: m.Maths, remark: str = "") -> Aligned:
    return Aligned(None, (m.related(relation, maths),), (remark,) if remark else ())


def _relation(exact: bool) -> str:
    return "=" if exact else "≈"


def _equals(entry: Entry, style: Style) -> Aligned:
    shown, exact = cell(entry, style)
    return _line(_relation(exact), shown)


def _number(entry: Entry, style: Style, source: Step) -> m.Maths:
    """A number as part of a product or a sum, in the colour of the matrix that it comes from."""
    return m.Named(m.factor(cell(entry, style)[0]), source.role)


def _numbers(terms: Sequence[Entry], line: Arithmetic, style: Style) -> Iterator[m.Maths]:
    """One number out of each of the step's matrices."""
    return (_number(x, style, source) for x, source in zip(terms, line.step.inputs, strict=False))


def _matmul(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    exact = all(cell(x, style)[1] for pair in line.terms for x in pair)
    products = m.between((m.between(_numbers(pair, line, style), "·") for pair in line.terms), "+")
    lines = [_line(_relation(exact), products)]
    if exact and len(line.terms) > 1:
        terms = [a * b for a, b in line.terms if not isinstance(a, Hidden) and not isinstance(b, Hidden)]
        lines.append(_line("=", m.signed_sum(cell(term, style)[0] for term in terms)))
    return lines


def _divide(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    ((dividend, by),) = line.terms
    over, under = cell(dividend, style)[0], cell(by, Style(exact=True))[0]
    return [_line(_told((dividend,), style), m.Ratio(over, under, undone=True))]


def _add(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    (terms,) = line.terms
    if len(terms) == 1:  # the number would stand there twice
        return _moved(line, style)
    lines = [_line(_told(terms, style), m.between(_numbers(terms, line, style), "+"))]
    if any(isinstance(b, Hidden) for b in terms[1:]):
        lines.append(_line("=", m.number("−∞"), "hidden by the mask"))
    return lines


def _told(terms: Sequence[Entry], style: Style) -> str:
    return _relation(all(cell(x, style)[1] for x in terms))


def _between(sign: str) -> Rule:
    """a ∘ b, of two entries that meet."""

    def rule(line: Arithmetic, style: Style) -> Sequence[Aligned]:
        ((a, b),) = line.terms
        return [_line(_told((a, b), style), m.between(_numbers((a, b), line, style), sign))]

    return rule


def _of_numbers(written: Callable[..., m.Maths]) -> Rule:
    """One line, with all the numbers that go in as `written` takes them."""

    def rule(line: Arithmetic, style: Style) -> Sequence[Aligned]:
        terms = [x for term in line.terms for x in term]
        return [_line(_told(terms, style), written(*(cell(x, style)[0] for x in terms)))]

    return rule


def _mean(*terms: m.Maths) -> m.Maths:
    return m.Ratio(m.signed_sum(terms), m.Number(str(len(terms))), undone=True)


def _largest(*terms: m.Maths) -> m.Maths:
    return m.applied("max", m.between(terms, ","))


def _exp(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    ((s,),) = line.terms
    return [_line(_told((s,), style), _power(s, style), "hidden by the mask" if isinstance(s, Hidden) else "")]


def _softmax(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    (own,), summed = line.terms
    if isinstance(own, Hidden):
        nothing = m.Ratio(m.power_of_e(m.number("−∞")), m.Sign("…"), undone=True)
        return [_line("=", m.Row((nothing, m.Sign("="), m.Number("0"))), "hidden by the mask")]
    seen = [s for s in summed if not isinstance(s, Hidden)]
    exact = all(cell(s, style)[1] for s in seen)
    near = _relation(all(s == 0 for s in seen))  # e⁰ is 1, and all other powers have no end
    above = _exponential([own])
    return [
        _line(
            _relation(exact), m.Ratio(_power(own, style), m.between((_power(s, style) for s in seen), "+"), undone=True)
        ),
        _line(near, m.Ratio(above, m.between((_exponential([s]) for s in seen), "+"), undone=True)),
        _line(near, m.Ratio(above, _exponential(seen), undone=True)),
    ]


def _exponential(exponents: list[AnyNumber]) -> m.Maths:
    """The sum of e to these, in a few figures."""
    return figures(total(map(power_of_e, exponents)), FIGURES)


def _power(exponent: Entry, style: Style) -> m.Maths:
    return m.power_of_e(cell(exponent, style)[0])


def _softcap(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    ((s, by),) = line.terms
    cap = cell(by, Style(exact=True))[0]
    tanh = m.applied("tanh", m.Ratio(cell(s, style)[0], cap, undone=True))
    return [_line(_told((s,), style), m.between((m.factor(cap), tanh), "·"))]


def _moved(line: Arithmetic, style: Style) -> Sequence[Aligned]:
    return [_line("=", m.Row((m.Words("an entry of "), line.sources[0].maths)))]


ARITHMETIC: Mapping[type[ops.Op], Rule] = {
    ops.Given: lambda line, style: [],
    ops.MatMul: _matmul,
    ops.Transpose: _moved,
    ops.Divide: _divide,
    ops.Add: _add,
    ops.Softmax: _softmax,
    ops.Split: _moved,
    ops.Join: _moved,
    ops.Constant: lambda line, style: [],
    ops.Multiply: _between("·"),
    ops.Subtract: _between("−"),
    ops.DivideBy: _of_numbers(lambda a, b: m.Ratio(a, b, undone=True)),
    ops.Exp: _exp,
    ops.Sums: _of_numbers(lambda *terms: m.signed_sum(terms)),
    ops.Maxima: _of_numbers(_largest),
    ops.Rows: _moved,
    ops.Stack: _moved,
    ops.Rotate: _matmul,
    ops.Softcap: _softcap,
    ops.Means: _of_numbers(_mean),
    ops.SquareRoot: _of_numbers(m.RootOf),
    ops.Relu: _of_numbers(lambda x: _largest(m.Number("0"), x)),
}


# What a page that can be pointed at knows of every entry: where it came from, and its arithmetic.


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
    own = line.result if isinstance(line.step.op, ops.Add) else line.terms[0][0]
    hidden = isinstance(line.step.op, ops.Add | ops.Softmax) and isinstance(own, Hidden)
    reason = _reason(origin.row, origin.column, notation.first_index, causal) if hidden else ""
    return How((key, *place), sources, arithmetic_display(line, style).lines, reason)


def _reason(row: int, column: int, first: int, causal: bool) -> str:
    """Why an entry is hidden."""
    hidden = f"Hidden: the mask keeps token {row + first} from reading key {column + first}"
    return f"{hidden}, which comes later." if causal else f"{hidden}."
