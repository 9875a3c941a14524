"""The sheet as a notebook to fill in, for the graders that collect notebooks."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from headwork.marking.graders.fields import Field
from headwork.marking.graders.paper import Piece, markdown, paper
from headwork.sheets.sheet import Sheet

Cell = dict[str, Any]


def student_cells(sheet: Sheet) -> Iterator[tuple[Cell, Piece]]:
    """What is to be read, and below every part a cell for its answers, each with the piece it belongs to."""
    yield text_cell("title", f"# {sheet.title}"), Piece(())
    for number, piece in enumerate(paper(sheet)):
        yield text_cell(f"text-{number}", markdown(piece.blocks)), piece
        if piece.fields:
            yield code_cell(f"answers-{number}", _to_fill_in(piece.fields)), piece


def _to_fill_in(fields: tuple[Field, ...]) -> str:
    lines = [f"# part {fields[0].part}", *(f"{field.python} = ...  # {_form(field)}" for field in fields)]
    return "\n".join(lines)


def _form(field: Field) -> str:
    if not field.entries:
        return 'a text, such as "n×d/h"'
    rows, columns = len(field.entries), len(field.entries[0])
    return "a number" if rows == columns == 1 else f"{rows}×{columns}, row by row: [[1, 0.25], [3, 4]]"


def text_cell(name: str, source: str, **metadata: Any) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source}


def code_cell(name: str, source: str, **metadata: Any) -> Cell:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": metadata,
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def notebook(cells: Iterable[Cell]) -> bytes:
    """An .ipynb file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(whole, ensure_ascii=False, indent=1) + "\n").encode()
