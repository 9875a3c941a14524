"""A question as PrairieLearn takes it through its life, by the contract it documents: generate, render, parse, grade,
render. PrairieLearn is on no package index. Run by the graders' Python in the folder of a course; standard input holds
hand-ins as JSON, and what becomes of each is printed."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chevron
import lxml.html

Data = dict[str, Any]
# What each function of server.py may change.
MAY_CHANGE = {
    "generate": {"params", "correct_answers"},
    "grade": {
        "correct_answers",
        "feedback",
        "format_errors",
        "params",
        "partial_scores",
        "score",
        "submitted_answers",
    },
}
ATTRIBUTES = {"answers-name", "allow-blank", "label", "show-help-text", "size", "weight"}
PANELS = {"pl-question-panel": "question", "pl-submission-panel": "submission", "pl-answer-panel": "answer"}


class Question:
    """One folder in `questions`."""

    def __init__(self, course: Path, name: str) -> None:
        self.folder = course / "questions" / name
        self.options = {
            "question_path": str(self.folder),
            "server_files_course_path": str(course / "serverFilesCourse"),
        }
        info = json.loads((self.folder / "info.json").read_text("utf-8"))
        assert info["type"] == "v3"
        assert len(info["uuid"]) == 36
        assert info["title"].strip()
        self.server: dict[str, Callable[[Data], None]] = {}
        exec((self.folder / "server.py").read_text("utf-8"), self.server)
        self.template = (self.folder / "question.html").read_text("utf-8")

    def call(self, function: str, data: Data) -> Data:
        """Everything goes through JSON, which knows no NaN; nothing is changed that is not this function's."""
        before = copy.deepcopy(data)
        self.server[function](data)
        after: Data = json.loads(json.dumps(data, allow_nan=False))
        changed = {key for key in after if after[key] != before.get(key)}
        assert changed <= MAY_CHANGE[function], changed
        return after

    def elements(self, data: Data) -> list[lxml.html.HtmlElement]:
        """The inputs after Mustache had its turn, their attributes checked as the element does it."""
        found = list(lxml.html.fromstring(f"<div>{chevron.render(self.template, data)}</div>").iter("pl-string-input"))
        for element in found:
            assert set(element.attrib) <= ATTRIBUTES, element.attrib
            int(element.get("weight")), int(element.get("size"))
        names = [element.get("answers-name") for element in found]
        assert len(names) == len(set(names))
        return found

    def panel(self, data: Data, name: str) -> str:
        page = lxml.html.fromstring(f"<div>{chevron.render(self.template, data)}</div>")
        for tag, panel in PANELS.items():
            for element in list(page.iter(tag)):
                if panel != name:
                    element.drop_tree()
        return str(lxml.html.tostring(page, encoding="unicode"))

    def graded(self, seed: Any, answers: list[str]) -> Data:
        data: Data = {
            "variant_seed": seed,
            "options": self.options,
            "params": {},
            "correct_answers": {},
            "submitted_answers": {},
            "raw_submitted_answers": {},
            "format_errors": {},
            "partial_scores": {},
            "feedback": {},
            "score": 0,
        }
        data = self.call("generate", data)
        page = self.panel(data, "question")
        inputs = self.elements(data)
        typed = dict(zip((element.get("answers-name") for element in inputs), answers, strict=True))
        data |= {"raw_submitted_answers": typed, "submitted_answers": dict(typed)}
        for element in inputs:
            if not typed[element.get("answers-name")] and element.get("allow-blank") != "true":
                data["format_errors"][element.get("answers-name")] = "blank"
        assert not data["format_errors"], "the hand-in would be invalid, and not graded"
        data = self.call("grade", data)
        assert not data["format_errors"]
        assert {element.get("answers-name") for element in inputs} == set(data["partial_scores"])
        assert all(0 <= part["score"] <= 1 for part in data["partial_scores"].values())
        weights = {element.get("answers-name"): int(element.get("weight")) for element in inputs}
        assert weights == {name: part["weight"] for name, part in data["partial_scores"].items()}
        return {**data, "page": page, "submission": self.panel(data, "submission")}


if __name__ == "__main__":
    question = Question(Path.cwd(), sys.argv[1])
    print(json.dumps([question.graded(*case) for case in json.load(sys.stdin)]))
