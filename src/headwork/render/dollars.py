"""Mathematics between dollar signs, as people who write TeX put it into a sentence: $\\frac{QK^T}{\\sqrt{d_k}}$.

What is read is the little of TeX that a question about attention needs; a command that is not known stands as its own
name. As in TeX letters side by side are a product, but three small ones or more are the word that their writer meant.
"""

import re
from collections.abc import Iterator

from headwork.maths import TRANSPOSED, Above, Barred, Below, Letter, Maths, Number, Ratio, RootOf, Row, Sign, Words, row

_SPAN = re.compile(r"(?<!\\)(\$\$?)([^$\n]+?)(?<!\\)\1")
_TOKEN = re.compile(r"\\text ?\{[^{}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[a-z]{3,}|\S")
_GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "omega": "ω",
    "Delta": "Δ",
    "Sigma": "Σ",
    "Omega": "Ω",
    "partial": "∂",
}
_SIGNS = {
    "cdot": "·",
    "times": "×",
    "circ": "∘",
    "infty": "∞",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "approx": "≈",
    "prime": "′",
    "sum": "Σ",
    "ldots": "…",
    "dots": "…",
    "oplus": "⊕",
    "pm": "±",
    "to": "→",
    "in": "∈",
    "neq": "≠",
    "mid": "|",
    "odot": "∘",
    "leftarrow": "←",
    "-": "−",
    "'": "′",
}
_WRAPPERS = ("mathrm", "mathbf", "operatorname", "mathit", "boldsymbol")
_NOTHING = ("left", "right", "big", "Big", "displaystyle", "quad", ",", ";", "!", " ")


def spans(text: str) -> Iterator[str | Maths]:
    """The sentence in pieces, words and formulas. "\\$" is a dollar, and so is one alone."""
    start = 0
    for match in _SPAN.finditer(text):
        yield text[start : match.start()].replace("\\$", "$")
        yield read_tex(match[2])
        start = match.end()
    yield text[start:].replace("\\$", "$")


def read_tex(tex: str) -> Maths:
    """The tree of a formula in TeX.

    >>> read_tex(r"\\sqrt{2}")
    RootOf(of=Number(text='2'))
    """
    return _Tex(tex).line()


class _Tex:
    """Recursive descent over the tokens of one formula; what stands in braces is read as one."""

    def __init__(self, tex: str) -> None:
        self.tokens = _TOKEN.findall(tex)

    def line(self, until: str = "") -> Maths:
        items: list[Maths] = []
        while self.tokens and self.tokens[0] != until:
            token = self.tokens.pop(0)
            if token in ("^", "_") and items and self.tokens:
                items.append(self.script(token, items.pop()))
            else:
                items += self.one(token)
        del self.tokens[:1]  # the closing brace
        return row(*items)

    def script(self, token: str, base: Maths) -> Maths:
        """A subscript, or what is raised: QKᵀ, x²."""
        script = self.argument()
        if token == "_":
            return Below(base, script)
        return Above(base, TRANSPOSED if script in (Letter("T"), Letter("top")) else script)

    def one(self, token: str) -> list[Maths]:
        """What a token stands for, with its arguments; nothing where it says how wide a space is."""
        name = token[1:]
        if token.endswith("}") and len(token) > 2:  # \text{…}
            words = token.partition("{")[2][:-1]
            return [Letter(words) if words.isalnum() else Words(words)]
        if token == "{":
            return [self.line("}")]
        if token == "\\frac":
            return [Ratio(self.argument(), self.argument())]
        if token in ("\\sqrt", "\\bar"):
            return [(RootOf if name == "sqrt" else Barred)(self.argument())]
        if token[0] == "\\" and name in _WRAPPERS:
            return [_word(self.argument())]
        if token[0] == "\\" and name:
            if name in _NOTHING:
                return []
            return [Sign(_SIGNS[name]) if name in _SIGNS else Letter(_GREEK.get(name, name))]
        if token[0].isdigit():
            return [Number(token)]
        return [Letter(token) if token.isalpha() else Sign(_SIGNS.get(token, token))]

    def argument(self) -> Maths:
        """What a command or a script takes: a group, or one thing, of digits the first."""
        if not self.tokens:
            return row()
        token = self.tokens.pop(0)
        if token[0].isdigit() and len(token) > 1:
            token, rest = token[0], token[1:]
            self.tokens.insert(0, rest)
        return row(*self.one(token))


def _word(maths: Maths) -> Maths:
    """Letters that belong together: an upright word."""
    items = maths.items if isinstance(maths, Row) else (maths,)
    texts = [item.text for item in items if isinstance(item, Letter | Number)]
    return Letter("".join(texts)) if len(texts) == len(items) else maths
