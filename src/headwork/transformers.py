"""`attn_implementation="headwork"`: importing this registers our attention with transformers, and its masks.

    import headwork.transformers
    model = AutoModelForCausalLM.from_pretrained(…, attn_implementation="headwork")

Grouped heads are read as they lie. Causal order, windows and padding on either side become numbers, one row for every
sequence, in place of a (batch, 1, tokens, keys) mask; patterns that are not known here keep the mask that `sdpa` would
have. What the kernel cannot read goes to `sdpa`, and says so once.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headwork.errors import HeadworkError
from headwork.extras import how_to_install

try:
    from transformers import AttentionInterface, AttentionMaskInterface, AutoModel, masking_utils
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
except ImportError as error:
    raise HeadworkError(
        f"headwork.transformers needs transformers 5 or newer ({error}): {how_to_install('transformers')}"
    ) from None

from headwork.engine.backend import kernel
from headwork.torch.calls import Biases, What, accumulator, forward_into, plain, threads
from headwork.torch.formula import places, worked_with_weights
from headwork.torch.path import Path, is_memory, needs_gradient, quiet, where
from headwork.torch.report import count, listening
from headwork.torch.ways import fresh_seed, run

NAME = "headwork"
SIGN = 0x6865616477  # stands at the end of every row that `mask` writes, and nothing else would
COLUMNS = 9  # a span of the kernel (6), the window (2), the sign
BEYOND_ROWS = frozenset({"position_bias", "softcap", "s_aux", "cache"})  # asked beside our rows
AT_ONCE = Path("kernel", "without gradients")

Window = tuple[int, int]  # how many keys before and after its own position a token reads, −1 for all


def pattern(function: Callable[..., Any]) -> Window | None:
    """The window that a mask function of transformers describes; None where it is another pattern, or not known."""
    if function is masking_utils.causal_mask_function:
        return -1, 0
    if function is masking_utils.bidirectional_mask_function:
        return -1, -1
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    name = getattr(function, "__qualname__", "")
    if name == "and_masks.<locals>.and_mask" and len(cells) == 1:
        found = [pattern(part) for part in cells[0]]
        return None if None in found else narrowest([window for window in found if window is not None])
    whole = len(cells) == 1 and type(cells[0]) is int
    if whole and name == "sliding_window_overlay.<locals>.inner_mask":
        return cells[0] - 1, -1
    if whole and name == "sliding_window_bidirectional_overlay.<locals>.inner_mask":
        return cells[0], cells[0]
    return None


def narrowest(windows: list[Window]) -> Window:
    left, right = ([side for side in sides if side >= 0] for sides in zip(*windows, strict=True))
    return min(left, default=-1), min(right, default=-1)


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: Tensor | None = None,
    **others: Any,
) -> Tensor | None:
    """What tokens may read, as numbers: (batch, 1, 1, 9) whole numbers; or the mask that `sdpa` would have."""
    given: dict[str, Any] = {"q_offset": q_offset, "kv_offset": kv_offset, "mask_function": mask_function}
    given |= {"attention_mask": attention_mask, **others}
    config: Any = others.get("config")
    if not has_entry(config.__class__):
        return masking_utils.eager_mask(batch_size, q_length, kv_length, **given)
    eager = not torch.compiler.is_compiling() and not masking_utils.is_tracing(attention_mask)
    window = pattern(mask_function) if eager else None  # torch's compiler loses a closure that somebody looked into
    real = None
    if window is not None and type(q_length) is int:
        real = run_of_keys(attention_mask, batch_size, kv_length, kv_offset)
    if window is None or real is None:
        # A mask that stands for nothing but itself: none of sdpa's shortcuts, which rely on is_causal.
        given |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return masking_utils.sdpa_mask(batch_size, q_length, kv_length, **given)
    return rows_of(batch_size, q_length, int(q_offset) - kv_offset, real, window)


class MaskRows(NamedTuple):
    """What a tensor of rows says, read once for all layers; `version` is the tensor's when it was written."""

    version: int
    tokens: int
    end: int  # of the last real key of all sequences
    spans: Tensor
    window: Window


def rows_of(batch: int, tokens: int, offset: int, real: tuple[list[int], list[int]], window: Window) -> Tensor:
    first, end = (side * batch if len(side) == 1 else side for side in real)
    table = [[0, tokens, 0, last, offset, begin, *window, SIGN] for begin, last in zip(first, end, strict=True)]
    with torch.inference_mode(False):  # for tensors that know whether they were changed
        rows = torch.tensor(table, dtype=torch.int64, device="cpu").reshape(batch, 1, 1, COLUMNS)
        spans = rows.reshape(batch, COLUMNS)[:, :6].contiguous()
    setattr(rows, NAME, MaskRows(rows._version, tokens, max(end, default=0), spans, window))
    return rows


