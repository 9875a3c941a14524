"""What tokens may read, as transformers' models ask for it: runs of keys and a window, a row for every sequence, in
place of a mask of tokens × keys.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from transformers import AutoModel, masking_utils

from headwork.torch.calls import What
from headwork.torch.formula import places

Window = tuple[int, int]  # how many keys before and after its own position a token reads, −1 for all
# What is asked of a mask without reading it; torch's compiler asks all of this, and compares it with what lies below.
ATTRIBUTES = (
    *("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad", "grad_fn", "_version"),
    *("is_cpu", "is_cuda", "is_meta", "is_nested", "is_quantized", "is_sparse"),
)
METHODS = (
    *("dim", "size", "stride", "storage_offset", "numel", "is_contiguous"),
    *("is_floating_point", "is_complex", "is_inference", "is_neg", "is_conj"),
)
FACTS = {getattr(Tensor, name).__get__ for name in ATTRIBUTES} | {getattr(Tensor, name) for name in METHODS}


class MaskRows(Tensor):
    """Stands for the Boolean mask (batch, 1, tokens, keys) that `sdpa` would have. Our attention reads the numbers in
    it; whoever does anything else with it does it to that mask, which is written out then.
    """

    tokens: int
    keys: int
    end: int  # of the last real key of all sequences
    spans: Tensor  # as the kernel has them
    window: Window
    place: Any  # where a mask would be
    whole: Tensor | None

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if function in FACTS:
                return function(*args, **(kwargs or {}))
            return function(*tree_map(written, args), **tree_map(written, kwargs or {}))

    def as_made(self) -> bool:
        """Whether nobody has written into the mask."""
        return self.whole is None or self.whole._version == 0


def written(given: Any) -> Any:
    """For rows of ours, the mask that they stand for."""
    if not isinstance(given, MaskRows):
        return given
    if given.whole is not None:
        return given.whole
    what = What(given.spans, None, False, 0, *given.window, 1.0, 0.0, 0.0)
    shape = (given.spans.shape[0], 1, given.tokens, given.keys)
    if torch.compiler.is_compiling():
        return places(shape, given.place, what)[1]
    with torch.inference_mode(False):  # for a tensor that knows whether it was changed
        given.whole = places(shape, given.place, what)[1]
    return given.whole


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
    """What tokens may read: `MaskRows`, or the mask that `sdpa` would have, or None as there."""
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
    everything = window == (-1, -1) and not any(real[0]) and all(end == kv_length for end in real[1])
    if everything and others.get("allow_is_bidirectional_skip"):
        return None  # as sdpa: models may add to what they get
    place = others.get("device", "cpu")
    return rows_of(batch_size, q_length, kv_length, int(q_offset) - kv_offset, real, window, place)


def rows_of(
    batch: int, tokens: int, keys: int, offset: int, real: tuple[list[int], list[int]], window: Window, place: Any
) -> MaskRows:
    first, end = (side * batch if len(side) == 1 else side for side in real)
    table = [[0, tokens, 0, last, offset, begin] for begin, last in zip(first, end, strict=True)]
    with torch.inference_mode(False):  # as in `written`
        spans = torch.tensor(table, dtype=torch.int64, device="cpu").reshape(batch, 6)
        nothing = torch.zeros((), dtype=torch.bool, device=place)  # the mask's shape, without its memory
        rows: MaskRows = nothing.expand(batch, 1, tokens, keys).as_subclass(MaskRows)
    rows.tokens, rows.keys, rows.end = tokens, keys, max(end, default=0)
    rows.spans, rows.window, rows.place, rows.whole = spans, window, place, None
    return rows


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
