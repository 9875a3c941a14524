"""Formulas in a sheet's own sentences (W_Q,1, √2/2, e^(−3)), the only text that is read as mathematics.

    line     = ratios {sign ratios}           signs: = ≈ + − × | , …
    ratios   = product ["/" factor] …         all that stands before "/" is above the bar
    product  = factor {["·"] factor}
    factor   = atom {raised}                  ² ᵀ ⁻¹ ′, ^(…), ^x
    atom     = number | name | √atom | ( line )

Nothing is refused: what the grammar does not know stands as the sign it is.
"""

import re
from collections.abc import Collection, Iterator

from headwork.maths import TRANSPOSED, Above, Maths, Number, Prose, Ratio, RootOf, Row, Sign, Words, row
from headwork.notation import Name

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟᵀ", "0123456789−/T", strict=True))
_UP = "".join(_RAISED)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)"
    rf"|(?P<name>[^\W\d_{_UP}]+′?(?:_[^\W_{_UP}]+(?:,[^\W_{_UP}]+)*)?)"
    rf"|(?P<raised>[{_UP}]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]"}
Token = tuple[str, str]


def read_maths(text: str) -> Maths:
    """The tree of a formula written in text.

    >>> read_maths("√2")
    RootOf(of=Number(text='2'))
    """
    return _Reader(text.replace("-", "−")).line()


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = [(m.lastgroup or "", m.group()) for m in _TOKEN.finditer(text.strip())]
        self.at = 0

    def line(self, until: str = "") -> Maths:
        items: list[Maths] = []
        while (token := self.peek()) is not None and token[1] != until:
            if token[0] == "space":
                self.take()
                items += [Words(" ")] if self.between_words() else []
            else:
                items.append(self.ratios(until))
        return row(*items)

    def ratios(self, until: str) -> Maths:
        """One product, with everything before each "/" above a bar; or one sign."""
        over = self.product(until)
        while over and self.upcoming("/"):
            self.skip_space()
            self.take()
            self.skip_space()
            under = self.factor(until)
            if under is None:
                return row(*over, Sign("/"))
            over = [Ratio(_bare(row(*over)), _bare(under))]
        return row(*over) if over else Sign(self.take()[1])

    def product(self, until: str) -> list[Maths]:
        factors: list[Maths] = []
        while (factor := self.factor(until)) is not None:
            factors.append(factor)
            if self.upcoming("·"):
                self.skip_space()
                self.take()
                self.skip_space()
                factors.append(Sign("·"))
        return factors

    def factor(self, until: str) -> Maths | None:
        atom = self.atom(until)
        while atom is not None and (token := self.peek()) is not None:
            if token[0] == "raised":
                self.take()
                atom = Above(atom, _raised(token[1]))
            elif token[1] == "^" and self.at + 1 < len(self.tokens):
                self.take()
                script = self.factor(until) or self.line(until)
                atom = Above(atom, _bare(script))
            else:
                break
        return atom

    def atom(self, until: str) -> Maths | None:
        token = self.peek()
        if token is None or token[1] == until:
            return None
        kind, text = token
        if kind == "number":
            self.take()
            return Number(text)
        if kind == "name":
            self.take()
            return Name.read(text).maths
        if text == "√" and self.at + 1 < len(self.tokens):
            self.take()
            of = self.atom(until)
            return Sign("√") if of is None else RootOf(_bare(of))
        if text in _CLOSING and self.closed():
            self.take()
            inside = self.line(_CLOSING[text])
            self.take()
            return Row((Sign(text), inside, Sign(_CLOSING[text])))
        if text == "∞":
            self.take()
            return Number(text)
        return None

    def closed(self) -> bool:
        """Whether the bracket that opens here is closed again."""
        waiting: list[str] = []
        for _, text in self.tokens[self.at :]:
            if text in _CLOSING:
                waiting.append(_CLOSING[text])
            elif text in _CLOSING.values() and text != waiting.pop():
                return False
            if not waiting:
                return True
        return False

    def between_words(self) -> bool:
        """A space counts only where no sign stands beside it."""
        before = self.tokens[self.at - 2][1] if self.at >= 2 else "="
        after = self.tokens[self.at][1] if self.at < len(self.tokens) else "="
        return _is_word(before) and _is_word(after)

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def upcoming(self, sign: str) -> bool:
        """Whether this sign comes next, spaces aside."""
        at = self.at
        while at < len(self.tokens) and self.tokens[at][0] == "space":
            at += 1
        return at < len(self.tokens) and self.tokens[at][1] == sign

    def skip_space(self) -> None:
        while (token := self.peek()) is not None and token[0] == "space":
            self.take()

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]


def _is_word(text: str) -> bool:
    return text[0].isalnum() or text[-1] in ")]"


def _raised(text: str) -> Maths:
    plain = "".join(_RAISED[c] for c in text)
    if plain == "T":
        return TRANSPOSED
    return Row((Sign("−"), Number(plain[1:]))) if plain.startswith("−") else Number(plain)


def _bare(maths: Maths) -> Maths:
    """Without the brackets that a bar, a root or a raised line makes needless."""
    if isinstance(maths, Row) and len(maths.items) == 3 and maths.items[0] == Sign("("):
        return maths.items[1]
    return maths


# Formulas in sentences: words that hold what only mathematics has.
_MARKS = re.compile(r"[·√ᵀ×⊕²³⁴⁻∞Σ≥≤Α-ω]|\^|(?<!\w)[^\W\d_]+_[^\W_]{1,5}(?!\w)")
_WORD = re.compile(r"(\s+)|(\S+)")
_LONGEST = 80  # characters of a word that may be a formula
_EDGE = re.compile(r"^(?P<open>[\"“(]*?)(?P<body>.*?)(?P<close>[.,;:!?\"”]*)$", re.DOTALL)


_ALONE = re.compile(rf"(?<![^\W\d_])[^\W\d_{_UP}](?![^\W\d_{_UP}])")  # a letter with no other beside it
_EQUATED = re.compile(r"(?<!\S)([^\W\d_])(?=\s+[=>])")  # d = 2
_ARTICLES = ("a", "A", "I")  # words before they are names


def read_prose(text: str, names: Collection[str] = ()) -> Prose:
    """A sentence, with the formulas in it read; `names` are letters that stand for something on its page.

    >>> read_prose("Find Q_1, please.")
    ('Find ', Below(base=Letter(text='Q'), script=Number(text='1')), ', please.')
    """
    known = {*names, *_EQUATED.findall(text), *_letters(text)} - {*_ARTICLES}
    pieces: list[str | Maths] = []
    for piece in _pieces(text, known):
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


def _pieces(text: str, names: Collection[str]) -> Iterator[str | Maths]:
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
