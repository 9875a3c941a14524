"""A filled-in notebook: its code cells are read, never run.

A cell answers a part when its first line is a comment such as `# part a` (or its metadata says
{"headwork": {"part": "a"}}). Below stand answers: `Q_1 = [[1, 2], [3, 4]]`, over as many lines as it takes.
"""

from __future__ import annotations

import re
from typing import Any

from headwork.errors import HeadworkError

_PART = re.compile(r"#\s*part\s+(\S{1,20})\s*$", re.IGNORECASE)
_ANSWER = re.compile(r"^([^\W\d][\w,]*(?:\[[\d\s,]+\])?)[ \t]*=(?!=)", re.MULTILINE)


def notebook_answers(text: str) -> dict[str, Any]:
    """Part → name → text."""
    try:
        import nbformat
    except ImportError:
        raise HeadworkError("is a notebook; to read one, run: pip install 'headwork[pages]'") from None
    try:
        notebook = nbformat.reads(text, as_version=4)
    except RecursionError:
        raise HeadworkError("holds nesting too deep to read") from None
    except Exception:  # nbformat has a dozen errors of its own, and of jsonschema's, for a broken file
        raise HeadworkError("is not a notebook that can be read; save it again as .ipynb") from None
    parts: dict[str, Any] = {}
    for cell in notebook.cells:
        part = _part(cell)
        if cell.cell_type == "code" and part is not None:
            parts.setdefault(part, {}).update(_assignments(str(cell.source)))
    if not parts:
        raise HeadworkError("has no cell that answers a part; start each with a line such as '# part a'")
    return parts


def _part(cell: Any) -> str | None:
    noted = cell.get("metadata", {}).get("headwork", {})
    if isinstance(noted, dict) and isinstance(noted.get("part"), str):
        return str(noted["part"])
    lines = str(cell.source).strip().splitlines()
    match = _PART.match(lines[0]) if lines else None
    return match[1] if match else None


def _assignments(source: str) -> dict[str, str]:
    """name = everything up to the next name; comments dropped."""
    plain = re.sub(r"#.*", "", source)
    starts = list(_ANSWER.finditer(plain))
    ends = [match.start() for match in starts[1:]] + [len(plain)]
    return {m[1].replace(" ", ""): plain[m.end() : end].strip() for m, end in zip(starts, ends, strict=True)}