def read_again(given: Tensor) -> MaskRows:
    """What a copy of our rows says; others are refused."""
    whole = given.dim() == 4 and given.shape[-1] == COLUMNS and given.numel() > 0
    rows = given.reshape(-1, COLUMNS) if whole else given
    numbers = rows[0].tolist() if whole else [0]
    if numbers[-1] != SIGN:
        raise HeadworkError(
            f"the attention mask is {given.dtype} {tuple(given.shape)}: a model has changed the one that "
            'headwork.transformers made. Load it with attn_implementation="sdpa".'
        )
    return MaskRows(0, numbers[1], int(rows[:, 3].max()), rows[:, :6].contiguous(), (numbers[6], numbers[7]))


@cache
def has_entry(config: Any) -> bool:
    """Whether models of this configuration ask for an implementation by name; those that do not work attention out
    themselves, and need the masks they know.
    """
    model = AutoModel._model_mapping.get(config, None)
    models = model if isinstance(model, tuple) else (model,)
    return any(
        m is None or getattr(m, "_supports_sdpa", False) or getattr(m, "_supports_attention_backend", False)
        for m in models
    )


def run_of_keys(given: Tensor | None, batch: int, keys: int, offset: int) -> tuple[list[int], list[int]] | None:
    """(first, end) of the keys that are real, for all sequences or each; None where they do not lie together."""
    if given is None:
        return [0], [keys]
    if given.dim() != 2 or not given.is_cpu:
        return None
    padded = masking_utils.prepare_padding_mask(given, keys, offset)
    real = (padded[:, offset : offset + keys] != 0).numpy()  # a step of decoding asks this, and NumPy is shorter there
    if real.shape[0] not in (1, batch) or real.shape[1] != keys:
        return None
    amount = real.sum(-1)
    first = real.argmax(-1) if keys else amount
    ends = keys - real[:, ::-1].argmax(-1) if keys else amount
    together = (ends - first == amount) | (amount == 0)
    return (first.tolist(), (first + amount).tolist()) if together.all() else None


class Reading:
    """A mask as the kernel takes it: a tensor to add or to obey, spans, and a window."""

    def __init__(self, given: Tensor | None, query: Tensor, key: Tensor, causal: bool) -> None:
        self.tensor, self.spans, self.window = given, None, (-1, -1)
        tokens, keys = query.shape[2], key.shape[2]
        if given is None:
            # As sdpa has it: a module's own causal order, the first token at the first key, but for a single token.
            self.window = (-1, 0) if causal and tokens > 1 else (-1, -1)
        elif given.dtype == torch.int64:
            rows: MaskRows | None = getattr(given, NAME, None)
            if rows is None or given.is_inference() or given._version != rows.version:
                rows = read_again(given)
            if rows.tokens != tokens or rows.end > keys:
                raise HeadworkError(
                    f"the attention mask was made for {rows.tokens} tokens, and {tokens} tokens read {keys} keys here: "
                    'a model uses one mask for layers of several kinds. Load it with attn_implementation="sdpa".'
                )
            self.tensor, self.spans, self.window = None, rows.spans, rows.window

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
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    reading = Reading(attention_mask, query, key, causal)
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
    output = at_once(query, key, value, attention_mask, given)
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
    query: Tensor, key: Tensor, value: Tensor, given_mask: Tensor | None, given: dict[str, Any]
) -> Tensor | None:
    """The output where our rows are all there is to obey and nobody looks on, as in most steps of decoding: they should
    not pay for the other questions. None where those are to be asked.
    """
    rows: MaskRows | None = getattr(given_mask, NAME, None)
    if given_mask is None or rows is None or not BEYOND_ROWS.isdisjoint(given):
        return None
    if given_mask._version != rows.version or given.get("dropout") or given.get("output_attentions"):
        return None
    fits = rows.tokens == query.shape[2] and rows.end <= key.shape[2] and query.shape[3] == value.shape[3] != 0
    tensors = (query, key, value)
    if not fits or not quiet(*tensors, None) or needs_gradient(*tensors) or not all(map(is_memory, tensors)):
        return None
    scale: float | None = given.get("scaling")
    factor = query.shape[3] ** -0.5 if scale is None else float(scale)
    out = torch.empty_like(query)
    if kernel is None or not out.numel():
        return None
    nothing, numbers = (None, None, None), (False, 0, *rows.window, factor, 0.0, 0.0, 0, threads())
    kernel.forward(*tensors, None, out, None, None, rows.spans, *nothing, *numbers)
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


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
