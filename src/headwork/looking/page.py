"""One self-contained page: every head of a layer as a small map, one head large, a pair's score taken apart."""

import base64
import json
from dataclasses import asdict
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from headwork.engine.arrays import Array
from headwork.errors import HeadworkError
from headwork.looking.capture import Captured, HeadsOfLayer
from headwork.looking.measures import measures, strongest
from headwork.render.colours import style_sheet

STRONGEST = 8  # pairs that are listed
LARGEST = 32 << 20  # bytes of a page that a browser opens without a wait


def heads_page(captured: Captured) -> str:
    """The page as HTML."""
    # No "<" within the script: a token may be "</script>", or the "<!--<script>" after which its end is not seen.
    data = json.dumps(_data(captured), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    if len(data) > LARGEST:
        raise HeadworkError(
            f"a page of {len(captured.tokens)} tokens and {len(captured.layers)} layers would take {len(data) >> 20} "
            f"MB, and {LARGEST >> 20} open without a wait; give a shorter text or single layers by --layer"
        )
    title = escape(f"The heads of {captured.name}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{style_sheet()}{_static('look.css')}</style>\n</head>\n<body>\n"
        f'<main>\n<h1>{title}</h1>\n<p class="text">{escape(captured.text)}</p>\n{_static("look.html")}</main>\n'
        f'<script type="application/json" id="heads">{data}</script>\n<script>\n{_static("look.js")}</script>\n'
        "</body>\n</html>\n"
    )


def _static(name: str) -> str:
    return (resources.files("headwork.looking") / "static" / name).read_text("utf-8")


def _data(captured: Captured) -> dict[str, Any]:
    return {"tokens": captured.tokens, "layers": [_layer(layer) for layer in captured.layers]}


def _layer(layer: HeadsOfLayer) -> dict[str, Any]:
    heads = [
        {
            "weights": _packed(np.ceil(weights * 65535 - 0.5).clip(weights > 0), np.uint16),  # 0 is hidden
            "measures": {name: round(number, 4) for name, number in asdict(measures(weights)).items()},
            "strongest": strongest(weights, STRONGEST),
        }
        for weights in layer.weights
    ]
    each = {name: _whole(array) for name, array in (("q", layer.q), ("k", layer.k))}
    return {"number": layer.number, "d": layer.q.shape[-1], "scale": layer.scale, "heads": heads, **each}


def _whole(array: Array) -> dict[str, Any]:
    """An array as whole numbers of 16 bits, for each head, and what one of them stands for."""
    unit = float(np.abs(array).max(initial=0)) / 32767 or 1.0
    return {"unit": unit, "each": [_packed(np.round(head / unit), np.int16) for head in array]}


def _packed(array: Array, kind: type[np.generic]) -> str:
    return base64.b64encode(array.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
