"""otter-grader: its test files hold the points, and a plugin of ours gives them. Nothing of a student's is run.

A test file by itself fails, so that where the plugin did not come to its work nobody has points by accident.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwork.marking.answers import read_answers
from headwork.marking.graders.family import Family
from headwork.marking.graders.fields import Field, fields, shares
from headwork.marking.graders.files import Files, wheel
from headwork.marking.graders.gradescope import HandIn
from headwork.marking.graders.paper import notebook, student_cells
from headwork.marking.marks import no_working
from headwork.marking.report import explanation, summary


def package(family: Family, name: str) -> Files:
    """A folder: what `otter generate` takes, a notebook for every sheet, and headwork as a wheel."""
    carried, content = wheel()
    config = {"show_all_public": True, "plugins": [{f"{__name__}.Plugin": {"sheets": dict(family.texts)}}]}
    tests = {f"tests/{field.word}.py": _test(field) for field in fields(family.first)}
    notebooks = {
        f"notebooks/{sheet}.ipynb": notebook(cell for cell, _ in student_cells(family.marker(sheet)))
        for sheet in family.texts
    }
    # otter lays the files that it is given into files/, and its image has them there.
    requirements = f"headwork @ file:///autograder/source/files/{carried}\n".encode()
    made = json.dumps(config, indent=2, ensure_ascii=False).encode()
    return {"otter_config.json": made, "requirements.txt": requirements, **tests, **notebooks, carried: content}


def _test(field: Field) -> bytes:
    case = {"code": ">>> 'marked by headwork'\n'not yet'\n", "hidden": False, "locked": False}
    suite = {"cases": [case], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
    test = {"name": field.word, "points": float(field.points), "suites": [suite]}
    return f"OK_FORMAT = True\n\ntest = {test!r}\n".encode()


class Plugin:
    """What otter loads by its name in `otter_config.json`."""

    def __init__(self, path: str | None, metadata: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        self.path, self.hand_in, self.family = path, HandIn.of(metadata), Family(config["sheets"])

    def before_execution(self, submission: Any) -> Any:
        """Answers are read, not run: a notebook that stops or never ends is marked like any other."""
        submission.cells = []
        return submission

    def after_grading(self, results: Any) -> None:
        assert self.path is not None
        path = Path(self.path)
        (answers,) = read_answers(path)
        marks = self.hand_in.marker(self.family, (path.stem,)).mark(answers)
        results.set_output(summary(marks))
        named = {(field.part, field.name): field.word for field in fields(self.family.first)}
        for part in marks.parts:
            for answer, earned, _ in shares(part):
                word = named[part.label, answer.name]
                results.update_score(word, float(earned))
                shown = answer if self.hand_in.overdue else replace(answer, working=no_working)
                for case in results.get_result(word).test_case_results:
                    case.passed = answer.right == answer.entries
                    case.message = explanation(shown)
