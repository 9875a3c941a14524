r"""Formulas and sentences in LaTeX, with nothing beyond amsmath; what a sheet says stands as it was typed."""

import unicodedata
from collections.abc import Callable, Mapping
from string import ascii_uppercase
from typing import Any

from headwork import maths as m
from headwork.render.blocks import Aligned

# By TeX's names, which `prose` reads; of two for one character the later is written.
GREEK = dict(
    zip(
        (
            *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "iota", "kappa"),
            *("lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi"),
            *("omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega", "partial"),
            *("nabla", "ell"),
        ),
        "αβγδεεζηθικλμνξπρστυφφχψωΓΔΘΛΞΠΣΦΨΩ∂∇ℓ",
        strict=True,
    )
)
SIGNS = dict(
    zip(
        (
            *("cdot", "times", "div", "odot", "circ", "oplus", "pm", "surd", "leq", "le", "geq", "ge", "neq", "ne"),
            *("lvert", "rvert", "vert", "approx", "in", "mid", "infty", "sum", "ldots", "dots"),
            *("rightarrow", "to", "gets", "leftarrow", "prime", "-", "'"),
            *("otimes", "equiv", "propto", "sim", "mapsto", "Rightarrow", "Leftrightarrow", "forall", "exists"),
            *("subset", "subseteq", "cup", "cap", "prod", "int", "ll", "gg", "cdots", "vdots", "emptyset"),
            *("langle", "rangle", "lfloor", "rfloor", "lceil", "rceil", "lVert", "rVert", "Vert"),
        ),
        "·×÷∘∘⊕±√≤≤≥≥≠≠|||≈∈|∞Σ……→→←←′−′⊗≡∝∼↦⇒⇔∀∃⊂⊆∪∩∏∫≪≫⋯⋮∅⟨⟩⌊⌋⌈⌉‖‖‖",
        strict=True,
    )
)
ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "vec": "\u20d7", "dot": "\u0307"}
_OVER = {accent: name for name, accent in ACCENTS.items()}


def _alphabet(kind: str) -> dict[str, str]:
    """Unicode's capital letters of this kind: the first that it had, such as ℝ, have names of their own."""
    names = [(letter, f"{kind} CAPITAL {letter}") for letter in ascii_uppercase]
    return {
        letter: next(found for n in (name, f"MATHEMATICAL {name}") if (found := _found(n))) for letter, name in names
    }


