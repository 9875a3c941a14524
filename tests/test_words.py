"""One word, one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import headwork

ROOT = Path(headwork.__file__).parent
APART = ("engine", "torch", "jax")  # which know nothing of the rest, nor the rest of them


EVERYWHERE = ("Block", "Graph", "Sizes", "Place")  # words that stood for two things each, and are one thing at most


def named(tree: ast.Module) -> list[str]:
    """The classes of a module, and what it gives a name of its own: `Place = tuple[int, int]`."""
    given = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    return [
        *(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        *(target.id for target in given if isinstance(target, ast.Name)),
    ]


def test_a_word_that_stood_for_two_things_stands_for_one() -> None:
    found = [name for path in ROOT.rglob("*.py") for name in named(ast.parse(path.read_text("utf-8")))]
    assert {word: found.count(word) for word in EVERYWHERE if found.count(word) > 1} == {}


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and (place.parts[0] not in APART or node.name in EVERYWHERE):
                homes[node.name].append(str(place))
    assert homes
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
