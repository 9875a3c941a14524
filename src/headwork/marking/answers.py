"""Answers as they are handed in: one student's file, a CSV with a student in every row, a class's folder or zip.

A folder or zip is as Gradescope exports it, as nbgrader collects it, as otter and learning platforms keep it: one file
of answers a student. Nothing is unpacked to disk, nothing is run.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any

from headwork.errors import HeadworkError
from headwork.marking.one_file import LARGEST_FILE, MARK, READERS, from_bytes, from_link, from_table
from headwork.marking.one_file import Answers as Answers
from headwork.marking.rows import read_rows
from headwork.sheets.sheet import Sheet

SUFFIXES = (*READERS, ".csv")
_OFFER = "a .toml, .json, .ipynb or .csv file, a folder or zip of such, or a link from the bench"
MOST_FILES = 100_000
LARGEST_ZIP = 50_000_000  # of one student
METADATA = "submission_metadata.yml"  # Gradescope's: which folder is whose
_COLLECTED = re.compile(r"submitted|.*_export")  # folders that stand around everybody's
# Whose a folder of Moodle's or a file of Canvas's is: the name, or the number that gradebooks have as ID.
_DOWNLOADED = (
    re.compile(r"(.+)_\d+_assignsubmission_[a-z]+_?"),
    re.compile(r"[^\W_]+(?:_LATE)?_(\d+)_\d+_.+", re.DOTALL),
)
# A folder, and below it the list of those who handed it in: lines that are indented more than the key after them.
_SUBMITTERS = re.compile(r"^(\S+):\n  :submitters:\n((?:  - .*\n|    .*\n)*)", re.MULTILINE)

Files = dict[PurePosixPath, Callable[[], bytes]]


def one_student(source: Answers | Mapping[str, Any] | str | Path) -> Answers:
    """A single student's answers, from a mapping or a file; a file that cannot be read is an error here."""
    if isinstance(source, Answers):
        return source
    if isinstance(source, Mapping):
        return from_table(source, "student")
    found = list(islice(read_answers(Path(source)), 2))
    if len(found) != 1:
        raise HeadworkError(f"{source} holds {'no' if not found else 'several'} students; mark the class instead")
    if found[0].unreadable:
        raise HeadworkError(found[0].unreadable)
    return found[0]


def read_answers(path: Path, sheet: Sheet | None = None) -> Iterator[Answers]:
    """Every student in a file, in a folder or zip of files, or in a link of the bench, one at a time. Moodle's
    responses need the sheet."""
    whose = _of_nbgrader(path)
    for answers in _read(path, sheet):
        yield replace(answers, student=whose) if whose else answers


def _of_nbgrader(path: Path) -> str:
    """One assignment of one student, as nbgrader's folders have them, or the file in it: whose, by the folder.

    >>> _of_nbgrader(Path("course/submitted/ada/hw1")), _of_nbgrader(Path("course/submitted/ada/hw1/hw1.ipynb"))
    ('ada', 'ada')
    """
    folders = path.parts[:-1] if path.suffix.lower() in SUFFIXES else path.parts
    return folders[-2] if folders[-3:-2] == ("submitted",) else ""


def _read(path: Path, sheet: Sheet | None) -> Iterator[Answers]:
    if MARK in str(path):
        yield from_link(str(path))
        return
    if not path.exists():
        raise HeadworkError(f"there is no file '{path}' of answers; give {_OFFER}")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".zip":
        yield from _handed_in(path)
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


def _handed_in(path: Path) -> Iterator[Answers]:
    """One student after the other, in the order of their folders and files."""
    if path.is_dir():
        yield from _students(_folder(path / "submitted" if (path / "submitted").is_dir() else path), path)
        return
    try:
        with path.open("rb") as packed:
            yield from _students(_archive(packed), path)
    except (zipfile.BadZipFile, OSError):
        raise HeadworkError(f"{path} is not a zip that can be read; download it again") from None


def _folder(path: Path) -> Files:
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return _kept({PurePosixPath(*file.relative_to(path).parts): partial(_start, file.open, "rb") for file in found})


def _archive(packed: IO[bytes]) -> Files:
    with _damage():
        archive = zipfile.ZipFile(packed)
        found = [entry for entry in archive.infolist() if not entry.is_dir()]
    return _kept({PurePosixPath(entry.filename): partial(_start, archive.open, entry) for entry in found})


