"""Attention as transformers calls it: its arguments read, and the way chosen."""

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from headwork.engine.backend import kernel
from headwork.errors import HeadworkError
from headwork.torch.calls import Biases, What, accumulator, forward_into, plain, threads
from headwork.torch.formula import places, worked_with_weights
from headwork.torch.path import Path, is_memory, needs_gradient, quiet, where
from headwork.torch.report import count, listening
from headwork.torch.ways import fresh_seed, run
from headwork.transformers.masks import MaskRows, Window, written

NAME = "headwork"
BEYOND_ROWS = frozenset({"position_bias", "softcap", "s_aux", "cache"})  # asked beside our rows
AT_ONCE = Path("kernel", "without gradients")


class Reading:
    """A mask as the kernel takes it: a tensor to add or to obey, spans, and a window."""

    def __init__(self, given: Tensor | None, query: Tensor, key: Tensor, causal: bool) -> None:
        self.tensor, self.spans, self.window = given, None, (-1, -1)
        if given is None:
            self.window = without_mask(query, causal)
        elif isinstance(given, MaskRows):
            tokens, keys = query.shape[2], key.shape[2]
            if torch.compiler.is_compiling() or not given.as_made():
                self.tensor = written(given)
                return
            if given.tokens != tokens or given.end > keys:
                raise HeadworkError(
                    f"the attention mask was made for {given.tokens} tokens, and {tokens} tokens read {keys} keys "
                    'here: a model uses one mask for layers of several kinds. Load it with attn_implementation="sdpa".'
                )
            self.tensor, self.spans, self.window = None, given.spans, given.window
        elif given.dtype != torch.bool and not given.is_floating_point():
            raise HeadworkError(
                f"the attention mask is {given.dtype} {tuple(given.shape)}: give Booleans, True for what may be read, "
                "or floats to add to the scores."
            )

    def add(self, bias: Tensor) -> None:
        """A learned bias on top, (1 or batch, heads, tokens, keys)."""
        if self.tensor is None:
            self.tensor = bias
        elif self.tensor.dtype == torch.bool:
            self.tensor = bias.masked_fill(~self.tensor, -torch.inf)
        else:
            self.tensor = bias + self.tensor

    def written_out(self, what: What, query: Tensor, keys: int) -> Tensor:
        """As a mask of the whole shape, for `sdpa`."""
        shape = (*query.shape[:-1], keys)
        seen = places(shape, query.device, what)[1].expand(shape)
        return seen if self.tensor is None else self.tensor.masked_fill(~seen, -torch.inf)


def without_mask(query: Tensor, causal: bool) -> Window:
    """As sdpa has it: a module's own causal order, the first token at the first key, but for a single token."""
    return (-1, 0) if causal and query.shape[2] > 1 else (-1, -1)


def asks_causal(module: nn.Module, told: bool | None) -> bool:
    return bool(getattr(module, "is_causal", True) if told is None else told)


class AskedCall(NamedTuple):
    """A call as our functions have it, and its way."""

    path: Path
    reading: Reading
    biases: Biases
    what: What


