"""A filled-in notebook: its code cells are read, never run.

A cell answers a part when its first line is a comment such as `# part a` (or its metadata says
{"headwork": {"part": "a"}}). Below stand answers: `Q_1 = [[1, 2], [3, 4]]`, over as many lines as it takes.
"""

import json
import re
from typing import Any

from headwork.errors import HeadworkError

_PART = re.compile(r"#\s*part\s+(\S{1,20})\s*$", re.IGNORECASE)
_ANSWER = re.compile(r"^([^\W\d][\w,]*(?:\[[\d\s,]+\])?)[ \t]*=(?!=)", re.MULTILINE)


def notebook_answers(text: str) -> dict[str, Any]:
    """Part → name → text."""
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = [(cell, "".join(cell["source"])) for cell in code]  # a text, or a list of lines
    except RecursionError:
        raise HeadworkError("holds nesting too deep to read") from None
    except (ValueError, KeyError, TypeError):
        raise HeadworkError("is not a notebook that can be read; save it again as .ipynb") from None
    parts: dict[str, Any] = {}
    for cell, source in sources:
        part = _part(cell, source)
        if part is not None:
            parts.setdefault(part, {}).update(_assignments(source))
    if not parts:
        raise HeadworkError("has no cell that answers a part; start each with a line such as '# part a'")
    return parts


def _part(cell: Any, source: str) -> str | None:
    metadata = cell.get("metadata")
    noted = metadata.get("headwork") if isinstance(metadata, dict) else None
    if isinstance(noted, dict) and isinstance(noted.get("part"), str):
        return str(noted["part"])
    match = _PART.match(source.strip().partition("\n")[0])
    return match[1] if match else None


def _assignments(source: str) -> dict[str, str]:
    """name = everything up to the next name; comments dropped."""
    plain = re.sub(r"#.*", "", source)
    starts = list(_ANSWER.finditer(plain))
    ends = [*(match.start() for match in starts), len(plain)][1:]
    texts = {
        m[1].replace(" ", ""): _unquoted(plain[m.end() : end].strip()) for m, end in zip(starts, ends, strict=True)
    }
    return {name: text for name, text in texts.items() if text != "..."}  # which stands where nothing does yet


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
