"""What a model's configuration tells about one of its layers, and its arrays do not."""

from collections.abc import Mapping
from math import pi, sqrt
from typing import Any

import numpy as np

from headwork.engine.arrays import Array
from headwork.engine.checkpoint import Checkpoint, short
from headwork.engine.rotary import Rotary
from headwork.engine.tensor_names import FoundLayer
from headwork.errors import HeadworkError

HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")  # what configurations call their number
# What may be set that makes attention another one than a layer has.
OTHERWISE = ("scale_attn_by_inverse_layer_idx",)
# A model of texts and pictures has a configuration for each.
SECTIONS = {"vision_model": "vision_config", "text_model": "text_config", "language_model": "text_config"}
LOCAL = "sliding_attention"  # what transformers calls the layers that read a window


def section(checkpoint: Checkpoint, place: FoundLayer) -> Mapping[str, Any]:
    """What is said about the part of the model that the layer is in."""
    config = checkpoint.config
    named = [part for name, part in SECTIONS.items() if name in place.prefix]
    for part in [*named, *(() if any(name in config for name in HEADS) else ("text_config",))]:
        if isinstance(config.get(part), Mapping):
            inner: Mapping[str, Any] = config[part]
            return inner
    return config


def heads(checkpoint: Checkpoint, place: FoundLayer) -> int:
    """Their number, which no array tells: from the module, or from the configuration."""
    inner = checkpoint.attention(place.prefix)
    told = [vars(module) for module in inner.modules()] if inner is not None else []
    sides = [f"{side}_attention_heads" for side in ("encoder", "decoder") if side in place.prefix]
    for table in (*told, section(checkpoint, place)):
        for name in (*sides, *HEADS):
            if isinstance(number := table.get(name), int):
                return number
    raise HeadworkError(
        f"{checkpoint.source}: the arrays do not tell the number of heads, and neither a module nor a config.json "
        "beside them does. Give heads=."
    )


def scale(checkpoint: Checkpoint, place: FoundLayer) -> float | None:
    """What the scores are multiplied by, where it is not 1/√d_k."""
    config = section(checkpoint, place)
    if changed := [name for name in OTHERWISE if config.get(name)]:
        raise HeadworkError(
            f"{checkpoint.source}: the configuration sets {', '.join(changed)}, which changes what the layer computes: "
            "build it from its arrays by hand."
        )
    if place.scheme.scale is not None:
        return place.scheme.scale
    if config.get("scale_attn_weights") is False:
        return 1.0
    if config.get("query_pre_attn_scalar"):
        return 1 / sqrt(config["query_pre_attn_scalar"])
    multiplier: float | None = config.get("attention_multiplier")
    return multiplier


def softcap(checkpoint: Checkpoint, place: FoundLayer) -> float | None:
    told: float | None = section(checkpoint, place).get("attn_logit_softcapping")
    return told


def gain_beyond(checkpoint: Checkpoint, place: FoundLayer) -> float:
    """What is added to the gains that are stored for the norms of heads: Gemma stores how far they are from 1."""
    kind = str(section(checkpoint, place).get("model_type", ""))
    if kind.startswith(("qwen3", "gemma3")):
        return 1.0 if kind.startswith("gemma3") else 0.0
    raise HeadworkError(
        f"{checkpoint.source}: {place} has norms for queries and keys, and what kind they are is known of Qwen 3 and "
        f"Gemma 3, not of {short(kind) or 'a model without config.json'}. Build the layer from its arrays by hand."
    )


def rotary(checkpoint: Checkpoint, place: FoundLayer, d_k: int) -> Rotary | None:
    """As the configuration has it. Names like Llama's do not tell whether positions turn Q and K."""
    config = section(checkpoint, place)
    if not place.scheme.rotary:
        return None
    if not config:
        raise HeadworkError(
            f"{checkpoint.source}: these names do not tell whether rotary positions are used, and there is no "
            "config.json beside them. Give rotary=Rotary.of(d_k, base), from headwork.engine, or rotary=None."
        )
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused by name
            return rotary_of(_told(config, layer_kind(config, checkpoint, place)), config, d_k, checkpoint.source)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError, OverflowError) as error:
        reason = f"the configuration's rotary positions cannot be read, {short(repr(error))}"
        raise HeadworkError(f"{checkpoint.source}: {reason}. Give rotary=.") from None


def layer_kind(config: Mapping[str, Any], checkpoint: Checkpoint, place: FoundLayer) -> str:
    """Whether the layer reads a window or everything; models that have both give each angles of its own."""
    number = place.number
    for name in ("layer_idx", "layer_id"):  # of a module that stands alone
        number = getattr(checkpoint.attention(place.prefix), name, None) if number is None else number
    if not isinstance(number, int):
        return "full_attention"
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and number < len(kinds):
        return str(kinds[number])
    # As older configurations say it: every so-manieth layer reads everything.
    if every := config.get("sliding_window_pattern"):
        return LOCAL if (number + 1) % every else "full_attention"
    every = config.get("global_attn_every_n_layers")
    return LOCAL if every and number % every else "full_attention"


def _told(config: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The angles for layers of this kind: in a table for each, or in the words of older configurations."""
    told = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if isinstance(told.get(kind), Mapping):
        inner: Mapping[str, Any] = told[kind]
        return inner
    if kind == LOCAL and (base := config.get("rope_local_base_freq") or config.get("local_rope_theta")):
        return {"rope_theta": base}
    return {"rope_theta": config["global_rope_theta"], **told} if "global_rope_theta" in config else told


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
