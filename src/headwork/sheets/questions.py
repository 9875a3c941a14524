"""What a part asks for, question by question, and the names under which an answer is accepted."""

import re
from dataclasses import dataclass

from headwork.notation import Name, Notation
from headwork.sheets.ready import Found, Ready
from headwork.sheets.sheet import Part


@dataclass(frozen=True)
class Asked:
    """A step, a row or an entry that is asked for."""

    name: str
    found: Found
    also: frozenset[str]  # other names: what the page prints
    group: tuple[str, int] | None = None  # "Q" asks for all heads at once: the role, and which of them this is
    entries: tuple[tuple[str, ...], ...] = ()  # the name of each, in rows; none where sizes are symbols


def questions(part: Part, ready: Ready) -> tuple[Asked, ...]:
    """The questions of a part, in order."""
    asked: list[Asked] = []
    for name in ready.names(part):
        several = ready.find(name)
        for number, found in enumerate(several):
            own = name.replace(" ", "") if len(several) == 1 else _full_name(found, ready)
            group = (name.replace(" ", ""), number) if len(several) > 1 else None
            asked.append(Asked(own, found, _printed(found, ready) - {own}, group, _entries(own, found, ready)))
    if not ready.names(part):
        steps = ready.computed()
        asked = [Asked(_full_name(Found(s), ready), Found(s), _printed(Found(s), ready)) for s in steps]
    return tuple(asked)


def _full_name(found: Found, ready: Ready) -> str:
    """Q_1, scores_2[3,1]: role, head, place."""
    first = ready.problem.notation.first_index
    head = found.step.head
    below = "" if head is None else f"_{head + first if isinstance(head, int) else head}"
    place = [str(i + first) for i in (found.row, found.column) if i is not None]
    return f"{found.step.role}{below}" + (f"[{','.join(place)}]" if place else "")


def _entries(name: str, found: Found, ready: Ready) -> tuple[tuple[str, ...], ...]:
    """Q_1[1,1], Q_1[1,2] …: the entries of a matrix, of a row, or the one entry itself."""
    if found.column is not None:
        return ((name,),)
    rows, columns = ready.shape[found.step][-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return ()
    first, base = ready.problem.notation.first_index, name.partition("[")[0]
    chosen = range(rows) if found.row is None else [found.row]
    return tuple(tuple(f"{base}[{i + first},{j + first}]" for j in range(columns)) for i in chosen)


def _printed(found: Found, ready: Ready) -> frozenset[str]:
    """The name on the page, the full one, and that one as a program takes it, for notebooks."""
    full = _full_name(found, ready)
    return frozenset({str(printed_name(found, ready.problem.notation)), full, identifier(full)})


def printed_name(found: Found, notation: Notation) -> Name:
    if found.row is None:
        return notation.of(found.step)
    if found.column is None:
        return notation.row(found.step, found.row)
    return notation.entry(found.step, found.row, found.column)


def identifier(name: str) -> str:
    """A name that programs take: scores_1[2,1] is scores_1_2_1."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
