"""Zips for `fuzz.py`: what a class handed in, as platforms pack it, damaged, locked and misnamed."""

from __future__ import annotations

import io
import json
import zipfile
from random import Random
from typing import Any

from fuzz_cases import Case
from fuzz_numbers import EXTREME, JUNK, junk, matrix, small
from fuzz_sheets import hostile_text, sheet_table, toml, toml_value

FOLDERS = ("", "", "", "ada/", "bob/", "submitted/ada/", "hw1_export/submission_1/", "Ada L_1_assignsubmission_file_/")
STRANGE = ("../", "/", "__MACOSX/", "a\nb/", "\u202e", "=1+1", "." * 3 + "/", "x" * 300, "C:\\")
PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def pack(draw: Random, temper: str) -> Case:
    """A few students' files in a zip, now and then zips in a zip."""
    table = sheet_table(draw, False)
    files = {member(draw, temper): one(draw, temper, table) for _ in range(draw.randint(1, 4))}
    if draw.random() < 0.2:
        files["bob/own.zip"] = zipped(draw, {"answers.toml": one(draw, temper, table)})
    if draw.random() < 0.2:
        files["submission_metadata.yml"] = metadata(draw, temper)
    content = zipped(draw, files)
    if temper == "hostile" and draw.random() < 0.5:
        content = damaged(draw, content)
    arguments = ["mark", "sheet.toml", "class.zip", "--jobs", "1"]
    arguments += draw.choice([[], ["--format", draw.choice(["csv", "json", "class", "html"])], ["--pages", "returned"]])
    return Case(arguments, {"sheet.toml": toml(table).encode("utf-8", "replace"), "class.zip": content})


def member(draw: Random, temper: str) -> str:
    strange = draw.choice(STRANGE) if temper == "hostile" and draw.random() < 0.3 else ""
    name = draw.choice(["ada", "bob", "Zoë", "answers (3)", "lovelaceada_4711_98123_answers"])
    return (
        strange + draw.choice(FOLDERS) + name + draw.choice([".toml", ".toml", ".json", ".ipynb", ".txt", ".zip", ""])
    )


def one(draw: Random, temper: str, table: dict[str, Any]) -> bytes:
    """One student's answers, in TOML or JSON whatever the name says."""
    number = draw.choice(EXTREME) if temper == "extreme" else small
    found: dict[str, Any] = {}
    for part in table["part"]:
        wrong = temper == "hostile" and draw.random() < 0.3
        drawn = matrix(draw, draw.randint(1, 3), draw.randint(1, 3), lambda draw: str(number(draw)))
        found[part["label"]] = {key: junk(draw) if wrong else drawn for key in part["find"]}
    if draw.random() < 0.3:
        return json.dumps(found).encode("utf-8", "replace")
    text = "".join(f"{json.dumps(label)} = {toml_value(answers)}\n" for label, answers in found.items())
    return hostile_text(draw, text) if temper == "hostile" and draw.random() < 0.3 else text.encode("utf-8", "replace")


def metadata(draw: Random, temper: str) -> bytes:
    """Gradescope's list of who handed in which folder."""
    called = str(draw.choice(JUNK)) if temper == "hostile" else "Ada"
    text = f"---\nada:\n  :submitters:\n  - :name: {called}\n    :email: ada@example.org\n  :score: 1\n"
    return hostile_text(draw, text) if temper == "hostile" else text.encode()


def zipped(draw: Random, files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", draw.choice(PACKING)) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def damaged(draw: Random, content: bytes) -> bytes:
    """Some bytes turned, the end lost, or the bit set that says there is a password."""
    found = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        found[draw.randrange(len(found))] = draw.choice([0, 1, 255, draw.randrange(256)])
    locked = content.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
    return draw.choice([bytes(found), content[: draw.randrange(len(content))], locked, b""])
