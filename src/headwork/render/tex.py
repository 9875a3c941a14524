"""Formulas in TeX, as somebody who writes it puts them into a sentence, read as trees.

What is read is what a question about attention needs; a command that is not known stands as its own name. As in TeX
letters side by side are a product, but three small ones or more are the word that their writer meant.
"""

import re
import unicodedata

from headwork import maths as m
from headwork.render.latex_maths import ACCENTS, ALPHABETS, GREEK, SIGNS

_TOKEN = re.compile(r"\\(?:text(?:bf|it|rm)?|mbox) ?\{[^{}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[a-z]{3,}|\S")
_WRAPPERS = ("mathrm", "mathbf", "operatorname", "mathit", "mathsf", "mathtt", "boldsymbol", "bm")
_FRACTIONS = ("frac", "dfrac", "tfrac", "cfrac")
_BARS = ("bar", "overline")
_SIZES = tuple(f"{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m"))
_NOTHING = ("left", "right", *_SIZES, "displaystyle", "textstyle", "limits", ",", ";", "!", ":", " ", "\\")
_ROOM = ("quad", "qquad")
SCRIPTS = 4  # of one letter; TeX itself takes two
DEEPEST = 40  # of what stands within one another; from there on it stands as it was typed
_TRANSPOSED = (m.Letter("T"), m.Letter("top"), m.Letter("intercal"))


def read_tex(tex: str) -> m.Maths:
    """The tree of a formula in TeX.

    >>> read_tex(r"\\sqrt{2}")
    RootOf(of=Number(text='2'))
    """
    return _Tex(tex).line()


class _Tex:
    """Recursive descent over the tokens of one formula; what stands in braces is read as one."""

    def __init__(self, tex: str) -> None:
        self.tokens = _TOKEN.findall(tex)
        self.depth = 0

    def line(self, *until: str) -> m.Maths:
        items: list[m.Maths] = []
        scripts = 0  # of the last item
        while self.tokens and self.tokens[0] not in until:
            token = self.tokens.pop(0)
            if token in ("^", "_") and items and self.tokens and scripts < SCRIPTS:
                items.append(self.script(token, items.pop()))
                scripts += 1
            else:
                items += self.one(token)
                scripts = 0
        return m.row(*items)

    def script(self, token: str, base: m.Maths) -> m.Maths:
        """A subscript, or what is raised: QKᵀ, x²."""
        script = self.argument()
        if token == "_":
            return m.Below(base, script)
        return m.Above(base, m.TRANSPOSED if script in _TRANSPOSED else script)

    def one(self, token: str) -> list[m.Maths]:
        """What a token stands for, with its arguments; nothing where it says how wide a space is."""
        if self.depth == DEEPEST:
            rest, self.tokens = "".join((token, *self.tokens)), []
            return [m.Words(rest)]
        self.depth += 1
        found = self.meant(token)
        self.depth -= 1
        return found

    def meant(self, token: str) -> list[m.Maths]:
        if token.endswith("}") and len(token) > 2:  # \text{…}
            words = token.partition("{")[2][:-1]
            return [m.Letter(words) if words.isalnum() else m.Words(words)]
        if token == "{":
            return [self.group()]
        if token[0] == "\\" and len(token) > 1:
            return self.command(token[1:])
        if token[0].isdigit():
            return [m.Number(token)]
        return [m.Letter(token) if token.isalpha() else m.Sign(SIGNS.get(token, token))]

    def command(self, name: str) -> list[m.Maths]:
        if name in _NOTHING:
            return []
        if name in _ROOM:
            return [m.Words(" ")]
        if name in _FRACTIONS:
            return [m.Ratio(self.argument(), self.argument())]
        if name == "sqrt":
            return [m.RootOf(self.argument())]
        if name in _BARS:
            return [m.Barred(self.argument())]
        if name == "begin":
            return [self.matrix()]
        if name in _WRAPPERS:
            return [_word(self.argument())]
        if (styled := name.removeprefix("wide")) in ALPHABETS or styled in ACCENTS:
            return [_styled(styled, self.argument())]
        if name in SIGNS:
            return [m.Sign(SIGNS[name])]
        return [m.Sign("‖") if name == "|" else m.Letter(GREEK.get(name, name))]

    def group(self) -> m.Maths:
        inside = self.line("}")
        del self.tokens[:1]
        return inside

    def argument(self) -> m.Maths:
        """What a command or a script takes: a group, or one thing, of digits the first."""
        if self.tokens[:1] == ["*"]:  # \operatorname*
            del self.tokens[0]
        if not self.tokens:
            return m.row()
        token = self.tokens.pop(0)
        if token[0].isdigit() and len(token) > 1:
            token, rest = token[0], token[1:]
            self.tokens.insert(0, rest)
        return m.row(*self.one(token))

    def matrix(self) -> m.Maths:
        """What stands between begin and end of pmatrix, bmatrix …; an array says first how its columns stand."""
        if self.argument() == m.Letter("array"):
            self.argument()
        rows: list[list[m.Maths]] = [[]]
        while self.tokens:
            rows[-1].append(self.line("&", "\\\\", "\\end"))
            ended = self.tokens.pop(0) if self.tokens else ""
            if ended == "\\\\":
                rows.append([])
            elif ended == "\\end":
                self.argument()
                break
        full = [row for row in rows if any(cell != m.row() for cell in row)]
        width = max(map(len, full), default=0)
        return m.Grid(tuple((*row, *[m.row()] * (width - len(row))) for row in full)) if full else m.row()


def _word(maths: m.Maths) -> m.Maths:
    """Letters that belong together: an upright word."""
    items = maths.items if isinstance(maths, m.Row) else (maths,)
    texts = [item.text for item in items if isinstance(item, m.Letter | m.Number)]
    return m.Letter("".join(texts)) if len(texts) == len(items) else maths


def _styled(name: str, maths: m.Maths) -> m.Maths:
    """ℝ, ℒ, ŷ: a letter of another alphabet or under an accent; what is none stays as it is."""
    if not isinstance(maths, m.Letter) or len(maths.text) > 1:
        return maths
    if name in ALPHABETS:
        return m.Letter(ALPHABETS[name].get(maths.text, maths.text))
    return m.Letter(unicodedata.normalize("NFC", maths.text + ACCENTS[name]))