def _found(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return ""


ALPHABETS = {"mathbb": _alphabet("DOUBLE-STRUCK"), "mathcal": _alphabet("SCRIPT")}
# Characters that stand for themselves in our text and for a command in LaTeX.
_COMMANDS = {
    **{character: f"\\{name} " for name, character in (*GREEK.items(), *SIGNS.items())},
    **{c: rf"\{name}{{{letter}}}" for name, letters in ALPHABETS.items() for letter, c in letters.items()},
    "−": "-",
    "′": "'",
    "–": r"\text{--}",
    "✓": r"\checkmark ",
    "✗": r"\times ",
    "∎": r"\blacksquare ",
    **{character: f"\\{character}" for character in "%#&${}_"},
    "^": r"\hat{}",
    "~": r"\sim ",
    "\\": r"\backslash ",
    "*": r"\ast ",
}


def latex(maths: m.Maths) -> str:
    """The formula in LaTeX, without the signs that switch to mathematics and back."""
    return NODES[type(maths)](maths)


def symbol(character: str) -> str:
    """One character inside a formula."""
    return _COMMANDS.get(character, character)


def _letter(letter: m.Letter) -> str:
    base = letter.text.rstrip("′")
    primes = "'" * (len(letter.text) - len(base))
    apart = unicodedata.normalize("NFD", base)
    if apart[1:] in _OVER:
        return rf"\{_OVER[apart[1:]]}{{{symbol(apart[0])}}}{primes}"
    if len(base) == 1:
        return symbol(base) + primes
    return rf"\mathrm{{{''.join(map(symbol, base))}}}{primes}"


def _words(words: m.Words) -> str:
    if words == m.TRANSPOSED:
        return r"\top"
    if words == m.BLANK:
        return r"\underline{\qquad}"
    return rf"\text{{{escaped(words.text)}}}"


def _grid(grid: m.Grid) -> str:
    columns = "r" * len(grid.rows[0])
    rows = r" \\ ".join(" & ".join(map(latex, row)) for row in grid.rows)
    return rf"\left[\begin{{array}}{{{columns}}} {rows} \end{{array}}\right]"


def _scripted(mark: str) -> Callable[[Any], str]:
    def scripted(node: m.Below | m.Above) -> str:
        base = latex(node.base)
        bare = node.base.of if isinstance(node.base, m.Named) else node.base
        if not isinstance(bare, m.Letter | m.Number | m.Sign):
            base = f"{{{base}}}"
        return f"{base.rstrip()}{mark}{{{latex(node.script).rstrip()}}}"

    return scripted


NODES: Mapping[type[m.Maths], Callable[[Any], str]] = {
    m.Letter: _letter,
    m.Number: lambda number: "".join(map(symbol, number.text)).replace(",", "{,}"),
    m.Sign: lambda sign: "".join(map(symbol, sign.text)),
    m.Words: _words,
    m.Named: lambda named: latex(named.of),
    m.Gap: lambda gap: rf"\phantom{{{gap.text}}}",
    m.Row: lambda row: "".join(_spaced(row.items)),
    m.Below: _scripted("_"),
    m.Above: _scripted("^"),
    m.Ratio: lambda ratio: rf"\frac{{{latex(ratio.over)}}}{{{latex(ratio.under)}}}",
    m.RootOf: lambda root: rf"\sqrt{{{latex(root.of)}}}",
    m.Barred: lambda barred: rf"\overline{{{latex(barred.of)}}}",
    m.Grid: _grid,
}

_RELATIONS = "=≈+−|…"


def _spaced(items: tuple[m.Maths, ...]) -> list[str]:
    """Signs with spaces around them, so that the source reads like the formula; not the minus of a number."""
    return [
        f" {latex(item).strip()} "
        if isinstance(item, m.Sign) and item.text in _RELATIONS and (i or item.text != "−")
        else latex(item)
        for i, item in enumerate(items)
    ]


def aligned(line: Aligned, remark: Callable[[m.Prose], str]) -> str:
    """A line of a display, with an & before its relation and its remark as `remark` writes it."""
    left = "" if line.left is None else latex(line.left)
    right = " ".join(latex(piece).strip() for piece in line.pieces)
    return f"{left} &{right}" + (rf" \qquad {remark(line.remark)}" if line.remark else "")


def sentence(prose: m.Prose, text: Callable[[str], str], opening: str = "$", closing: str = "$") -> str:
    """A sentence: its words as `text` writes them, its formulas between dollar signs."""
    return "".join(
        text(piece) if isinstance(piece, str) else f"{opening}{latex(piece).strip()}{closing}" for piece in prose
    )


# Ordinary text.

_ESCAPES = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "…": r"\dots{}",
    "∎": r"\hfill\rule{1ex}{1ex}",
    '"': "''",
    "`": r"\`{}",
    "–": "--",
    "—": "---",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "\n": " ",
}
_MATHEMATICAL = "−·×÷≈≥≤√∞⊕Σ′→✓✗"
# What the oldest encoding of LaTeX's fonts can compose: letters under these accents, and these letters.
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_LETTERS = "ßæœøåÆŒØÅłŁıȷ¿¡£§¶©"


_SIGNS = {"right": r"\checkmark", "follows": r"\to", "wrong": r"\times", "blank": "-"}


def marked_grid(rows: tuple[tuple[tuple[str, str], ...], ...], coloured: Callable[[str, str], str]) -> str:
    """A matrix of texts with a sign at each; `coloured` gives a formula the colour of its verdict."""
    cells = [
        [coloured(rf"\text{{{escaped(text)}}}\,{_SIGNS[verdict]}", verdict) for text, verdict in row] for row in rows
    ]
    return r"\begin{bmatrix} " + r" \\ ".join(map(" & ".join, cells)) + r" \end{bmatrix}"


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
