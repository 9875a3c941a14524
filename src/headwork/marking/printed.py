"""The text of a matrix without what a program, LaTeX or a word processor puts around its numbers."""

import re

from headwork.errors import HeadworkError
from headwork.marking.tolerance import TYPED

LONGEST = 20_000  # characters of one answer

# White space is single once `plain` begins, and no two parts of a pattern that repeat can match the same characters:
# a short answer must not take long to refuse.
_ONLY_NUMBERS = re.compile(r"[-+\d./;, \n]*", re.ASCII)
_CALL = re.compile(
    r"(?:[a-z]{1,8}\.)?(?:as)?(?:[Aa]rray|[Tt]ensor|[Mm]atrix)\(\s?(\[.*\])\s?(?:,[\w\s.,:=<>()'\"]*)?\)", re.DOTALL
)
_TENSORFLOW = re.compile(r"<tf\.Tensor: [^\[\]]{0,80}numpy=\s?(.*)>", re.DOTALL)
_SCALAR = re.compile(r"np\.(?:float|int)\d{1,3}\(([^()]{1,40})\)")  # how NumPy prints one number of a list
_NAMED = re.compile(r"[^\W\d]\w{0,40}(?:_\{\w{1,40}\})?\s?[=≈](?!=)\s?")  # Q_1 = …
_SHORTENED = re.compile(r"^\.\.\.|\.\.\.(?!\n)|…|\\[lcvd]?dots\b", re.MULTILINE)  # before a line's end it is MATLAB's
_FENCES = str.maketrans("⎡⎢⎣⎤⎥⎦⎛⎜⎝⎞⎟⎠│|", " " * 14)  # of a matrix drawn with them, or of a table
_BRACES = re.compile(r"\{ ?(?:\{[^{}]*\}[\s,]*)+\}")
_TUPLES = re.compile(r"\( ?(?:\([^()]*,[^()]*\)[\s,]*)+\)")  # ((1, 2), (3, 4)), but not (1 + 2)
_TUPLE = re.compile(r"\([^()]*[,;\n][^()]*\)")

_LATEX = re.compile(r"\\begin\{(\w*matrix\*?|array)\}(?:\{[clr|\s]*\})?(.*)\\end\{\1\}", re.DOTALL)
_AROUND = re.compile(r"\\(?:left|right|[Bb]igg?[lr]?|displaystyle|quad|[\[\](){},;:!.|])|[\s$()\[\]{}|.,;]")
_TEX_WORDS = {
    r"\\sqrt\s*\{([^{}]*)\}": r"sqrt(\1)",  # before fractions, which may hold roots
    r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}": r"((\1)/(\2))",
    r"\\[dt]?frac\s*(\d)\s*(\d)": r"(\1/\2)",
    r"\\(?:cdot|times)(?![A-Za-z])": "*",
    r"\\infty\b": "inf",
    r"\{,\}": ",",
    r"\^\{(-?\d+)\}": r"^\1",
    r"\\[,;:! ]|\\q?quad\b|\\hline\b|~": " ",
    r"\\%": "%",
}


class Malformed(HeadworkError):
    """An answer that cannot be read; it is not a wrong one."""


def plain(text: str) -> str:
    """Rows of numbers, with brackets or without.

    >>> plain("Q = np.array([[1, 2],\\n       [3, 4]])")
    '[[1, 2],\\n[3, 4]]'
    >>> plain("⎡1 2⎤\\n⎣3 4⎦")
    '1 2\\n3 4'
    """
    if len(text) > LONGEST:
        raise Malformed(f"has {len(text):,} characters; at most {LONGEST:,} are read")
    if _ONLY_NUMBERS.fullmatch(text) and "  " not in text and "..." not in text and "\n\n" not in text:
        return text.strip()  # as most answers are
    text = _SCALAR.sub(r"\1", _single_spaced(text.translate(TYPED)))
    text = printed[1] if (printed := _TENSORFLOW.fullmatch(text)) else text
    text = text[named.end() :] if (named := _NAMED.match(text)) else text
    text = re.sub(r"(?<=[\])]) ?;$", "", text)  # MATLAB's way to print nothing
    if _SHORTENED.search(text):
        raise Malformed("leaves numbers out with '...'; print or type all of them")
    if re.search(r"[\])](?:\.?'|\.T|\.mT|\.t\(\))$|[\])}]\^(?:T|\{?\\?(?:T|top)\}?)\$*$", text):
        raise Malformed("is to be transposed, by what stands at its end; write the matrix as it then is")
    if call := _CALL.fullmatch(text):
        text = call[1]
    elif "\\" in text:
        text = _from_latex(text)
    else:
        text = _one_kind_of_bracket(_single_spaced(text.translate(_FENCES)))
    return _without_one_item(text.replace(" %", "%"))


def _single_spaced(text: str) -> str:
    """Lines without blank ones, numbers one space apart."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _one_kind_of_bracket(text: str) -> str:
    """{{1, 2}, {3, 4}} and ((1, 2), (3, 4)) as lists; (1, 2) as one row."""
    if _BRACES.fullmatch(text):
        return text.translate(str.maketrans("{}", "[]"))
    if _TUPLES.fullmatch(text):
        return text.translate(str.maketrans("()", "[]"))
    return f"[{text[1:-1]}]" if _TUPLE.fullmatch(text) else text


def _without_one_item(text: str) -> str:
    """A batch of one, [[[1, 2], [3, 4]]], is its only item."""
    while re.match(r"\[\s?\[\s?\[", text) and text.endswith("]") and not re.search(r"\]\s?\][\s,]*\[", text):
        text = text[1:-1].strip()
    return text


def _from_latex(text: str) -> str:
    matrix = _LATEX.search(text)
    if matrix and (beside := _beside(text[: matrix.start()], text[matrix.end() :])):
        raise Malformed(f"has '{beside[:40]}' beside its matrix; write the matrix worked out")
    text = (matrix[2] if matrix else text.strip("$ ")).strip()
    text = re.sub(r"\\\\(?:\[[^\]]{0,20}\])?", ";", text).removesuffix(";")
    for pattern, word in _TEX_WORDS.items():
        text = re.sub(pattern, word, text)
    # Entries stand between & and may hold spaces, which are closed up; an empty one must not vanish.
    rows = [["".join(entry.split()) or "&" for entry in row.split("&")] for row in text.split(";")]
    return ";".join(map(" ".join, rows))


def _beside(before: str, after: str) -> str:
    """What changes a matrix from outside: a factor, a transpose. What it is said to be equal to does not."""
    before = re.split(r"[=≈]|\\approx\b", before)[-1]
    return next((text.strip() for text in (before, after) if _AROUND.sub("", text)), "")
