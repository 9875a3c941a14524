"""Keys of a sheet that most sheets do without, for `fuzz.py`: names, a softmax in steps, padding, proofs, moments,
steps handed over, a letter for the batch."""

from __future__ import annotations

from random import Random
from typing import Any

from fuzz_numbers import matrix, small

Table = dict[str, Any]


def seldom(draw: Random, table: Table) -> None:
    """Some of them, now and then, into a sheet that is legal without."""
    for add in (names, steps, columns, padding, batch, handed, proof, moments, points):
        if draw.random() < 0.08:
            add(draw, table)


def names(draw: Random, table: Table) -> None:
    """What roles are called on the page."""
    called = ["head", "Z", "α", "A", "a_b", "S_1", "x" * 20, "scores"]
    roles = draw.sample(["head_output", "output", "scores", "weights", "joined"], draw.randint(1, 2))
    table["notation"] = dict(zip(roles, draw.sample(called, 2), strict=False))
    table["notation"] |= draw.choice([{}, {"gradient": draw.choice(["dQ", "∂L/∂Q", "Q̄"])}])


def steps(draw: Random, table: Table) -> None:
    table["softmax"] = draw.choice(["steps", "safe-steps"])
    if draw.random() < 0.5 and table["formula"] != "blockwise":
        found = draw.choice([["exponentials"], ["sums", "weights"]])
        table["part"].append({"label": "s", "find": found})


def columns(draw: Random, table: Table) -> None:
    table["vectors"] = "columns"


def padding(draw: Random, table: Table) -> None:
    called = table.get("keys", table.get("tokens", []))
    if called:
        table["padding"] = draw.sample(called, 1)


def batch(draw: Random, table: Table) -> None:
    if any(part.get("kind") == "gradient" for part in table["part"]):
        return  # which add up over items, and say so
    table["sizes"] = {"batch": draw.choice(["B", "N", 2, 128])}
    table["part"].append({"label": "y", "kind": draw.choice(["shape", "count"]), "find": []})


def handed(draw: Random, table: Table) -> None:
    """The scores of a part, given instead of worked out."""
    given = table["given"]
    if "Q" in given and "K" in given:
        scores = matrix(draw, len(given["Q"]), len(given["K"]), small)
        table["part"].append({"label": "w", "given": {"scores": scores}, "find": ["output"]})


def proof(draw: Random, table: Table) -> None:
    found = draw.choice([["scores[i,j]"], ["head_output[i]"], ["shift"], ["output"], ["gradient"], ["blockwise"]])
    part = {"label": "p", "kind": "prove", "find": found}
    table["part"].append(part | draw.choice([{}, {"entries": True}]))


def moments(draw: Random, table: Table) -> None:
    part = {"label": "m", "kind": "moments", "find": draw.choice([["mean"], ["variance", "scale"], ["softmax"]])}
    numbers: list[Table] = [{}, {"mean": str(small(draw))}, {"variance": draw.choice(["2", "1/3", "0", "1e-40"])}]
    table["part"].append(part | draw.choice(numbers))


def points(draw: Random, table: Table) -> None:
    labels = [part["label"] for part in table["part"] if "points" not in part]
    table["marking"] = {"points": dict.fromkeys(labels[:2], "1/2")}
