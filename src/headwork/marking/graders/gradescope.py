"""Gradescope: a zip whose `run_autograder` marks one hand-in and writes `results.json`, one test for every answer.

/autograder/source is the zip, /autograder/submission what was handed in, /autograder/submission_metadata.json by whom
and when. Students hand in again as often as they like, so the working of a wrong entry, which shows its right value,
stays hidden until the day it is due.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.answers import SUFFIXES, Answers, ignored, read_answers
from headwork.marking.graders.family import Family, packed_family
from headwork.marking.graders.fields import shares
from headwork.marking.graders.files import REQUIRES, Files, headwork_files
from headwork.marking.mark import Marker
from headwork.marking.marks import Marks, PartMark, no_working
from headwork.marking.report import explanation, summary

_SETUP = f"""#!/usr/bin/env bash
# Run once, when Gradescope builds the image. headwork itself lies beside this file.
set -euo pipefail
cd "$(dirname "$0")"
export PIP_BREAK_SYSTEM_PACKAGES=1
python3 -m pip --version >/dev/null || {{ apt-get update -qq; apt-get install -y -qq python3 python3-pip; }}
python3 -m pip install --quiet {" ".join(REQUIRES)}
# Python 3.10 has no tomllib of its own.
python3 -c 'import tomllib' 2>/dev/null || {{
    python3 -m pip install --quiet tomli
    echo 'from tomli import *' >tomllib.py
}}
"""
# Gradescope shows nothing at all where there is no JSON, so there is some even if Python cannot start.
_RUN = """#!/usr/bin/env bash
root=${1:-/autograder}
mkdir -p "$root/results"
echo '{"score": 0, "output": "The grader did not start; please tell your teacher."}' >"$root/results/results.json"
cd "$root/source" && python3 -m headwork.marking.graders.gradescope "$root"
"""


def package(family: Family, name: str) -> Files:
    scripts = {"setup.sh": _SETUP.encode(), "run_autograder": _RUN.encode()}
    return {**scripts, **family.files("sheets"), **headwork_files()}


@dataclass(frozen=True)
class HandIn:
    """Who handed in, when, and whether it was due by then."""

    names: tuple[str, ...]  # of everybody in the group, in order
    when: datetime | None
    overdue: bool

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> HandIn:
        """What `submission_metadata.json` tells; where it is silent everything is open."""
        names = sorted(str(user.get("email") or user.get("name") or "") for user in told.get("users") or ())
        when = datetime.fromisoformat(told["created_at"]) if told.get("created_at") else None
        due = (told.get("assignment") or {}).get("due_date")
        overdue = when is None or not due or when >= datetime.fromisoformat(due)
        return cls(tuple(names), when, overdue)

    def marker(self, family: Family, known_as: tuple[str, ...] = ()) -> Marker:
        """For the sheet of whoever handed in, on the day it was handed in."""
        name = family.name_for(*(self.names or known_as))
        return Marker(family.sheet(name), self.when.date() if self.when else None)


def main(root: Path) -> None:
    """Mark what was handed in; whatever happens, a whole `results.json` is there in the end."""
    start = perf_counter()
    try:
        family = packed_family(root / "source" / "sheets")
        told = root / "submission_metadata.json"
        hand_in = HandIn.of(json.loads(told.read_text("utf-8")) if told.exists() else {})
        marker = hand_in.marker(family)
        answers = replace(_handed_in(root / "submission"), student=", ".join(hand_in.names) or "student")
        results = gradescope_json(marker.mark(answers), perf_counter() - start, hand_in.overdue)
    except Exception as error:  # a grader that dies says nothing to anybody
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        said = str(error) if isinstance(error, HeadworkError) else "The grader failed; please tell your teacher."
        results = json.dumps({"score": 0.0, "output": said, "stdout_visibility": "hidden"})
    whole = root / "results" / "results.json.part"
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(results, "utf-8")
    whole.replace(whole.with_suffix(""))


def _handed_in(folder: Path) -> Answers:
    """The one file of answers among what was handed in."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix.lower() in SUFFIXES and not ignored(path.relative_to(folder).parts)
    ]
    if len(found) != 1:
        names = ", ".join(path.name for path in found[:5]) or "none"
        raise HeadworkError(f"Hand in one file of answers ({', '.join(SUFFIXES)}); there is: {names}.")
    students = list(read_answers(found[0]))
    if len(students) != 1:
        raise HeadworkError(f"{found[0].name} holds {len(students)} students' answers; hand in your own alone.")
    return students[0]


def gradescope_json(marks: Marks, seconds: float, overdue: bool = True) -> str:
    """One student's results. Gradescope wants floats; the exact score stands in `extra_data`."""
    results = {
        "score": float(marks.score),
        "execution_time": round(seconds, 3),
        "output": summary(marks),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"score": str(marks.score), "max_score": str(marks.max_score), "tags": list(marks.tags)},
        "tests": [test for part in marks.parts for test in _tests(part, overdue)],
    }
    return json.dumps(results, indent=2, ensure_ascii=False) + "\n"


def _tests(part: PartMark, overdue: bool) -> Iterator[dict[str, Any]]:
    if not part.answers:
        yield _test(part, "", " ".join(part.notes))
    for answer, earned, most in shares(part):
        shown = answer if overdue else replace(answer, working=no_working)
        yield {
            **_test(part, answer.name, explanation(shown), answer.tags),
            "score": float(earned),
            "max_score": float(most),
            "status": "passed" if answer.right == answer.entries else "failed",
        }
        if not overdue and answer.working() is not None:
            yield {**_test(part, f"{answer.name}, worked", explanation(answer)), "visibility": "after_due_date"}


def _test(part: PartMark, name: str, output: str, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": f"({part.label}) {name}".strip(),
        "number": part.label,
        "output": output,
        "output_format": "text",
        "tags": list(tags),
        "visibility": "visible",
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
