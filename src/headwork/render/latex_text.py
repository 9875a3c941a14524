"""Ordinary text in LaTeX: whatever a sheet says stands on the page as it was typed."""

from __future__ import annotations

import unicodedata

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\`{}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "∎": r"\hfill\rule{1ex}{1ex}",
    "\n": " ",
}
_MATHEMATICAL = "−·×÷≈≥≤√∞⊕Σ′→"
# What the oldest encoding of LaTeX's fonts can compose: letters under these accents, and these letters.
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_LETTERS = "ßæœøåÆŒØÅłŁıȷ¿¡£§¶©"


def escaped(text: str) -> str:
    """The text with everything that LaTeX would take for a command made harmless."""
    return "".join(map(_character, text))


def unknown(text: str) -> list[str]:
    """The characters of a source that an engine without Unicode fonts has no glyph for."""
    return sorted({c for c in text if not c.isascii() and not _composed(c)})


def _composed(character: str) -> bool:
    base, *accents = list(unicodedata.normalize("NFD", character))
    return character in _LETTERS or (base.isascii() and all(a in _ACCENTS for a in accents))


def _character(character: str) -> str:
    from headwork.render.latex_maths import symbol

    if character in _ESCAPES:
        return _ESCAPES[character]
    as_maths = symbol(character)
    if character in _MATHEMATICAL or as_maths != character:
        return f"${as_maths.strip()}$"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return " "
    plain = unicodedata.normalize("NFKC", character)
    if unicodedata.decomposition(character).startswith("<super>") and plain.isdecimal():
        return f"$^{{{plain}}}$"
    return character
