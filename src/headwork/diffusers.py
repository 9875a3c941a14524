"""`set_attention_backend("headwork")`: importing this registers our attention with diffusers.

    import headwork.diffusers
    pipe.transformer.set_attention_backend("headwork")

Models that ask diffusers' dispatcher (Flux, Wan, Qwen-Image …) take it. Older ones (UNets, Stable Diffusion 3) call
torch's own function whatever that switch says: they run on the kernel under `headwork.torch.use()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError
from headwork.extras import how_to_install

if TYPE_CHECKING:
    from torch import Tensor

try:
    from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry
except ImportError as error:
    raise HeadworkError(
        f"headwork.diffusers needs diffusers 0.35 or newer ({error}): {how_to_install('diffusers')}"
    ) from None

from headwork.torch.attention import scaled_dot_product_attention

NAME = "headwork"


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    _parallel_config: Any = None,
) -> Tensor:
    """As diffusers calls every attention: query (batch, tokens, heads, d_k) → (batch, tokens, heads, d_v)."""
    if return_lse or _parallel_config is not None:
        asked = "return_lse=True" if return_lse else "context parallelism"
        raise HeadworkError(f'{asked} is not for the backend "headwork": set_attention_backend("native") has it.')
    if attn_mask is not None and attn_mask.shape == (query.shape[0], key.shape[1]):
        attn_mask = attn_mask[:, None, None]  # diffusers' padding, a row for every batch item
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa).transpose(1, 2)


def registered() -> Any:
    """The new name among diffusers', which are a closed list: a member is added to it as its own were made."""
    try:
        member = str.__new__(AttentionBackendName, NAME)
        member._name_, member._value_ = NAME.upper(), NAME
        AttentionBackendName._member_map_[member._name_] = AttentionBackendName._value2member_map_[NAME] = member
        AttentionBackendName._member_names_.append(member._name_)
        _AttentionBackendRegistry.register(member)(attention)
    except (AttributeError, TypeError) as error:
        raise HeadworkError(
            f"this version of diffusers keeps its attention backends in another way ({error}): run its models under "
            "headwork.torch.use()."
        ) from None
    return member


if NAME not in AttentionBackendName._value2member_map_:
    registered()
