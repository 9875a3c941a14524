"""Answers as they are handed in: one student's file, a CSV with a student in every row, a class's folder or zip."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.handed_in import read_handed_in
from headwork.marking.link import from_link, is_link
from headwork.marking.one_file import LARGEST_FILE, READERS, from_bytes, from_table
from headwork.marking.one_file import Answers as Answers
from headwork.marking.rows import read_rows
from headwork.sheets.sheet import Sheet

SUFFIXES = (*READERS, ".csv")
_OFFER = "a .toml, .json, .ipynb or .csv file, a folder or zip of such, or a link from the bench"


def one_student(source: Answers | Mapping[str, Any] | str | Path) -> Answers:
    """A single student's answers, from a mapping or a file; a file that cannot be read is an error here."""
    if isinstance(source, Answers):
        return source
    if isinstance(source, Mapping):
        return from_table(source, "student")
    found = list(_first_two(read_answers(Path(source))))
    if len(found) != 1:
        raise HeadworkError(f"{source} holds {'no' if not found else 'several'} students; mark the class instead")
    if found[0].unreadable:
        raise HeadworkError(found[0].unreadable)
    return found[0]


def _first_two(students: Iterable[Answers]) -> Iterator[Answers]:
    for number, student in enumerate(students):
        if number == 2:
            return
        yield student


def read_answers(path: Path, sheet: Sheet | None = None) -> Iterator[Answers]:
    """Every student in a file, in a folder or zip of files, or in a link of the bench, one at a time. Moodle's
    responses need the sheet."""
    if is_link(str(path)):
        yield from_link(str(path))
        return
    if not path.exists():
        raise HeadworkError(f"there is no file '{path}' of answers; give {_OFFER}")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".zip":
        yield from read_handed_in(path)
    elif suffix == ".csv":
        yield from read_rows(path, sheet)
    elif suffix in READERS:
        yield from_bytes(path.name, _content(path))
    else:
        raise HeadworkError(f"{path} is no file of answers; give {_OFFER}")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise HeadworkError(f"{path} cannot be read: {error.strerror}") from None
