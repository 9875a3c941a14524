"""The forms in which somebody's attention may take a mask."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

MASKS = ("mask", "attn_mask", "attention_mask", "src_mask", "causal_mask", "attn_bias")
CAUSAL = ("is_causal", "causal")
OF_KEYS = (
    "key_padding_mask",
    "src_key_padding_mask",
    "padding_mask",
    "pad_mask",
    "key_mask",
)  # the same for all tokens
HIDING = ("attn_mask", "src_mask")  # of PyTorch's layers, in which True means hidden

READ = "True where a key may be read"
ADDED = "added: 0 or −∞"
ONES = "1 where a key may be read"
HIDDEN = "True where a key is hidden"
ONES_HIDDEN = "1 where a key is hidden"
FLAG = "a causal flag"


@dataclass(frozen=True)
class MaskForm:
    """What a parameter is given: in which form, and with how many axes."""

    name: str = ""
    form: str = ""
    axes: int = 2

    def seen(self, tokens: int, keys: int) -> Any:
        """1 where a key may be read: by the tokens from its own on, or by all but for the last keys."""
        if self.axes == 1:
            return np.ones((tokens, 1)) * (np.arange(keys) < keys - keys // 2 - (keys > 2))
        return np.tril(np.ones((tokens, keys)))

    def made(self, seen: Any, batch: int, dtype: str) -> Any:
        """The mask; `seen` holds True where a key may be read."""
        if self.form == FLAG:
            return True
        if self.form == ADDED:
            made = np.where(seen, 0.0, -np.inf).astype(dtype)
        elif self.form in (ONES, ONES_HIDDEN):
            made = (seen if self.form == ONES else ~seen).astype(dtype)
        else:
            made = seen if self.form == READ else ~seen
        made = made[0] if self.axes == 1 else made
        shape = {1: (batch, *made.shape), 2: seen.shape, 3: (batch, *seen.shape), 4: (batch, 1, *seen.shape)}[self.axes]
        return np.broadcast_to(made, shape).copy()


NO_MASK = MaskForm()


def mask_forms(name: str, layer: bool) -> Iterator[MaskForm]:
    """The forms for a parameter of this name; those in which True hides come first only for PyTorch's own words."""
    if name in CAUSAL:
        yield MaskForm(name, FLAG)
        return
    if name in OF_KEYS:
        yield from (MaskForm(name, form, 1) for form in (HIDDEN, READ, ONES, ONES_HIDDEN, ADDED))
        return
    theirs = layer and name in HIDING
    # Added comes last: −∞ counts as True for code that hides what is True.
    for form in (HIDDEN, ADDED) if theirs else (READ, ONES, HIDDEN, ONES_HIDDEN, ADDED):
        for axes in (2, 3, 4):
            yield MaskForm(name, form, axes)


def upside_down(form: MaskForm, layer: bool) -> bool:
    """Whether True hides where headwork's mask, and most, let it show: it may be meant, or be a mistake. Of keys that
    are there to fill up either is usual."""
    return form.form in (HIDDEN, ONES_HIDDEN) and form.axes > 1 and not (layer and form.name in HIDING)
