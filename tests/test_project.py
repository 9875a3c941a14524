"""What a project has, held together: one version, labels that exist, a workflow that runs what CI runs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
WRITTEN = (".py", ".js", ".mjs", ".css", ".cpp", ".h")
LONGEST = 350  # lines


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_version_has_one_place() -> None:
    """pyproject.toml has it, the package asks its metadata; what else must name it is held to it here."""
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), re.M) == [version]
    headings = re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.M)
    assert headings[0] == version
    named = [path.name for path in (ROOT / "src").rglob("*.py") if f'"{version}"' in path.read_text("utf-8")]
    assert not named


def test_every_label_in_use_is_known() -> None:
    known = set(re.findall(r"name: (\w+)", text(".github/labels.yml")))
    for template in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        assert set(re.findall(r"^labels: (\w+)$", template.read_text("utf-8"), re.M)) <= known
    assert set(re.findall(r"labelled `(\w+)`", text("CONTRIBUTING.md"))) <= known


def test_the_public_workflow_runs_what_ci_runs() -> None:
    """Where the packages that it asks apt for exist: on Debian, as root."""
    workflow = text(".github/workflows/ci.yml")
    assert re.findall(r"- run: (.*)$", workflow, re.M)[-1] == ".ci/run"
    assert re.search(r"image: python:3\.\d+-bookworm$", workflow, re.M)


def test_no_file_of_the_source_is_long() -> None:
    """A file that outgrows this is two files."""
    files = [path for room in ("src", "native") for path in (ROOT / room).rglob("*") if path.suffix in WRITTEN]
    assert len(files) > 300
    assert {path.name: n for path in files if (n := len(path.read_text("utf-8").splitlines())) > LONGEST} == {}


def test_every_file_that_the_architecture_names_is_there() -> None:
    named = set(re.findall(r"`([\w/]+(?:\.(?:py|js|mjs|cpp|h|txt)|/))`", text("ARCHITECTURE.md")))
    assert len(named) > 60
    rooms = ("src", "native", "tests", "bench", "docs")
    there = [
        f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}"
        for r in rooms
        for path in (ROOT / r, *(ROOT / r).rglob("*"))
    ]
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in there)]
