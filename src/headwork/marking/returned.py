"""Everything that goes back, in one folder: a page for each student, the page about the class, a table."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks, Student
from headwork.marking.report import class_blocks, returned_blocks
from headwork.marking.spreadsheet import class_csv
from headwork.render.save import streamed, write

LONGEST = 80  # characters of a file's name
OURS = ("class", "marks")  # names of pages that are nobody's


def give_back(
    title: str, marks: Iterable[Marks], folder: Path, ending: str, places: int, listed: Collection[Student] = ()
) -> int:
    """Write the folder; how many pages for students it holds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = Names()
        with (folder / "marks.csv").open("w", encoding="utf-8", newline="") as table:

            def each() -> Iterator[Marks]:
                """Students pass one at a time: page, then table, then the class's counts."""
                for number, one in enumerate(marks):
                    write(folder / f"{names.of(one.student)}{ending}", streamed(ending, returned_blocks(one, places)))
                    lines = class_csv([one])
                    if number:
                        next(lines)  # the first line stands there already
                    table.writelines(lines)
                    yield one

            write(folder / f"class{ending}", streamed(ending, class_blocks(title, each(), listed)))
    except OSError as error:
        raise HeadworkError(f"cannot write to {folder}: {error.strerror}; choose another folder") from None
    return names.given


class Names:
    """A file's name for every student, safe on every system, none twice."""

    def __init__(self) -> None:
        self._last = dict.fromkeys(OURS, 1)
        self.given = 0

    def of(self, student: str) -> str:
        """
        >>> names = Names()
        >>> names.of("Ada/../L."), names.of("ada .. l"), names.of("class")
        ('Ada_.._L', 'ada_.._l-2', 'class-2')
        """
        plain = re.sub(r"[^\w.@-]+", "_", student)[:LONGEST].strip("._") or "student"
        number = self._last[plain.casefold()] = self._last.get(plain.casefold(), 0) + 1
        self.given += 1
        return plain if number == 1 else f"{plain}-{number}"
