"""Mathematics between dollar signs, as people who write TeX put it into a sentence: $\\frac{QK^T}{\\sqrt{d_k}}$.

What is read is the little of TeX that a question about attention needs, turned into the signs that `prose` reads;
a command that is not known stands as its own name.
"""

import re
from collections.abc import Iterator

_SPAN = re.compile(r"(?<!\\)\$([^$\n]+?)(?<!\\)\$")
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
    "sum": "Σ",
    "partial": "∂",
    "top": "T",
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
}
_WRAPPERS = ("mathrm", "text", "mathbf", "operatorname", "mathit", "boldsymbol")
_NOTHING = ("left", "right", "big", "Big", "displaystyle", "quad", ",", ";", "!", " ")


def spans(text: str) -> Iterator[tuple[bool, str]]:
    """The sentence in pieces: whether each is mathematics, and its text. "\\$" is a dollar, and so is one alone."""
    start = 0
    for match in _SPAN.finditer(text):
        yield False, text[start : match.start()].replace("\\$", "$")
        yield True, plain(match[1])
        start = match.end()
    yield False, text[start:].replace("\\$", "$")


def plain(tex: str) -> str:
    """The formula in the signs that `prose.read_maths` reads.

    >>> plain(r"\\frac{QK^T}{\\sqrt{d_k}}")
    '(QKᵀ)/(√(d_k))'
    """
    return _Tex(tex).all()


class _Tex:
    """From left to right; what stands in braces is read as one."""

    def __init__(self, tex: str) -> None:
        self.tex, self.at = tex, 0

    def all(self, until: str = "") -> str:
        pieces = []
        while self.at < len(self.tex) and self.tex[self.at] != until:
            pieces.append(self.one())
        self.at += bool(until)
        return "".join(pieces)

    def one(self) -> str:
        """A command, a group in braces, something raised or lowered, or a single character."""
        character = self.tex[self.at]
        self.at += 1
        if character == "\\":
            return self.command()
        if character == "{":
            return self.all("}")
        if character == "^":
            raised = self.argument()
            return {"T": "ᵀ", "2": "²", "3": "³", "-1": "⁻¹"}.get(raised, f"^({raised})")
        if character == "_":
            return "_" + self.argument().replace(" ", "")
        return character

    def command(self) -> str:
        name = (re.match(r"[A-Za-z]+|.", self.tex[self.at :]) or [""])[0]
        self.at += len(name)
        if name == "frac":
            return f"({self.argument()})/({self.argument()})"
        if name == "sqrt":
            return f"√({self.argument()})"
        if name in _WRAPPERS:
            return self.argument()
        if name in _NOTHING:
            return ""
        return _GREEK.get(name) or _SIGNS.get(name) or name

    def argument(self) -> str:
        """What a command or a raised place takes: a group, or one thing."""
        while self.at < len(self.tex) and self.tex[self.at] == " ":
            self.at += 1
        return self.one() if self.at < len(self.tex) else ""
