"""`attn_implementation="headwork"`: importing this registers our attention with transformers, and its masks.

    import headwork.transformers
    model = AutoModelForCausalLM.from_pretrained(…, attn_implementation="headwork")

Grouped heads are read as they lie. Causal order, windows and padding on either side become numbers, one row for every
sequence, in place of a (batch, 1, tokens, keys) mask; patterns that are not known here keep the mask that `sdpa` would
have. What the kernel cannot read goes to `sdpa`, and says so once.
"""

from headwork.errors import HeadworkError
from headwork.extras import how_to_install, why_broken

try:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations import sdpa_attention as _sdpa  # noqa: F401  # whether this version has it
except ImportError as error:
    raise HeadworkError(
        why_broken("transformers", error)
        or f"headwork.transformers needs transformers 5 or newer ({error}): {how_to_install('transformers')}"
    ) from None

from headwork.transformers.entry import NAME, attention, explain
from headwork.transformers.masks import mask

__all__ = ["attention", "explain", "mask"]

AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