def asked(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> AskedCall:
    """The one question of this entry: what is to be worked out, and which way. No seed is drawn yet."""
    if others.get("cache") is not None:  # pages of a cache of transformers' own
        return AskedCall(Path("torch", "a paged cache"), Reading(None, query, key, False), Biases(), plain(False, 1.0))
    reading = Reading(attention_mask, query, key, asks_causal(module, is_causal))
    if position_bias is not None:
        reading.add(position_bias[..., : key.shape[2]])
    sinks = None if s_aux is None else s_aux.to(accumulator(query))
    biases = Biases(reading.tensor, sinks)
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    what = What(reading.spans, None, False, 0, *reading.window, scale, float(softcap or 0.0), float(dropout))
    path = where(query, key, value, *biases)
    if others.get("output_attentions") and path.way != "torch":
        # The kernel gives weights too, but no gradient flows through them.
        flows = path.way != "kernel" or needs_gradient(query, key, value, *biases)
        path = Path("torch", "weights with gradients") if flows else path
    return AskedCall(path, reading, biases, what)


def explain(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> Path:
    """Which way `attention` would take with these arguments here and now, and why.

    >>> x = torch.eye(2)[None, None]
    >>> print(explain(nn.Module(), x, x, x, None))
    kernel: without gradients
    >>> print(explain(nn.Module(), x.requires_grad_(), x, x, None, output_attentions=True))
    torch: weights with gradients
    """
    return asked(module, query, key, value, attention_mask, **given).path


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> tuple[Tensor, Tensor | None]:
    """(output (batch, tokens, heads, d_v), weights or None), as transformers calls every attention."""
    output = at_once(module, query, key, value, attention_mask, given)
    if output is not None:
        return output, None
    path, reading, biases, what = asked(module, query, key, value, attention_mask, **given)
    if path.way == "torch" and can_be_handed_on(given):
        if reading.spans is not None:
            attention_mask = reading.written_out(what, query, key.shape[2])
            given |= {"is_causal": False, "position_bias": None}
        return handed_on(path.reason, module, query, key, value, attention_mask, **given)
    if what.dropout:
        what = what._replace(seed=fresh_seed())
    count(NAME, path)
    weights = None
    if given.get("output_attentions"):
        out, weights = with_weights(path, query, key, value, biases, what)
    else:
        out = run(path.way, query, key, value, biases, what)[0]
    return out.transpose(1, 2).contiguous(), weights


def at_once(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, given: dict[str, Any]
) -> Tensor | None:
    """The output where our rows, or nothing, are all there is to obey and nobody looks on, as in most steps of
    decoding: they should not pay for the other questions. None where those are to be asked.
    """
    tensors = (query, key, value)
    if not quiet(*tensors, None) or not BEYOND_ROWS.isdisjoint(given):
        return None
    if given.get("dropout") or given.get("output_attentions") or needs_gradient(*tensors):
        return None
    if mask is None:
        spans, window = None, without_mask(query, asks_causal(module, given.get("is_causal")))
    elif mask.__class__ is MaskRows and mask.as_made() and mask.tokens == query.shape[2] and mask.end <= key.shape[2]:
        spans, window = mask.spans, mask.window
    else:
        return None
    if query.shape[3] != value.shape[3] or not query.shape[3] or not all(map(is_memory, tensors)):
        return None
    scale: float | None = given.get("scaling")
    factor = query.shape[3] ** -0.5 if scale is None else float(scale)
    out = torch.empty_like(query)
    if kernel is None or not out.numel():
        return None
    nothing, numbers = (None, None, None), (False, 0, *window, factor, 0.0, 0.0, 0, threads())
    kernel.forward(*tensors, None, out, None, None, spans, *nothing, *numbers)
    if listening:
        count(NAME, AT_ONCE)
    return out.transpose(1, 2).contiguous()


def with_weights(
    path: Path, query: Tensor, key: Tensor, value: Tensor, biases: Biases, what: What
) -> tuple[Tensor, Tensor]:
    if path.way == "torch":
        out, _, weights = worked_with_weights(query, key, value, biases, what)
    else:
        out = query.new_empty((*query.shape[:-1], value.shape[-1]))
        weights = query.new_empty((*query.shape[:-1], key.shape[2]), dtype=accumulator(query))
        forward_into(out, None, query, key, value, biases, what, weights)
    return out, weights.to(query.dtype)


def can_be_handed_on(given: dict[str, Any]) -> bool:
    """Whether `sdpa` knows all that is asked for; a paged cache is its own to read."""
    unknown = given.get("softcap") is not None or given.get("s_aux") is not None or given.get("output_attentions")
    return not unknown or given.get("cache") is not None


said: set[str] = set()


def handed_on(reason: str, /, *call: Any, **given: Any) -> tuple[Tensor, Tensor | None]:
    """To transformers' own `sdpa`, which is said once for every reason."""
    if reason not in said:
        said.add(reason)
        warnings.warn(f'attn_implementation="headwork" hands calls on to sdpa: {reason}.', stacklevel=3)
    count(NAME, Path("torch", reason))
    found: tuple[Tensor, Tensor | None] = sdpa_attention_forward(*call, **given)
    return found
