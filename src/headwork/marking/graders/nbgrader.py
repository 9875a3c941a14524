"""nbgrader: a source notebook whose graded cells ask headwork, in the kernel, for the points of one answer each.

nbgrader takes the text of a cell's last expression for its points, nothing at all for full points, and anything on
standard error for none. What stands between the HIDDEN TESTS lines is not in the notebook that students get.
"""

import json
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from headwork.marking.answers import read_answers
from headwork.marking.graders.family import Family
from headwork.marking.graders.fields import Field, shares
from headwork.marking.graders.files import Files, headwork_files, zipped
from headwork.marking.graders.paper import Cell, code_cell, markdown, notebook, paper, student_cells, text_cell
from headwork.marking.marks import Marks
from headwork.marking.report import explanation

# The zip lies in the course's folder, three above the one in which nbgrader runs a student's notebook.
_GRADED = """# {part}, {name}: {points} points
### BEGIN HIDDEN TESTS
import sys
from pathlib import Path

package = next(file for file in (above / "{package}" for above in Path.cwd().parents) if file.exists())
sys.path.insert(0, str(package))
from headwork.marking.graders.nbgrader import earned

earned(package, Path.cwd() / "{notebook}", "{part}", "{name}")
### END HIDDEN TESTS"""

_WHOSE = 'student = "..."  # the name under which you hand in'
# Whose sheet is whose, as `Family.name_for` has it: students have no headwork.
_OWN_SHEET = """import hashlib
import json

from IPython.display import Markdown

with open("papers.json", encoding="utf-8") as file:
    papers = json.load(file)
names = {name.casefold(): name for name in papers}
known = student.strip().casefold()
drawn = list(papers)[int.from_bytes(hashlib.sha256(known.encode()).digest()[:8], "big") % len(papers)]
Markdown(papers[names.get(known) or names.get(known.partition("@")[0]) or drawn])"""


def package(family: Family, name: str) -> Files:
    """The `source` folder of an assignment, and beside it headwork with the sheets."""
    carried = f"headwork-{name}.zip"
    files = {
        f"source/{name}/{name}.ipynb": notebook(_cells(family, name, carried)),
        carried: zipped({**family.files("sheets"), **headwork_files()}),
    }
    if len(family.texts) > 1:
        pieces = {sheet: paper(family.marker(sheet)) for sheet in family.texts}
        papers = {sheet: "\n\n".join(markdown(piece.blocks) for piece in each) for sheet, each in pieces.items()}
        files[f"source/{name}/papers.json"] = json.dumps(papers, ensure_ascii=False, indent=1).encode()
    return files


def _cells(family: Family, name: str, carried: str) -> Iterator[Cell]:
    several = len(family.texts) > 1
    for cell, piece in student_cells(family.first, family.title):
        if cell["cell_type"] == "code":  # not a "solution": nbgrader would put a text of its own in its place
            yield cell
            yield from (_graded(field, name, carried) for field in piece.fields)
        elif several and piece.fields:
            yield text_cell(cell["id"], f"**({piece.fields[0].part})**")
        elif not several or not piece.blocks:
            yield cell
        if several and not piece.blocks:  # after the title: everybody's own sheet
            yield code_cell("student", _WHOSE)
            yield code_cell("own-sheet", _OWN_SHEET, nbgrader=_noted("own-sheet"))


def _graded(field: Field, name: str, carried: str) -> Cell:
    source = _GRADED.format(
        part=field.part, name=field.name, points=field.points, package=carried, notebook=f"{name}.ipynb"
    )
    noted = _noted(f"graded-{field.word}", grade=True, points=float(field.points))
    return code_cell(f"graded-{field.word}"[:64], source, nbgrader=noted)


def _noted(grade_id: str, **more: object) -> dict[str, object]:
    """A cell that students cannot change."""
    noted = {"schema_version": 3, "grade_id": grade_id, "grade": False, "solution": False, "locked": True}
    return {**noted, "task": False, **more}


def earned(package: Path, handed_in: Path, part: str, name: str) -> float:
    """The points of one answer; what there is to say about it is printed, and so stands in the feedback."""
    marks = _marks(package, handed_in)
    for marked in marks.parts:
        for answer, points, _ in shares(marked):
            if (marked.label, answer.name) == (part, name):
                print(explanation(answer))
                return float(points)
    raise LookupError(f"the sheet has no answer {name} in part {part}")


@cache  # one notebook is marked for all of its cells
def _marks(package: Path, handed_in: Path) -> Marks:
    """The notebook is read as it was handed in. Its folder's folder is called after the student."""
    with zipfile.ZipFile(package) as archive:
        sheets = [file for file in archive.namelist() if file.startswith("sheets/")]
        family = Family({Path(file).stem: archive.read(file).decode() for file in sheets})
    name = family.name_for(handed_in.parent.parent.name)
    (answers,) = read_answers(handed_in)
    marks = family.marker(name).mark(answers)
    if marks.note:
        print(marks.note)
    return marks
