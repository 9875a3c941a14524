"""The pages that the build of the documentation makes: complete, and their examples run as they stand there."""

from __future__ import annotations

import doctest
import importlib.util
import re
from dataclasses import fields as fields_of
from inspect import signature
from pathlib import Path
from types import ModuleType

import pytest

import headwork
from headwork.engine.backend import Backend
from headwork.engine.bench import Limit, Line, Results
from headwork.engine.bench.growth import Growth
from headwork.formulas import FORMULAS
from headwork.marking import rules
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.example import compare
from headwork.sheets import fields
from tests.render.conftest import require

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def made() -> ModuleType:
    require("mkdocs")
    spec = importlib.util.spec_from_file_location("made", ROOT / "docs" / "made.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_mistake_stands_there_with_an_example_that_runs(made: ModuleType) -> None:
    page = "\n".join(made.catalogue())
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", page, re.M | re.S))
    assert list(sections) == list(CATALOGUE)
    for tag, section in sections.items():
        (prompts,) = re.findall(r"^```pycon\n(.*?)^```$", section, re.M | re.S)
        test = doctest.DocTestParser().get_doctest(prompts, {"compare": compare}, tag, tag, 0)
        said: list[str] = []
        doctest.DocTestRunner().run(test, out=said.append)
        assert not said, "".join(said)
        assert f'compare("{tag}"' in prompts


def test_every_command_stands_there_under_the_name_that_is_typed(made: ModuleType) -> None:
    page = "\n".join(made.command_line())
    for command in ("solve", "mark", "export", "inspect", "doctor"):
        assert f"## headwork {command}\n\n```text\nUsage: headwork {command} " in page


def test_prompts_in_a_docstring_become_code(made: ModuleType) -> None:
    text = "Words.\n\n>>> 1 + 1\n2\n>>> 2\n2\n\nMore words: a >>> b.\n"
    assert made.fenced(text) == "Words.\n\n```pycon\n>>> 1 + 1\n2\n>>> 2\n2\n```\n\nMore words: a >>> b."


def test_columns_in_a_docstring_become_a_list(made: ModuleType) -> None:
    text = "Words  here.\n\nmask           may be `read`;\n               |or| not\ndrop, seed  as drawn\n\nMore words."
    assert made.fenced(text) == (
        "Words  here.\n\n\n`mask`\n:   may be `read`; |or| not\n\n\n`drop`, `seed`\n:   as drawn\n\n\nMore words."
    )


def test_a_screen_shows_the_command_and_is_as_wide_as_what_it_prints(made: ModuleType) -> None:
    drawn = made.screen("mark", "two.toml", "ada.toml").replace("&#160;", " ")
    assert "$ headwork mark two.toml ada.toml" in drawn
    assert "consistent with forgot-scale" in drawn


@pytest.mark.parametrize("module", ["headwork", "headwork.engine", "headwork.torch", "headwork.jax"])
def test_every_public_name_is_on_the_page_about_the_api(module: str) -> None:
    if module == "headwork.torch":
        require("torch")
    public = set(importlib.import_module(module).__all__)
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    shown = set(re.findall(rf"^::: {re.escape(module)}\.(\w+)$", page, re.M))
    if module == "headwork.engine":
        shown |= set(re.findall(r"^::: headwork\.(\w+)$", page, re.M))
    assert public <= shown


def test_every_variable_that_is_read_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")
    read = set()
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "native").rglob("*.[ch]*"), *(ROOT / "tests").rglob("*.py")]:
        asked = r"(?:environ\.get\(|environ\[|getenv\()\"([A-Z_]+)\"|\"([A-Z_]+)\" in os\.environ"
        names = {name for found in re.findall(asked, path.read_text("utf-8")) for name in found if name}
        read |= {name for name in names if ROOT / "tests" not in path.parents or name.startswith("HEADWORK_")}
    documented = set(re.findall(r"^\| `(\w+)`", page, re.M))
    assert {name for name in read if not name.startswith("TORCHELASTIC_")} <= documented  # torchrun tells of itself so


def test_every_figure_of_the_bench_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
    held = {field.name for kept in (Results, Line, Limit, Growth, Backend) for field in fields_of(kept)}
    assert not held - set(re.findall(r"`(\w+)`", page))


def test_every_key_of_a_sheet_is_documented() -> None:
    for name, keys in (("sheets", {*fields._PROBLEM, *fields._PART, *fields._SIZES}), ("marking", {*rules._KEYS})):
        words = set(re.findall(r"\w+", (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8")))
        assert not keys - words


def test_what_other_words_lead_to_is_there() -> None:
    """The names that the page gives are functions, options, formulas and keys, and each word is in one row."""
    page = (ROOT / "docs" / "reference" / "words.md").read_text("utf-8")
    named = re.findall(r"`([^`]+)`", page)
    for name in (name for name in named if name.startswith("headwork.")):
        module, _, attribute = name.rpartition(".")
        if module == "headwork.torch":
            require("torch")
        assert hasattr(importlib.import_module(module), attribute), name
    options = {name.rstrip("=") for name in named if name.endswith("=")}
    assert options <= set(signature(headwork.attention).parameters)
    assert set(re.findall(r'"(\w+)"`', page)) <= {*FORMULAS, "gradient"}
    keys = {"context", "K_past", "V_past", "points", *fields._PROBLEM}
    assert {name for name in named if re.fullmatch(r"\w+", name)} <= keys
    others = [row.split("|")[1] for row in page.splitlines() if row.startswith("| ")]
    for word in (
        "SDPA",
        "GQA",
        "MQA",
        "RoPE",
        "ALiBi",
        "KV cache",
        "FlashAttention",
        "LaTeX",
        "Jupyter",
        "rubric",
        "quiz",
    ):
        assert sum(word in row for row in others) == 1, word
