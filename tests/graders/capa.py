"""capa as Open edX runs it, in its sandbox and with the second of CPU that it grants: run by the graders' Python in the
folder of a package. Standard input holds hand-ins as JSON; what becomes of each is printed."""

from __future__ import annotations

import gettext
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django
from codejail import jail_code
from django.conf import settings
from django.template.loader import get_template

settings.configure(
    INSTALLED_APPS=["xblocks_contrib.problem.capa"],
    STATIC_URL="/static/",
    OPENEDX_TELEMETRY=[],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
)
django.setup()

from xblocks_contrib.problem.capa.capa_problem import LoncapaProblem, LoncapaSystem  # noqa: E402 (Django comes first)

jail_code.configure("python", sys.executable)
jail_code.set_limit("CPU", 1)
jail_code.set_limit("REALTIME", 0)  # of a machine that does other things beside
_run = jail_code.run_subprocess
# Without a user of its own codejail puts TMPDIR=tmp where a command belongs (openedx/codejail#162).
jail_code.run_subprocess = lambda cmd, **more: _run(["/usr/bin/env", *cmd], **more)


def opened(xml: str, library: bytes, seed: int) -> Any:
    system = LoncapaSystem(
        ajax_url="",
        anonymous_student_id="student",
        cache=None,
        can_execute_unsafe_code=lambda: False,
        get_python_lib_zip=lambda: library,
        DEBUG=False,
        i18n=gettext.NullTranslations(),
        render_template=lambda name, context: get_template(name).render(context),
        resources_fs=SimpleNamespace(root_path=""),
        seed=seed,
        xqueue=None,
    )
    block = SimpleNamespace(correctness_available=lambda: True, location=SimpleNamespace(course_key="course"))
    return LoncapaProblem(xml, "problem", system, block, seed=seed)


def graded(xml: str, library: bytes, seed: int, answers: list[str]) -> dict[str, Any]:
    problem = opened(xml, library, seed)
    page = problem.get_html()
    lines = sorted(problem.inputs, key=lambda name: int(name.rpartition("_")[2]))
    found = problem.grade_answers(dict(zip(lines, answers, strict=True)))
    return {
        "page": page,
        **problem.calculate_score(),
        "lines": [{"is": found.get_correctness(name), "says": found.get_msg(name)} for name in lines],
        "page_after": problem.get_html(),
    }


if __name__ == "__main__":
    problem_xml, course_library = Path(sys.argv[1]).read_text("utf-8"), Path("python_lib.zip").read_bytes()
    results = [graded(problem_xml, course_library, *case) for case in json.load(sys.stdin)]
    print(json.dumps(results))
