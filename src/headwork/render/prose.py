"""All text that is read as mathematics: formulas in a sheet's own sentences (W_Q,1, √2/2), and TeX between dollars.

    line     = ratios {sign ratios}           signs: = ≈ + − × | , …
    ratios   = product ["/" factor] …         all that stands before "/" is above the bar
    product  = factor {["·"] factor}
    factor   = atom {raised}                  ² ᵀ ⁻¹ ′, ^(…), ^x
    atom     = number | name | √atom | ( line )

Nothing is refused: what the grammar does not know stands as the sign it is.
"""

import re
from collections.abc import Collection, Iterator
from itertools import chain

from headwork import maths as m
from headwork.notation import Name
from headwork.render.tex import read_tex

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟᵀ", "0123456789−/T", strict=True))
_UP = "".join(_RAISED)
_TOKEN = re.compile(
    r"(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)"
    rf"|(?P<name>[^\W\d_{_UP}]+′?(?:_[^\W_{_UP}]+(?:,[^\W_{_UP}]+)*)?)"
    rf"|(?P<raised>[{_UP}]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]"}
Token = tuple[str, str]


def read_maths(text: str) -> m.Maths:
    """The tree of a formula written in text. It is a word of a sentence: spaces mean nothing in it.

    >>> read_maths("√2")
    RootOf(of=Number(text='2'))
    """
    return _Reader("".join(text.split()).replace("-", "−")).line()


def _tokens(text: str) -> Iterator[Token]:
    """Within brackets a comma stands between numbers: scores_1[1,100] is a row and a column."""
    brackets = 0
    for token in _TOKEN.finditer(text):
        kind, found = token.lastgroup or "", token.group()
        brackets += (found == "[") - (found == "]")
        first, *others = found.split(",") if kind == "number" and brackets > 0 else [found]
        yield kind, first
        for number in others:
            yield from (("sign", ","), (kind, number))


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = list(_tokens(text))

    def line(self, until: str = "") -> m.Maths:
        items: list[m.Maths] = []
        while self.tokens and self.tokens[0][1] != until:
            items.append(self.ratios(until))
        return m.row(*items)

    def ratios(self, until: str) -> m.Maths:
        """One product, with everything before each "/" above a bar; or one sign."""
        over = self.product(until)
        while over and self.take("/"):
            under = self.factor(until)
            if under is None:
                return m.row(*over, m.Sign("/"))
            over = [m.Ratio(_bare(m.row(*over)), _bare(under))]
        return m.row(*over) if over else m.Sign(self.tokens.pop(0)[1])

    def product(self, until: str) -> list[m.Maths]:
        factors: list[m.Maths] = []
        while (factor := self.factor(until)) is not None:
            factors += [factor, m.Sign("·")] if self.take("·") else [factor]
        return factors

    def factor(self, until: str) -> m.Maths | None:
        atom = self.atom(until)
        while atom is not None and self.tokens:
            kind, text = self.tokens[0]
            if kind == "raised":
                self.take(text)
                atom = m.Above(atom, _raised(text))
            elif len(self.tokens) > 1 and self.take("^"):
                atom = m.Above(atom, _bare(self.factor(until) or self.line(until)))
            else:
                break
        return atom

    def atom(self, until: str) -> m.Maths | None:
        kind, text = self.tokens[0] if self.tokens else ("", until)
        if text == until:
            return None
        if kind == "name":
            self.take(text)
            return Name.read(text).maths
        if kind == "number" or text == "∞":
            self.take(text)
            return m.Number(text)
        if len(self.tokens) > 1 and self.take("√"):
            of = self.atom(until)
            return m.Sign("√") if of is None else m.RootOf(_bare(of))
        if text in _CLOSING and self.closed():
            self.take(text)
            inside = self.line(_CLOSING[text])
            self.take(_CLOSING[text])
            return m.Row((m.Sign(text), inside, m.Sign(_CLOSING[text])))
        return None

    def closed(self) -> bool:
        """Whether the bracket that opens here is closed again."""
        waiting: list[str] = []
        for _, text in self.tokens:
            if text in _CLOSING:
                waiting.append(_CLOSING[text])
            elif text in _CLOSING.values() and text != waiting.pop():
                return False
            if not waiting:
                return True
        return False

    def take(self, text: str) -> bool:
        taken = bool(self.tokens) and self.tokens[0][1] == text
        if taken:
            self.tokens.pop(0)
        return taken


