"""Imports are light and point one way."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwork

ROOT = Path(headwork.__file__).parent
# Each layer may import from itself and from those before it.
LAYERS = [
    ["errors", "numbers"],
    ["ops"],
    ["graph"],
    ["notation"],
    ["readings", "formulas", "build"],
    ["why_scale", "proofs", "sheets"],
    ["working", "solving", "configure", "one_step"],
    ["marking", "render"],
    ["web", "cli", "testing"],
]
HEAVY = ["sympy", "rich", "mpmath", "torch", "typer", "fastapi", "typst", "matplotlib", "nbformat", "safetensors"]


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages([str(ROOT)], "headwork.") if not m.name.endswith("._native")]


def layer(module: str) -> int | None:
    part = module.split(".")[1] if "." in module else None
    return next((i for i, names in enumerate(LAYERS) if part in names), None)


def imported_when_loaded(module: str) -> set[str]:
    """What a module imports at its top: not inside functions, not for type checkers alone."""
    path = ROOT.joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


@pytest.mark.parametrize("module", modules())
def test_imports_point_one_way(module: str) -> None:
    mine = layer(module)
    for other in imported_when_loaded(module):
        theirs = layer(other) if other.startswith("headwork.") else None
        if mine is not None and theirs is not None:
            assert theirs <= mine, f"{module} imports {other}"


def test_the_engine_knows_nothing_of_the_rest() -> None:
    for module in modules():
        if module.startswith("headwork.engine"):
            ours = {m for m in imported_when_loaded(module) if m.startswith("headwork")}
            assert all(m.startswith(("headwork.errors", "headwork.engine")) for m in ours), module


def loaded_by(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_headwork_is_light() -> None:
    loaded = loaded_by("import headwork")
    assert not loaded.intersection(HEAVY)


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
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        headwork.nonsense  # noqa: B018  # the access is the test


@pytest.mark.parametrize("module", modules())
def test_examples_in_docstrings_hold(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.failed == 0
