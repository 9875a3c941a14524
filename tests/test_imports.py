"""Imports are light and point one way."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import headwork

ROOT = Path(headwork.__file__).parent
# Each may import from itself and from those before it, at its top and inside its functions.
ORDER = [
    *("errors", "extras", "maths", "inline", "numbers", "ops", "graph", "notation"),
    *("readings", "formulas", "variations", "around", "build"),
    *(
        "why_scale",
        "sheets",
        "proofs",
        "arguments",
        "claims",
        "working",
        "solver",
        "solving",
        "configure",
        "layer_on_page",
        "by_hand",
    ),
    *("render", "mistakes"),
    *("inspecting", "marking", "looking"),
    *("testing", "web", "cli", "__main__"),
]
APART = ("engine", "torch", "jax", "transformers", "diffusers")
# What prints itself, or makes an array of itself, asks for what that takes only then; the rest has a direction.
PRINTS_ITSELF = ("__repr__", "__str__", "_repr_html_", "_repr_svg_", "__array__", "save", "work")
HEAVY = [
    "sympy",
    "rich",
    "mpmath",
    "torch",
    "jax",
    "typer",
    "fastapi",
    "typst",
    "matplotlib",
    "nbformat",
    "safetensors",
]


@cache
def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages([str(ROOT)], "headwork.") if not m.name.endswith("._native")]


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def source(module: str) -> str:
    path = ROOT.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")


def imported(text: str) -> set[str]:
    """Every module that a source imports, wherever in it; not what type checkers alone see, nor what prints it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & set(modules())) or {node.module}
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif not (isinstance(node, ast.FunctionDef) and node.name in PRINTS_ITSELF):
            waiting += ast.iter_child_nodes(node)
    return found


@cache
def ours(module: str) -> set[str]:
    return {other for other in imported(source(module)) if other.startswith("headwork.")}


def test_imports_are_seen_wherever_they_stand() -> None:
    text = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    from headwork.sheets import load\n"
    text += "class C:\n    def __repr__(self):\n        import c\n    def g(self):\n        import d\n"
    assert imported(text) == {"b", "headwork.sheets.load", "d"}


def test_every_room_has_its_place() -> None:
    assert {room(module) for module in modules()} == {*ORDER, *APART}


def test_the_map_has_every_room_in_this_order() -> None:
    text = (Path(__file__).parent.parent / "ARCHITECTURE.md").read_text("utf-8")
    _, _, rest = text.partition("src/headwork/\n")
    named = [re.match(r"  ((?:\w+(?:\.py|/) )*)", line) for line in rest.partition("\nnative/")[0].splitlines()]
    mapped = [name.removesuffix(".py").rstrip("/") for found in named if found for name in found[1].split()]
    assert {*ORDER, *APART} - {"__main__"} == set(mapped)
    assert mapped == [*(r for r in ORDER if r != "__main__"), *APART]


@pytest.mark.parametrize("module", [m for m in modules() if room(m) in ORDER])
def test_imports_point_one_way(module: str) -> None:
    mine = ORDER.index(room(module))
    for other in ours(module):
        assert room(other) in APART or ORDER.index(room(other)) <= mine, f"{module} imports {other}"


def test_no_module_leads_back_to_itself() -> None:
    """The order of the rooms says it for all of them but the modules within one room."""
    resting: dict[str, set[str]] = {m: {o for o in ours(m) if room(o) == room(m)} - {m} for m in modules()}
    while loose := {m for m, others in resting.items() if not others & resting.keys()}:
        resting = {m: others for m, others in resting.items() if m not in loose}
    assert not resting


def test_the_engine_knows_nothing_of_the_rest() -> None:
    for module in modules():
        if room(module) == "engine":
            assert all(m.startswith(("headwork.errors", "headwork.extras", "headwork.engine")) for m in ours(module)), (
                module
            )


def loaded_by(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_headwork_is_light() -> None:
    loaded = loaded_by("import headwork")
    assert not loaded.intersection(HEAVY)


def test_the_command_line_loads_what_a_command_needs_when_it_is_asked_for() -> None:
    """Before, `headwork sheets` made ready to solve, by way of a list of graders in a help text."""
    loaded = {name for name in loaded_by("import headwork.cli") if name.startswith("headwork")}
    light = {"headwork", *(f"headwork.{name}" for name in ("errors", "extras", "marking", "render", "render.save"))}
    assert loaded <= light | {name for name in loaded if name.startswith(("headwork.cli", "headwork.marking.graders"))}


def test_a_layer_needs_numpy_alone() -> None:
    loaded = loaded_by("import headwork; headwork.MultiHead([[1.0]], [[1.0]], [[1.0]], [[1.0]], heads=1)([[1.0]])")
    assert not loaded.intersection(HEAVY)
    assert not {
        name for name in loaded if name.startswith(("headwork.sheets", "headwork.formulas", "headwork.solving"))
    }


def test_that_test_can_fail() -> None:
    assert "sympy" in loaded_by("import headwork; headwork.prove")


def test_solving_numbers_needs_no_sympy() -> None:
    assert "sympy" not in loaded_by("import headwork; headwork.solve('two-heads')")


def test_listing_sheets_loads_neither_numpy_nor_sympy() -> None:
    loaded = loaded_by("from headwork.sheets.shelf import summaries; summaries()")
    assert not loaded.intersection([*HEAVY, "numpy"])


def test_every_module_of_the_source_is_installed() -> None:
    """What the build leaves out is missing for users, though every test of it passes in the source tree."""
    source = Path(__file__).parent.parent / "src" / "headwork"
    files = {path.relative_to(source) for path in source.rglob("*") if path.suffix in (".py", ".toml", ".js", ".css")}
    assert files
    assert not {str(path) for path in files if not (ROOT / path).exists()}


def test_the_public_names_are_there() -> None:
    assert dir(headwork) == sorted(headwork.__all__)
    for name in headwork.__all__:
        assert getattr(headwork, name) is not None
        assert name in vars(headwork), "found once, kept from then on"
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        headwork.nonsense  # noqa: B018  # the access is the test


# JAX warns at every fork of a process that it was imported into, so its examples run in a process of its own.
@pytest.mark.parametrize("module", [m for m in modules() if room(m) != "jax"])
def test_examples_in_docstrings_hold(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.failed == 0
