"""What is wrong with my attention? A function called on small inputs of our choosing, held against the formula and
against every mistake in the catalogue, in a process of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwork.errors import HeadworkError
from headwork.inspecting.probe import loader, probe
from headwork.inspecting.sandbox import in_own_process
from headwork.mistakes.diagnose import advice

SECONDS = 60.0
MEGABYTES = 4096


@dataclass(frozen=True)
class Corner:
    """One corner: whether the function holds there, and what it does."""

    name: str
    holds: bool
    text: str


@dataclass(frozen=True)
class Inspection:
    """What was found. `tags` name every mistake that predicts what the code returns; "x+y" is two at once."""

    target: str
    verdict: Literal["agrees", "mistake", "disagrees", "uncallable", "ended"]
    convention: str = ""
    mask: str = ""
    tags: tuple[str, ...] = ()
    first_difference: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()
    corners: tuple[Corner, ...] = ()
    example: str = ""

    @property
    def agrees(self) -> bool:
        return self.verdict == "agrees"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def inspect(target: Callable[..., Any] | str, *, seconds: float = SECONDS, megabytes: int = MEGABYTES) -> Inspection:
    """Whether a function is attention, and if not, which mistake it is consistent with.

    `target` is a function, a torch module or its class, or where to find one: "package.module:name", "file.py:name".
    It is called in a process of its own, which is stopped after so many seconds and held to so much more memory.
    """
    _check(target)
    said: dict[str, Any] = {}
    corners: list[Corner] = []
    for message in in_own_process(lambda emit: probe(loader(target), emit), seconds, megabytes):
        if "corner" in message:
            corners.append(Corner(str(message["corner"]), bool(message["holds"]), str(message["text"])))
        said |= message
    verdict = said.get("verdict", "ended")
    why = str(said.get("why") or said.get("ended") or "")
    if "ended" in said:
        why = f"{said['ended']}, while {said.get('stage', 'starting')}"
    return Inspection(
        target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__),
        verdict,
        str(said.get("convention", "")),
        str(said.get("mask", "")),
        tuple(map(str, said.get("tags", ()))),
        str(said.get("first", "")),
        why if verdict == "uncallable" or "ended" in said else "",
        tuple(map(str, said.get("notes", ()))),
        tuple(corners),
        _example(said) if "example" in said else "",
    )


def _check(target: Any) -> None:
    """What can be told without running anything."""
    if not isinstance(target, str):
        if not callable(target):
            raise HeadworkError(f"{type(target).__name__} cannot be called; give a function, a module or its class")
        return
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise HeadworkError(f"'{target[:80]}' names no function; write package.module:function or file.py:function")
    if place.endswith(".py") and not Path(place).is_file():
        raise HeadworkError(f"there is no file '{place}'; write file.py:function")


def _lines(found: Inspection) -> list[str]:
    lines = [f"{found.target}: {_headline(found)}"]
    if found.convention:
        lines.append(f"    called as {found.convention}{f'; mask: {found.mask}' if found.mask else ''}")
    lines += [f"    {note}" for note in found.notes]
    if found.tags:
        lines.append(f"    {advice(tuple(found.tags[0].split('+')))}")
    if found.first_difference:
        lines.append(f"    The first step that can be told apart is {found.first_difference}.")
    if found.example:
        lines += ["", *(f"    {line}".rstrip() for line in found.example.splitlines())]
    if found.corners:
        width = max(len(corner.name) for corner in found.corners)
        lines += ["", *(f"    {'✓' if c.holds else '✗'} {c.name:<{width}}  {c.text}" for c in found.corners)]
    return lines


def _headline(found: Inspection) -> str:
    if found.verdict == "agrees":
        return "agrees with the formula" + (f"; but {found.why}" if found.why else "")
    if found.verdict == "mistake":
        return f"consistent with {' or '.join(tag.replace('+', ' and ') for tag in found.tags)}"
    if found.verdict == "disagrees":
        return "disagrees with the formula, in no way that the catalogue knows"
    return f"could not be inspected: {found.why}"


def _example(said: Mapping[str, Any]) -> str:
    """The smallest input that shows it, worked by hand, beside what the code returned."""
    from headwork.render.text import shown_text
    from headwork.sheets.fields import read_problem
    from headwork.sheets.sheet import Sheet
    from headwork.solving import solve

    case = said["example"]
    bare = "Q" in case
    given: dict[str, Any] = {}
    for role, rows in case.items():
        if role != "mask":
            whole = [[str(int(x)) for x in row] for row in rows]
            given[role] = whole[0] if role.startswith("b_") else whole
    if not bare and "W_O" not in given:
        width = len(given["W_V"][0])
        given["W_O"] = [[str(int(i == j)) for j in range(width)] for i in range(width)]
    table: dict[str, Any] = {
        "formula": "scaled_dot_product" if bare else "multi_head_blocks",
        "given": given,
        "places": 4,
        "part": [{"label": "a", "text": "By hand:", "find": ["head_output" if bare else "output"]}],
    }
    if not bare:
        table["heads"] = heads = int(said["heads"])
        d_k = len(given["W_Q"][0]) // heads
        table["kv_heads"] = len(given["W_K"][0]) // d_k
    if "mask" in case or said.get("causal"):
        table["mask"] = _mask_of(case.get("mask"), bool(said.get("causal")))
    problem = read_problem(table, "The smallest input that shows it")
    by_hand = shown_text(solve(Sheet(problem.title, (problem,))))
    rows = "\n".join("      " + "  ".join(_number(x) for x in row) for row in said["returned"])
    return f"{by_hand}\nThe code returned\n\n{rows}"


def _mask_of(seen: Any, causal: bool) -> Any:
    """As a sheet has it."""
    rows = [[bool(x) and (j <= i or not causal) for j, x in enumerate(row)] for i, row in enumerate(seen or ())]
    return rows if any(x != (j <= i) for i, row in enumerate(rows) for j, x in enumerate(row)) else "causal"


def _number(x: Any) -> str:
    return f"{x:.4f}" if isinstance(x, float) else str(x)
