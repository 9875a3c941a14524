"""One word, one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import headwork

ROOT = Path(headwork.__file__).parent
APART = ("engine", "torch", "jax")  # which know nothing of the rest, nor the rest of them


EVERYWHERE = ("Block", "Graph", "Sizes", "Place")  # words that stood for two things each, and are one thing at most


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and (place.parts[0] not in APART or node.name in EVERYWHERE):
                homes[node.name].append(str(place))
    assert homes
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