def _raised(text: str) -> m.Maths:
    plain = "".join(_RAISED[c] for c in text)
    if plain == "T":
        return m.TRANSPOSED
    return m.Row((m.Sign("−"), m.Number(plain[1:]))) if plain.startswith("−") else m.Number(plain)


def _bare(maths: m.Maths) -> m.Maths:
    """Without the brackets that a bar, a root or a raised line makes needless."""
    if isinstance(maths, m.Row) and len(maths.items) == 3 and maths.items[0] == m.Sign("("):
        return maths.items[1]
    return maths


# Formulas in sentences: words that hold what only mathematics has.
# A name with a subscript is one where one of the two is short: d_model and scores_1 are, file_name is not.
_MARKS = re.compile(r"[·√ᵀ×⊕²³⁴⁻∞Σ≥≤Α-ω]|\^|(?<!\w)(?:[^\W\d_]{1,2}_[^\W_]{1,5}|[^\W\d_]+_(?:[^\W_]{1,2}|\d+))(?!\w)")
_WORD = re.compile(r"(\s+)|(\S+)")
_LONGEST = 80  # characters of a word that may be a formula
_EDGE = re.compile(r"^(?P<open>[\"“(]*?)(?P<body>.*?)(?P<close>[.,;:!?\"”]*)$", re.DOTALL)


_ALONE = re.compile(rf"(?<![^\W\d_])[^\W\d_{_UP}](?![^\W\d_{_UP}])")  # a letter with no other beside it
_EQUATED = re.compile(r"(?<!\S)([^\W\d_])(?=\s+[=>])")  # d = 2
_ARTICLES = ("a", "A", "I")  # words before they are names


def read_prose(text: str, names: Collection[str] = ()) -> m.Prose:
    """A sentence, with the formulas in it read; `names` are letters that stand for something on its page.

    >>> read_prose("Find Q_1, please.")
    ('Find ', Below(base=Letter(text='Q'), script=Number(text='1')), ', please.')
    """
    known = {*names, *_EQUATED.findall(text), *_letters(text)} - {*_ARTICLES}
    pieces: list[str | m.Maths] = []
    read = (_pieces(span, known) if isinstance(span, str) else [span] for span in spans(text))
    for piece in chain.from_iterable(read):
        if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return tuple(pieces)


def _letters(text: str) -> Iterator[str]:
    """The letters of the formulas in a text, which mean the same where they stand alone."""
    for word in text.split():
        if _is_formula(word, ()):
            yield from _ALONE.findall(word)


def _pieces(text: str, names: Collection[str]) -> Iterator[str | m.Maths]:
    for space, word in _WORD.findall(text):
        edge = _EDGE.match(word)
        if space or edge is None or not _is_formula(edge["body"], names):
            yield space or word
        else:
            yield from filter(None, [edge["open"]])
            yield read_maths(edge["body"])
            yield from filter(None, [edge["close"]])


def _is_formula(word: str, names: Collection[str]) -> bool:
    return len(word) <= _LONGEST and (word in names or _MARKS.search(word) is not None)


# TeX between dollar signs, as people who write it put it into a sentence: $\frac{QK^T}{\sqrt{d_k}}$.

_SPAN = re.compile(r"(?<!\\)(\$\$?)([^$\n]+?)(?<!\\)\1")


def spans(text: str) -> Iterator[str | m.Maths]:
    """The sentence in pieces, words and formulas. "\\$" is a dollar, and so is one alone."""
    start = 0
    for match in _SPAN.finditer(text):
        yield text[start : match.start()].replace("\\$", "$")
        yield read_tex(match[2])
        start = match.end()
    yield text[start:].replace("\\$", "$")
