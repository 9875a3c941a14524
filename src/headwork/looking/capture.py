"""A transformers model run on a text, with the kernel for its attention, which keeps what every head was given."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from headwork.engine import attention
from headwork.engine.arrays import Array
from headwork.errors import HeadworkError
from headwork.extras import needs, why_broken

NAME = "headwork_look"  # without "sdpa" or "flash" in it, by which transformers would take it for one of these
MOST_TOKENS = 256


@dataclass(frozen=True)
class HeadsOfLayer:
    """One layer: q (heads, tokens, d), k and v (kv_heads, tokens, d) as they met, weights (heads, tokens, tokens)."""

    number: int
    q: Array
    k: Array
    v: Array
    weights: Array
    scale: float

    @property
    def group(self) -> int:
        """How many heads read the same keys."""
        return int(self.q.shape[0] // self.k.shape[0])


@dataclass(frozen=True)
class Captured:
    """A text, its tokens, and what every layer's heads did with them."""

    model: str
    text: str
    tokens: tuple[str, ...]
    layers: tuple[HeadsOfLayer, ...]

    @property
    def name(self) -> str:
        """The last piece of the model's path or name."""
        return self.model.rstrip("/").rpartition("/")[2] or self.model

    def only(self, numbers: Collection[int] | None) -> Self:
        """The same with some of the layers; with all where none is named."""
        last = len(self.layers) - 1
        if wrong := [number for number in numbers or () if number > last]:
            raise HeadworkError(f"there is no layer {wrong[0]}; {self.name} has 0 to {last}")
        return replace(self, layers=tuple(layer for layer in self.layers if not numbers or layer.number in numbers))


def capture(model: str, text: str) -> Captured:
    """Run a model, given by its folder or its name on the hub, on one text."""
    transformers, torch = needs("transformers"), needs("torch")  # in this order: the extra of the first brings both
    tokenizer, network = _loaded(transformers, model)
    encoded = tokenizer(text, return_tensors="pt")
    count = encoded["input_ids"].shape[1]
    if not 1 <= count <= MOST_TOKENS:
        raise HeadworkError(f"the text has {count} tokens; give 1 to {MOST_TOKENS}, so that a map can be read")
    with _recording() as layers, torch.inference_mode():
        network(**{name: encoded[name] for name in ("input_ids", "attention_mask") if name in encoded})
    if not layers:
        raise HeadworkError(
            f"the attention of {type(network).__name__} does not go through transformers' own interface, so its heads "
            "cannot be seen"
        )
    tokens = tuple(map(_readable, tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist())))
    return Captured(model, text, tokens, tuple(layers))


def _loaded(transformers: Any, model: str) -> tuple[Any, Any]:
    """The tokenizer and the network; of a model that writes as it reads, the half that reads."""
    try:
        transformers.AttentionInterface.register(NAME, _attended)
    except ImportError as error:
        raise HeadworkError(why_broken("transformers", error) or str(error)) from None
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionMaskInterface.register(NAME, eager_mask)
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        network = transformers.AutoModel.from_pretrained(model, attn_implementation=NAME, dtype="float32")
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise HeadworkError(
            f"no model was found at '{model}': {first} Give a folder with config.json, the weights and a tokenizer, or "
            "a name on the hub that can be reached."
        ) from None
    network = network.get_encoder() if network.config.is_encoder_decoder else network
    return tokenizer, network.eval()


_layers: list[HeadsOfLayer] | None = None  # where a run that is being looked at keeps its layers


@contextmanager
def _recording() -> Iterator[list[HeadsOfLayer]]:
    global _layers
    _layers = []
    try:
        yield _layers
    finally:
        _layers = None


def _attended(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **asked: Any
) -> tuple[Any, None]:
    """transformers' attention function: (batch, heads, tokens, d) in, (batch, tokens, heads, d) out."""
    import torch

    if asked.get("s_aux") is not None:
        raise HeadworkError("its heads have sinks, to which a part of every weight goes: they cannot be looked at")
    q, k, v = (tensor.detach().numpy() for tensor in (query, key, value))
    masks = [mask.detach().numpy() for mask in (attention_mask, asked.get("position_bias")) if mask is not None]
    options: dict[str, Any] = {"scale": scaling, "softcap": asked.get("softcap")}
    options["mask"] = np.add(*masks) if len(masks) == 2 else masks[0] if masks else None
    out, weights = attention(q, k, v, return_weights=True, **options)
    if _layers is not None:
        scale = q.shape[-1] ** -0.5 if scaling is None else scaling
        _layers.append(HeadsOfLayer(len(_layers), q[0], k[0], v[0], weights[0], float(scale)))
    return torch.from_numpy(out).transpose(1, 2).contiguous(), None


def _readable(token: str) -> str:
    """A token as a reader knows it: the marks by which tokenizers write a space become one."""
    return token.replace("Ġ", "␣").replace("▁", "␣").replace("Ċ", "⏎")
