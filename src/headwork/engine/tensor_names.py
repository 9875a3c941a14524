"""What models call the arrays of an attention layer, and the layers that are found by these names."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from headwork.engine.checkpoint import short
from headwork.errors import HeadworkError

MOST_LISTED = 12


@dataclass(frozen=True)
class Scheme:
    """How a family of models stores a layer: three projections by name, or one wide one; then W_O.

    `inputs` and `output` are what stands between the layer's prefix and "weight" or "bias". `rows` says whether a
    stored matrix has a row for every column of ours, as torch's Linear has; GPT-2 stores X·W as we do. `beside` is what
    else may stand there and has no part in attention.
    """

    family: str
    inputs: tuple[str, ...]
    output: str
    rows: bool = True
    beside: tuple[str, ...] = ()
    bias: str = ""  # one bias for the three projections, where they share it
    rotary: bool = False  # whether positions may turn Q and K: the configuration tells
    norms: tuple[str, ...] = ()  # of queries and keys, where a model has them
    scale: float | None = None  # of the scores, where it is always this and not 1/√d_k
    relative: str = ""  # a table of biases by distance, which the first layer holds for all

    def names(self, prefix: str, part: str) -> list[str]:
        """The full names of what is "weight" or "bias" of the projections, in the order Q, K, V."""
        if part == "bias" and self.bias:
            return [prefix + self.bias]
        return [prefix + name + part for name in self.inputs]

    def known(self) -> set[str]:
        own = {name + part for name in (*self.inputs, self.output) for part in ("weight", "bias")}
        return own | {self.bias, *self.beside, *(f"{name}.weight" for name in self.norms)}


LAYER_NORM = tuple(f"output.LayerNorm.{part}" for part in ("weight", "bias", "gamma", "beta"))
T5_BIASES = "SelfAttention.relative_attention_bias.weight"
SCHEMES = (
    Scheme("nn.MultiheadAttention", ("in_proj_",), "out_proj."),
    Scheme(
        "nn.MultiheadAttention with kdim, vdim", ("q_proj_", "k_proj_", "v_proj_"), "out_proj.", bias="in_proj_bias"
    ),
    Scheme("BERT", ("self.query.", "self.key.", "self.value."), "output.dense.", beside=LAYER_NORM),
    Scheme("ViT", ("attention.query.", "attention.key.", "attention.value."), "output.dense."),
    Scheme("ViT, fused", ("qkv.",), "proj."),
    Scheme("GPT-2", ("c_attn.",), "c_proj.", rows=False, beside=("bias", "masked_bias")),
    Scheme(
        "Llama, Qwen, Gemma",
        ("q_proj.", "k_proj.", "v_proj."),
        "o_proj.",
        beside=("rotary_emb.inv_freq",),
        rotary=True,
        norms=("q_norm", "k_norm"),
    ),
    Scheme("BART, CLIP, Whisper", ("q_proj.", "k_proj.", "v_proj."), "out_proj."),
    Scheme("DistilBERT", ("q_lin.", "k_lin.", "v_lin."), "out_lin."),
    Scheme("ModernBERT", ("Wqkv.",), "Wo.", rotary=True),
    Scheme(
        "T5",
        tuple(f"SelfAttention.{part}." for part in "qkv"),
        "SelfAttention.o.",
        beside=("layer_norm.weight", T5_BIASES),
        scale=1.0,
        relative=T5_BIASES,
    ),
    Scheme(
        "T5, a context",
        tuple(f"EncDecAttention.{part}." for part in "qkv"),
        "EncDecAttention.o.",
        beside=("layer_norm.weight",),
        scale=1.0,
    ),
)


@dataclass(frozen=True)
class FoundLayer:
    """A layer that was found: its scheme, and what its names begin with, "" or ending in a point."""

    scheme: Scheme
    prefix: str

    @property
    def number(self) -> int | None:
        """The last number in the prefix, which counts the layers: 3 in encoder.layer.3.attention."""
        found = re.findall(r"(?:^|[._])(\d{1,9})(?=\.)", self.prefix)
        return int(found[-1]) if found else None

    def __str__(self) -> str:
        return f"{short(self.prefix.rstrip('.')) or 'the whole'} ({self.scheme.family})"


def layers_found(names: Collection[str]) -> list[FoundLayer]:
    """Every layer whose first projection and W_O are there."""
    found = []
    for scheme in SCHEMES:
        tail = scheme.inputs[0] + "weight"
        for name in names:
            prefix = name.removesuffix(tail)
            whole = prefix != name and (not prefix or prefix.endswith("."))
            if whole and prefix + scheme.output + "weight" in names:
                found.append(FoundLayer(scheme, prefix))
    return found


def chosen(names: Collection[str], layer: int | str | None, source: str) -> FoundLayer:
    """The one layer that is asked for."""
    found = layers_found(names)
    if not found:
        raise HeadworkError(f"{source} has no attention layer with names that are known. {expected()} {listed(names)}")
    if isinstance(layer, str):
        start = layer.rstrip(".") + "." if layer else ""
        fitting = [place for place in found if place.prefix.startswith(start)]
    else:
        fitting = [place for place in found if layer is None or place.number == layer]
    if len(fitting) == 1:
        return fitting[0]
    asked = "no layer was chosen" if layer is None else f"layer={layer!r} fits {len(fitting) or 'none'} of them"
    raise HeadworkError(
        f"{source} has {len(found)} attention layers, and {asked}: give layer= a number, or the beginning of a name "
        f"such as {short(found[0].prefix.rstrip('.'))!r}. There is {bounded(map(str, fitting or found))}."
    )


def check_complete(place: FoundLayer, names: Collection[str], source: str) -> None:
    """Every projection is there, and nothing that would change what the layer computes."""
    scheme, prefix = place.scheme, place.prefix
    if missing := [name for name in scheme.names(prefix, "weight") if name not in names]:
        raise HeadworkError(f"{source}: {place} lacks {bounded(missing)}. {listed(names)}")
    inside = [name for name in names if name.startswith(prefix) and name.removeprefix(prefix) not in scheme.known()]
    if inside:
        raise HeadworkError(
            f"{source}: {place} also holds {bounded(inside)}, which a MultiHead has no place for: its result would be "
            "another. Build the layer from its arrays by hand."
        )


def expected() -> str:
    kinds = (f"{s.family}: …{s.inputs[0]}weight and …{s.output}weight" for s in SCHEMES)
    return f"Expected are {'; '.join(kinds)}."


def listed(names: Collection[str]) -> str:
    return f"Found are {len(names)} arrays: {bounded(names)}." if names else "It holds no arrays at all."


def bounded(names: Iterable[str]) -> str:
    every = [short(name) for name in names]
    more = f" and {len(every) - MOST_LISTED} more" if len(every) > MOST_LISTED else ""
    return ", ".join(every[:MOST_LISTED]) + more
