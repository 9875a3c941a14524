"""The examples in the catalogue: a right matrix beside a mistaken one."""

from collections.abc import Mapping
from typing import Any

from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.mistakes.rewriting import ENTERED
from headwork.sheets.fields import read_problem
from headwork.sheets.ready import Ready

KEYS = ("heads", "mask", "bias", "softcap", "around", "eps")  # of a problem; all else is given


def compare(tag: str, name: str, formula: str = "scaled_dot_product", **given: Any) -> None:
    """Print what `name` is, and what it becomes with the mistake."""
    keys: dict[str, Any] = {key: given.pop(key) for key in KEYS if key in given}
    part: Mapping[str, Any] = {"label": "a", "find": [name]}
    if name.startswith("d_"):
        part = {**part, "kind": "gradient", "loss": "sum"}
    ready = Ready(read_problem({"formula": formula, "given": given, "part": [part], **keys}, ""))
    (found,) = ready.find(name)
    handed = float_handed(ready.handed)
    right = Variant(ready.ends, FLOATS).value(found.step, handed)
    mistake = next(entered[tag] for entered in ENTERED.values() if tag in entered)
    mistaken = Variant(mistake.made_in(ready.ends)[0], FLOATS).value(found.step, handed)
    print(f"right {_text(right)}, mistaken {_text(mistaken)}")


def _text(matrix: Any) -> str:
    rows = (", ".join(f"{x:.4g}" for x in row) for row in matrix)
    return "[" + ", ".join(f"[{row}]" for row in rows) + "]"
