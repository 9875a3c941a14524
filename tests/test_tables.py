"""Every reading has a rule for every operation, and every renderer a rule for every line."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, get_args

import pytest

from headwork.inspecting import arrays
from headwork.marking.graders.maxima import MAXIMA
from headwork.maths import Maths
from headwork.mistakes import operations
from headwork.ops import LAYER, OPS, Op
from headwork.readings.counts import COUNTS
from headwork.readings.entries import ENTRIES
from headwork.readings.exact import EXACT
from headwork.readings.floats import FLOATS
from headwork.readings.gradients import GRADIENTS
from headwork.readings.moments import MOMENTS
from headwork.readings.shapes import SHAPES
from headwork.readings.symbols import SYMBOLS
from headwork.readings.values import VALUES
from headwork.render.arithmetic import ARITHMETIC
from headwork.render.blocks import Block
from headwork.render.formula import FORMULA
from headwork.render.notebook import TORCH
from headwork.render.page import LINES
from headwork.sheets.sheet import KINDS
from headwork.solver import KINDS as SOLVED_KINDS
from headwork.web.hints import SAY
from headwork.working import Line

TABLES: dict[str, Mapping[Any, Any]] = {
    "shapes": SHAPES,
    "floats": FLOATS,
    "values": VALUES,
    "exact": EXACT,
    "symbols": SYMBOLS,
    "counts": COUNTS,
    "moments": MOMENTS,
    "entries": ENTRIES,
    "gradients": GRADIENTS,
    "formula": FORMULA,
    "arithmetic": ARITHMETIC,
    "a notebook's torch": TORCH,
    "the bench's hints": SAY,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_reading_has_a_rule_for_every_operation(name: str) -> None:
    assert set(TABLES[name]) == set(OPS)


@pytest.mark.parametrize(
    "table",
    [operations.SHAPES, operations.FLOATS, operations.EXACT, arrays.VALUES, MAXIMA],
    ids=["shapes", "floats", "exact", "values", "maxima"],
)
def test_what_the_catalogue_reads_with_has_a_rule_for_its_own_operations_too(table: Mapping[Any, Any]) -> None:
    own = {op for op in vars(operations).values() if isinstance(op, type) and issubclass(op, Op)} - {Op, *OPS}
    assert own == set(operations.OPERATIONS)
    assert set(table) == {*OPS, *own}


def test_eight_operations_make_the_layer_nine_take_it_apart_two_came_later_and_three_stand_around_it() -> None:
    assert (len(LAYER), len(OPS)) == (8, 22)


def test_every_kind_of_line_is_made_of_blocks() -> None:
    assert set(LINES) == set(get_args(Line))


def test_every_kind_of_part_is_solved() -> None:
    assert set(SOLVED_KINDS) == set(KINDS)


FORMATS = ("text", "markdown", "latex", "typst", "html")


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_sets_every_block(format: str) -> None:
    assert set(import_module(f"headwork.render.{format}").BLOCKS) == set(get_args(Block))


@pytest.mark.parametrize("module", ["inline", "render.latex_maths", "render.typst", "render.html"])
def test_every_format_sets_every_node(module: str) -> None:
    assert set(import_module(f"headwork.{module}").NODES) == set(get_args(Maths))
