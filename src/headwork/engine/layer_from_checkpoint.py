"""`MultiHead.load`: a layer of somebody's model, as the arguments that `MultiHead` takes."""

from os import PathLike
from typing import Any, Literal

import numpy as np

from headwork.engine import configuration
from headwork.engine.arrays import Array
from headwork.engine.checkpoint import Checkpoint, opened
from headwork.engine.head_norm import HeadNorm
from headwork.engine.layer_projections import BIASES, MATRICES, whole
from headwork.engine.relative import by_distance
from headwork.engine.rotary import Rotary
from headwork.engine.tensor_names import FoundLayer, check_complete, chosen
from headwork.errors import HeadworkError, ShapeError


def load(
    source: str | PathLike[str] | Any,
    layer: int | str | None,
    heads: int | None,
    rotary: Rotary | Literal["config"] | None,
) -> dict[str, Any]:
    """The arguments of `MultiHead` for one layer of `source`."""
    checkpoint = opened(source)
    names = checkpoint.readers.keys()
    place = chosen(names, layer, checkpoint.source)
    check_complete(place, names, checkpoint.source)
    scale = configuration.scale(checkpoint, place)
    if getattr(checkpoint.attention(place.prefix), "add_zero_attn", False):
        raise HeadworkError(
            f"{checkpoint.source}: add_zero_attn gives every token a key of zeros more, as a MultiHead has not."
        )
    number = whole("heads", configuration.heads(checkpoint, place) if heads is None else heads)
    stored = projections(checkpoint, place)
    d_k, rest = divmod(stored[0].shape[1], number)
    if rest or stored[1].shape[1] % max(d_k, 1):
        raise ShapeError(
            f"{checkpoint.source}: {number} heads cannot share the {stored[0].shape[1]} columns of W_Q and the "
            f"{stored[1].shape[1]} of W_K: give heads= the right number."
        )
    arguments: dict[str, Any] = dict(zip(MATRICES, stored, strict=True)) | biases(checkpoint, place, stored)
    turned = configuration.rotary(checkpoint, place, d_k) if rotary == "config" else rotary
    arguments |= {"heads": number, "kv_heads": stored[1].shape[1] // d_k, "rotary": turned, "scale": scale}
    arguments |= {"softcap": configuration.softcap(checkpoint, place), "relative": relative(checkpoint, place)}
    return arguments | norms(checkpoint, place)


def relative(checkpoint: Checkpoint, place: FoundLayer) -> Array | None:
    """The biases by distance, which the first block of a stack holds for all of them."""
    if not place.scheme.relative:
        return None
    stack, _, _ = place.prefix.partition("block.")
    name = f"{stack}block.0.layer.0.{place.scheme.relative}"
    if name not in checkpoint.readers:
        raise HeadworkError(f"{checkpoint.source}: {place} adds biases by distance, and {name} is not there.")
    farthest = configuration.section(checkpoint, place).get("relative_attention_max_distance", 128)
    return by_distance(checkpoint.array(name), farthest, both_ways="decoder" not in stack)


def norms(checkpoint: Checkpoint, place: FoundLayer) -> dict[str, HeadNorm]:
    """Of queries and keys, where the layer has them."""
    found = {name: f"{place.prefix}{name}.weight" for name in place.scheme.norms}
    if not any(name in checkpoint.readers for name in found.values()):
        return {}
    beyond = configuration.gain_beyond(checkpoint, place)
    eps = configuration.section(checkpoint, place).get("rms_norm_eps", 1e-6)
    return {name: HeadNorm(checkpoint.array(stored) + beyond, eps) for name, stored in found.items()}


def projections(checkpoint: Checkpoint, place: FoundLayer) -> list[Array]:
    """W_Q, W_K, W_V, W_O with a row for every column that goes in; views of what is stored."""
    scheme = place.scheme
    names = [*scheme.names(place.prefix, "weight"), place.prefix + scheme.output + "weight"]
    arrays = [checkpoint.array(name) for name in names]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 2 or 0 in array.shape:
            raise ShapeError(f"{checkpoint.source}: {name} is {array.shape}, where a matrix belongs.")
    if scheme.rows:
        arrays = [array.T for array in arrays]
    return arrays if len(arrays) == 4 else [*thirds(arrays[0], checkpoint, names[0]), arrays[1]]


def biases(checkpoint: Checkpoint, place: FoundLayer, stored: list[Array]) -> dict[str, Array]:
    """Those that are there."""
    scheme, names = place.scheme, place.scheme.names(place.prefix, "bias")
    arrays = [checkpoint.array(name) if name in checkpoint.readers else None for name in names]
    if len(arrays) == 1:
        arrays = [None] * 3 if arrays[0] is None else list(thirds(arrays[0], checkpoint, names[0]))
    last = place.prefix + scheme.output + "bias"
    arrays.append(checkpoint.array(last) if last in checkpoint.readers else None)
    return {name: a for name, a in zip(BIASES, arrays, strict=True) if a is not None}


def thirds(wide: Array, checkpoint: Checkpoint, name: str) -> list[Array]:
    """Q, K and V out of what holds them side by side."""
    if wide.shape[-1] % 3:
        raise ShapeError(f"{checkpoint.source}: {name} holds Q, K and V, but {wide.shape[-1]} is no multiple of 3.")
    return np.split(wide, 3, axis=-1)
