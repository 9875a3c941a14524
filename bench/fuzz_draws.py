"""What `fuzz.py` runs: sheets, answers and command lines, legal, extreme and hostile, each drawn from its own seed."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from fuzz_cases import Case
from fuzz_classes import marked_class, package, roster
from fuzz_numbers import EXTREME, JUNK, junk, matrix, small
from fuzz_packs import pack
from fuzz_sheets import hostile_table, hostile_text, name, several, sheet_table, toml, toml_value
from typer.main import get_group

from headwork.cli import app
from headwork.formulas import FORMULAS
from headwork.marking.graders import GRADERS
from headwork.sheets.shelf import built_in, text_of

TEMPERS = ("legal", "extreme", "hostile")


SOLVED = (".pdf", ".html", ".json", ".md", ".tex", ".typ", ".ipynb", ".svg", ".txt", ".xyz", "")


def sheet(draw: Random, temper: str) -> Case:
    table = sheet_table(draw, temper == "extreme")
    if temper == "hostile" and draw.random() < 0.6:
        table = hostile_table(draw, table)
    text = several([table, sheet_table(draw, False)]) if draw.random() < 0.1 else toml(table)
    content = (
        hostile_text(draw, text) if temper == "hostile" and draw.random() < 0.5 else text.encode("utf-8", "replace")
    )
    arguments = ["solve", "sheet.toml"]
    arguments += draw.choice([[], [], ["--format", "json"], ["--output", f"page{draw.choice(SOLVED)}"]])
    if not {"json", "page.json", "page.svg"}.intersection(arguments) or draw.random() < 0.2:  # which are no papers
        arguments += draw.choice([[], [], [], ["--exact"], ["--blank"], ["--fade", "2"], ["--answers-only"]])
    if draw.random() < 0.1:
        arguments += ["--entry", name(draw)]
    return Case(arguments, {"sheet.toml": content})


# Answers.


def answers(draw: Random, temper: str) -> Case:
    table = sheet_table(draw, temper == "extreme" and draw.random() < 0.5)
    number = draw.choice(EXTREME) if temper == "extreme" else small
    found = {part["label"]: {key: answer(draw, temper, number) for key in part["find"]} for part in table["part"]}
    if temper == "hostile":
        found[draw.choice(["a", "1.a", "zz", ""])] = {name(draw): answer(draw, temper, number)}
    ending = draw.choice([".toml", ".json", ".csv", ".ipynb"])
    text = ANSWERS[ending](found)
    content = (
        hostile_text(draw, text) if temper == "hostile" and draw.random() < 0.5 else text.encode("utf-8", "replace")
    )
    table |= {"marking": draw.choice([{}, {}, {"tolerance": draw.choice(["exact", "3 figures", "0.01 + 1%", "x"])}])}
    arguments = ["mark", "sheet.toml", f"answers{ending}"]
    arguments += draw.choice(
        [[], ["--format", draw.choice(["json", "html", "gradescope", "csv", "class", "text", "x"])]]
    )
    return Case(arguments, {"sheet.toml": toml(table).encode("utf-8", "replace"), f"answers{ending}": content})


def answer(draw: Random, temper: str, number: Callable[[Random], Any]) -> Any:
    if temper == "hostile" and draw.random() < 0.4:
        return junk(draw)
    if draw.random() < 0.2:
        return draw.choice(["n*d_k", "2×2", "(3, 3)", "4^2", "((9^9)^9)^9", "2^23456789", "n/0", "(" * 190, "a" * 300])
    drawn = matrix(draw, draw.randint(1, 5), draw.randint(1, 4), lambda draw: str(number(draw)))
    return draw.choice([drawn, "; ".join(" ".join(row) for row in drawn), drawn[0][0]])


def answers_csv(found: Mapping[str, Mapping[str, Any]]) -> str:
    cells = {f"{part}.{key}": str(value) for part, names in found.items() for key, value in names.items()}
    quoted = ('"' + text.replace('"', '""') + '"' for text in ("student", *cells, "Ada", *cells.values()))
    row = list(quoted)
    half = len(row) // 2
    return ",".join(row[:half]) + "\n" + ",".join(row[half:]) + "\n"


def answers_toml(found: Mapping[str, Mapping[str, Any]]) -> str:
    return "".join(
        f"[{json.dumps(part)}]\n"
        + "".join(f"{json.dumps(key)} = {toml_value(value)}\n" for key, value in names.items())
        for part, names in found.items()
    )


def answers_notebook(found: Mapping[str, Mapping[str, Any]]) -> str:
    sources = [f"# part {p}\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for p, names in found.items()]
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]})


ANSWERS: Mapping[str, Callable[[Mapping[str, Mapping[str, Any]]], str]] = {
    ".toml": answers_toml,
    ".json": json.dumps,
    ".csv": answers_csv,
    ".ipynb": answers_notebook,
}

# Links that the bench hands in.


def link(draw: Random, temper: str) -> Case:
    """The answers of a case, deflated behind `#answers=`; hostile ones cut, turned or grown."""
    table = sheet_table(draw, False)
    number = draw.choice(EXTREME) if temper == "extreme" else small
    found = {part["label"]: {key: answer(draw, temper, number) for key in part["find"]} for part in table["part"]}
    told: Any = {"student": name(draw) if temper == "hostile" else "Ada", "answers": found}
    if temper == "hostile" and draw.random() < 0.4:
        told = draw.choice([[], 3, {"answers": junk(draw)}, {"answers": {"a": [[[1]]]}, "score": 100}, "x" * 10**6])
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(json.dumps(told).encode("utf-8", "replace")) + packer.flush()
    if temper == "hostile" and draw.random() < 0.4:
        packed = draw.choice([packed[: len(packed) // 2], packed[::-1], b"", draw.randbytes(40)])
    text = urlsafe_b64encode(packed).decode().rstrip("=")
    ending = draw.choice(["", "&mark=100", "\u202e", "=", "#answers="]) if temper == "hostile" else ""
    arguments = ["mark", "sheet.toml", f"https://example.org/bench/#answers={text}{ending}"]
    return Case(arguments, {"sheet.toml": toml(table).encode("utf-8", "replace")})


# Command lines.

# Which time the machine, run somebody's code or model, fetch a package, and serve until they are stopped.
LEFT_OUT = ("bench", "inspect", "look", "site", "open")
COMMANDS: Mapping[str, Any] = {
    name: command for name, command in get_group(app).commands.items() if name not in LEFT_OUT
}


def command(draw: Random, temper: str) -> Case:
    """Any command with any of its options, as the command line itself lists them."""
    chosen = draw.choice([*COMMANDS, ""])
    if not chosen:
        return Case([draw.choice(["--version", "--help", "--nonsense", "nonsense", str(junk(draw)).replace("\0", "")])])
    options = [p for p in COMMANDS[chosen].params if p.param_type_name == "option"]
    arguments = [chosen]
    for argument in COMMANDS[chosen].params:
        if argument.param_type_name == "argument" and (argument.required or draw.random() < 0.2):
            arguments.append(file_name(draw, temper, argument.name))
    for option in draw.sample(options, min(len(options), draw.randint(0, 3 if temper == "legal" else 6))):
        arguments += [option.opts[0]] if option.is_flag else [option.opts[0], option_value(draw, temper, option.name)]
    if chosen == "new":
        arguments += ["--output", "new", "--count", "1"]
    roster = b"student\nada\nbob\n"
    answered = b'[a]\nQ_1 = [["1", "2"], ["3", "4"]]\n'
    return Case(arguments, {"sheet.toml": text_of("two-heads").encode(), "answers.toml": answered, "class.csv": roster})


def file_name(draw: Random, temper: str, argument: str) -> str:
    if argument == "answers":
        return draw.choice(["answers.toml", "nowhere.csv", "answers.xyz", ".", "class.csv"])
    return draw.choice([*built_in(), "sheet.toml"] if temper == "legal" else ["nowhere", ".", "", "sheet.toml"])


def option_value(draw: Random, temper: str, option: str) -> str:
    if temper == "hostile" or draw.random() < 0.1:
        return str(draw.choice(JUNK)).replace("\x00", "\\0")
    words = {
        "formula": [*FORMULAS],
        "left": [*FORMULAS],
        "right": [*FORMULAS],
        "claim": ["blocks", "entry", "row"],
        "format": ["text", "json", "html", "csv", "class"],
        "output": [f"page{ending}" for ending in SOLVED],
        "entry": [name(draw) for _ in range(3)],
        "part": ["a", "b", "c", "z"],
        "convention": ["by-hand", "flops"],
        "mask": ["none", "causal"],
        "roster": ["class.csv", "nowhere.csv"],
        "plot": ["plot.svg", "plot.xyz"],
        "jobs": ["1", "0", "-1"],
        "to": [*GRADERS, "x"],
        "mean": [str(small(draw)), str(draw.choice(EXTREME)(draw))],
        "variance": [str(small(draw)), str(draw.choice(EXTREME)(draw))],
    }
    sizes = [str(draw.randint(1, 8)), draw.choice(["n", "d_k", "B"])]
    if temper == "extreme":
        sizes += [str(10 ** draw.randint(0, 9)), "0", "-1", "999999999", "128"]
    return str(draw.choice(words.get(option, sizes)))


# A kind of case by its name.
KINDS: Mapping[str, Callable[[Random, str], Case]] = {
    "sheet": sheet,
    "answers": answers,
    "link": link,
    "command": command,
    "class": marked_class,
    "roster": roster,
    "package": package,
    "pack": pack,
}


def case(seed: int, number: int, kind: str | None = None, temper: str | None = None) -> tuple[str, str, Case]:
    """Kind, temper and case; the same for the same seed and number."""
    draw = Random(f"headwork {seed} {number}")
    drawn_kind, drawn_temper = draw.choice([*KINDS]), draw.choice(TEMPERS)
    kind, temper = kind or drawn_kind, temper or drawn_temper
    return kind, temper, KINDS[kind](draw, temper)
