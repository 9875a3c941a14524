"""Before anything is sent, the ranks agree: gloo ends the process, or takes wrong bytes, where they do not."""

import json
from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

import torch

import headwork.torch.cluster.splits as splits
from headwork.errors import HeadworkError
from headwork.torch.cluster.line import Line
from headwork.torch.cluster.loss import called, take_back_word

ROOM = 4096  # bytes for a rank's description, where it is asked for


class Held(NamedTuple):
    """How many rows of the queries, and of the keys, every rank holds."""

    tokens: list[int]
    keys: list[int]


def agree(line: Line, call: dict[str, Any], tokens: int, keys: int, wrong: str = "") -> Held:
    """`call` describes what must be the same on all ranks; `wrong` is what is the matter with this rank's arguments.

    Every rank raises the same error, or none does.
    """
    take_back_word()
    text = json.dumps(call)
    mark = int.from_bytes(sha256(text.encode()).digest()[:8], "little", signed=True)
    mine = torch.tensor([mark, tokens, keys, bool(wrong)], device="cpu")
    found = [row.tolist() for row in line.everyone(mine, "the agreement before the call")]
    if any(row[3] for row in found):
        raise HeadworkError(first_wrong(line, wrong))
    if len({row[0] for row in found}) > 1:
        raise HeadworkError(difference(line, [json.loads(each) for each in described(line, text)]))
    return Held([row[1] for row in found], [row[2] for row in found])


def refuse(group: Any, error: Exception) -> NoReturn:
    """The arguments of this rank are wrong: every rank of the group raises that."""
    text = str(error) if isinstance(error, HeadworkError) else f"{type(error).__name__}: {error}"
    agree(Line(group), {}, 0, 0, text)
    raise error


def described(line: Line, text: str) -> list[str]:
    data = text.encode()[:ROOM]
    mine = torch.zeros(ROOM, dtype=torch.uint8, device="cpu")
    mine[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else mine[:0]
    rows = line.everyone(mine, "the comparison of the calls")
    return [bytes(row.tolist()).rstrip(b"\0").decode(errors="ignore") for row in rows]


def first_wrong(line: Line, wrong: str) -> str:
    told = described(line, wrong)
    rank = next(r for r, each in enumerate(told) if each)
    return f"{called(line.group, rank)}: {told[rank]}"


def difference(line: Line, calls: list[dict[str, Any]]) -> str:
    """The first thing that is not the same everywhere, and who is alone with it."""
    for name in {**calls[0], **calls[-1]}:
        values = [json.dumps(call.get(name, "nothing")).strip('"') for call in calls]
        counts = Counter(values)
        common = max(values, key=lambda value: counts[value])  # of two that are as common, that of the first rank
        odd = [rank for rank, value in enumerate(values) if value != common]
        if odd:
            same = ", ".join(str(rank) for rank, value in enumerate(values) if value == common)
            return (
                f"{called(line.group, odd[0])} has {name} {values[odd[0]]}; {common} is what rank {same} has. All "
                "ranks make the same call."
            )
    return "the ranks make different calls."


def check_held(line: Line, held: list[int], tokens: tuple[splits.Intervals, ...], split: str, what: str) -> None:
    """Every rank holds as many rows as the split gives it. All see the same numbers, so all raise the same error."""
    wanted = [splits.rows(mine) for mine in tokens]
    odd = [rank for rank in range(line.world) if held[rank] != wanted[rank]]
    if odd:
        raise HeadworkError(
            f"{', '.join(called(line.group, rank) for rank in odd[:3])}: the ranks hold {short(held)} rows of {what}, "
            f"but {split} lays {sum(held)} out as {short(wanted)}. Lay them out with headwork.torch.shard and the same "
            "split, or say the split they have."
        )


def short(numbers: list[int]) -> str:
    return str(numbers) if len(numbers) <= 16 else f"[{', '.join(map(str, numbers[:15]))}, …]"