def _start(opened: Callable[..., IO[bytes]], what: Any) -> bytes:
    """As much as one student may hand in: what is packed may be far larger than the pack."""
    with _damage(), opened(what) as stream:
        return stream.read(LARGEST_ZIP + 1)


@contextmanager
def _damage() -> Iterator[None]:
    """One error for whatever zipfile and those who unpack for it raise: a password is a RuntimeError to them, a name
    without a letter an IndexError, damage an error of zlib's own."""
    try:
        yield
    except Exception as error:
        raise zipfile.BadZipFile from error


def _kept(files: Files) -> Files:
    if len(files) > MOST_FILES:
        raise HeadworkError(f"{len(files):,} files are no class; at most {MOST_FILES:,} are read")
    kept = {}
    for name, read in files.items():
        parts = name.parts[1:] if len(name.parts) > 1 and _COLLECTED.fullmatch(name.parts[0]) else name.parts
        if not ignored(parts):
            kept[PurePosixPath(*parts)] = read
    return kept


def ignored(parts: tuple[str, ...]) -> bool:
    """Whether a file or a folder around it is a system's own."""
    return any(part.startswith(("__MACOSX", ".")) for part in parts)


def _students(collected: Files, path: Path) -> Iterator[Answers]:
    files = _without_one_around(collected)
    told = files.get(PurePosixPath(METADATA))
    names = _submitters(told().decode("utf-8", "replace")) if told else {}
    theirs: dict[str, Files] = {}
    for name, read in files.items():
        if name.suffix.lower() in (*READERS, ".zip"):
            theirs.setdefault(name.parts[0] if len(name.parts) > 1 else name.stem, {})[name] = read
    if not theirs:
        raise HeadworkError(f"{path} holds no file of answers ({', '.join(READERS)}); give what the class handed in")
    for student, own in theirs.items():
        answers = _one(own)
        alone = answers.student if _alone(own) else ""
        for called in names.get(student) or [_whose(alone or student)]:
            yield Answers(called[:100], answers.parts, answers.unreadable)


def _without_one_around(files: Files) -> Files:
    """A folder around everybody's is nobody's: zipping a folder makes one."""
    answers = [name.parts for name in files if name.suffix.lower() in (*READERS, ".zip")]
    around = {parts[0] for parts in answers}
    if len(around) > 1 or len({parts[1:2] for parts in answers}) < 2 or PurePosixPath(METADATA) in files:
        return files
    return {PurePosixPath(*name.parts[1:]): read for name, read in files.items() if len(name.parts) > 1}


def _whose(called: str) -> str:
    """
    >>> _whose("Ada Lovelace_4711_assignsubmission_file_"), _whose("lovelaceada_LATE_4711_98123_answers"), _whose("ada")
    ('Ada Lovelace', '4711', 'ada')
    """
    found = next((match for pattern in _DOWNLOADED if (match := pattern.fullmatch(called))), None)
    return called if found is None else found[1]


def _alone(files: Files) -> bool:
    """Whether it is one file in nobody's folder: then it says whose it is, as if it were handed to `mark` itself."""
    first, *others = files
    return not others and len(first.parts) == 1 and first.suffix.lower() in READERS


def _one(files: Files) -> Answers:
    """The one file of answers among a student's; otter lets them hand in a zip with the notebook in it."""
    try:
        for name, read in [item for item in files.items() if item[0].suffix.lower() == ".zip"]:
            files = {**files, **_archive(BytesIO(read()))}
            files.pop(name)
        found = [name for name in files if name.suffix.lower() in READERS]
        if len(found) != 1:
            shown = ", ".join(name.name for name in found[:3]) or "none"
            return Answers("", unreadable=f"one file of answers ({', '.join(READERS)}) is wanted; there is: {shown}")
        return from_bytes(found[0].name, files[found[0]]()[: LARGEST_FILE + 1])
    except (zipfile.BadZipFile, OSError):
        return Answers("", unreadable="a file or zip that cannot be read was handed in: damaged, or with a password")


def _submitters(text: str) -> dict[str, list[str]]:
    """Gradescope's YAML, as far as it says who handed in which folder: the e-mail address, or else the name."""
    found: dict[str, list[str]] = {}
    for folder, people in _SUBMITTERS.findall(text):
        for person in re.split(r"^  - ", people, flags=re.MULTILINE)[1:]:
            told = dict(re.findall(r"^\s*:(name|email):[ \t]*(\S.*?)\s*$", person, flags=re.MULTILINE))
            if called := (told.get("email") or told.get("name") or "").strip("\"'"):
                found.setdefault(folder, []).append(called)
    return found
