"""`MultiHead.load`: a layer of somebody's model, as the arguments that `MultiHead` takes."""

from collections.abc import Mapping
from math import pi
from os import PathLike
from typing import Any, Literal

import numpy as np

from headwork.engine.arrays import Array
from headwork.engine.checkpoint import Checkpoint, opened, short
from headwork.engine.layer_projections import BIASES, MATRICES, whole
from headwork.engine.rotary import Rotary
from headwork.engine.tensor_names import FoundLayer, check_complete, chosen
from headwork.errors import HeadworkError, ShapeError

HEADS = ("num_attention_heads", "n_head", "num_heads")  # what configurations call their number
# What a configuration may say that makes attention another one than a layer loaded by its names alone.
OTHERWISE = (
    *("scale_attn_by_inverse_layer_idx", "attn_logit_softcapping"),
    *("query_pre_attn_scalar", "attention_multiplier"),
)


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
    if changed := [name for name in OTHERWISE if checkpoint.config.get(name)]:
        raise HeadworkError(
            f"{checkpoint.source}: the configuration sets {', '.join(changed)}, which changes what the layer computes: "
            "build it from its arrays by hand."
        )
    if getattr(attention_of(checkpoint, place), "add_zero_attn", False):
        raise HeadworkError(
            f"{checkpoint.source}: add_zero_attn gives every token a key of zeros more, as a MultiHead has not."
        )
    number = whole("heads", told_heads(checkpoint, place) if heads is None else heads)
    stored = projections(checkpoint, place)
    d_k, rest = divmod(stored[0].shape[1], number)
    if rest or stored[1].shape[1] % max(d_k, 1):
        raise ShapeError(
            f"{checkpoint.source}: {number} heads cannot share the {stored[0].shape[1]} columns of W_Q and the "
            f"{stored[1].shape[1]} of W_K: give heads= the right number."
        )
    arguments = dict(zip(MATRICES, stored, strict=True)) | biases(checkpoint, place, stored)
    turned = told_rotary(checkpoint, place, d_k) if rotary == "config" else rotary
    scale = 1.0 if checkpoint.config.get("scale_attn_weights") is False else None
    return arguments | {"heads": number, "kv_heads": stored[1].shape[1] // d_k, "rotary": turned, "scale": scale}


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


def told_heads(checkpoint: Checkpoint, place: FoundLayer) -> int:
    """The number of heads, which no array tells: from the module, or from the configuration."""
    inner = attention_of(checkpoint, place)
    told = [vars(module) for module in inner.modules()] if inner is not None else []
    for table in (*told, checkpoint.config):
        for name in HEADS:
            if isinstance(number := table.get(name), int):
                return number
    raise HeadworkError(
        f"{checkpoint.source}: the arrays do not tell the number of heads, and neither a module nor a config.json "
        "beside them does. Give heads=."
    )


def attention_of(checkpoint: Checkpoint, place: FoundLayer) -> Any:
    """The module that the layer's names belong to, where there are modules."""
    return checkpoint.module and checkpoint.module.get_submodule(place.prefix.rstrip("."))


def told_rotary(checkpoint: Checkpoint, place: FoundLayer, d_k: int) -> Rotary | None:
    """As the configuration has it. Names like Llama's do not tell whether positions turn Q and K."""
    config = checkpoint.config
    if place.scheme.family != "Llama":
        return None
    if not config:
        raise HeadworkError(
            f"{checkpoint.source}: these names do not tell whether rotary positions are used, and there is no "
            "config.json beside them. Give rotary=Rotary.of(d_k, base), from headwork.engine, or rotary=None."
        )
    told = config.get("rope_parameters") or config.get("rope_scaling") or {}
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused by name
            return rotary_of(told, config, d_k, checkpoint.source)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError, OverflowError) as error:
        reason = f"the configuration's rotary positions cannot be read, {short(repr(error))}"
        raise HeadworkError(f"{checkpoint.source}: {reason}. Give rotary=.") from None


def rotary_of(told: Mapping[str, Any], config: Mapping[str, Any], d_k: int, source: str) -> Rotary | None:
    base = told.get("rope_theta", config.get("rope_theta", 10_000.0 if config.get("model_type") == "llama" else None))
    if base is None:
        return None
    kind = told.get("rope_type", told.get("type", "default"))
    share = told.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    if kind not in STRETCHED or share != 1.0:
        raise HeadworkError(
            f"{source}: rotary positions of type {kind!r} on {share} of the columns are not known; known "
            f"are {', '.join(STRETCHED)} on all. Give rotary=."
        )
    return Rotary(STRETCHED[kind](Rotary.of(d_k, base).frequencies, told))


def llama3(frequencies: Array, told: Mapping[str, Any]) -> Array:
    """Slow angles, which turn less than once over the original length, are slowed further; between them a blend."""
    turns = told["original_max_position_embeddings"] * frequencies / (2 * pi)
    low, high = told["low_freq_factor"], told["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return np.asarray(kept * frequencies + (1 - kept) * frequencies / told["factor"])


STRETCHED = {
    "default": lambda frequencies, told: frequencies,
    "linear": lambda frequencies, told: frequencies / told["factor"],
    "llama3": llama3,
}
