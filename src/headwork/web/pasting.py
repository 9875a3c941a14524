"""What is pasted, as rows of texts: from a spreadsheet, CSV, NumPy, torch, MATLAB, LaTeX."""

import csv
from io import StringIO

from headwork.errors import HeadworkError
from headwork.marking.printed import LONGEST
from headwork.marking.table import texts
from headwork.numbers.parse import NumberError, parse_number
from headwork.sheets.written import real_text


def pasted(text: str) -> list[list[str]]:
    """The rows of a matrix, every entry as it was written.

    >>> pasted("1\\t2\\n3\\t4") == pasted("[[1. 2.]\\n [3. 4.]]".replace(".", "")) == pasted("[1 2; 3 4]")
    True
    """
    if len(text) > LONGEST:
        raise HeadworkError(f"has {len(text):,} characters; at most {LONGEST:,} are read")
    mark = _separator(text)
    rows = [row for row in csv.reader(StringIO(text), delimiter=mark) if any(row)] if mark else texts(text)
    found = [[_plainly(str(entry).strip()) for entry in row] for row in rows]
    if not found or not found[0]:
        raise HeadworkError("holds no numbers")
    if len({len(row) for row in found}) > 1:
        raise HeadworkError(f"is ragged: its rows have {', '.join(str(len(row)) for row in found[:6])} entries")
    return found


def _plainly(text: str) -> str:
    """1 for 1., 1/2 for ((1)/(2)): what programs and LaTeX leave around a number goes, what is none stays."""
    if not text.endswith(".") and "(" not in text.replace("sqrt(", ""):
        return text
    try:
        return real_text(parse_number(text))
    except NumberError:
        return text


def _separator(text: str) -> str:
    """What stands between the entries of a table: tabs, or semicolons on every one of several lines."""
    if "\t" in text:
        return "\t"
    lines = [line for line in text.strip().splitlines() if line.strip()]
    ends = any(line.rstrip().endswith((";", "]")) or line.lstrip().startswith("[") for line in lines)
    counts = {line.count(";") for line in lines}
    return ";" if len(lines) > 1 and not ends and counts != {0} and len(counts) == 1 and "\\" not in text else ""
