"""`context_parallel`: a model that calls torch's scaled_dot_product_attention, over several ranks, without a change."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as torchs_own
from torch.overrides import TorchFunctionMode

from headwork.errors import HeadworkError
from headwork.torch.attention import narrowed
from headwork.torch.attention import scaled_dot_product_attention as ours
from headwork.torch.block import Shared, blocks
from headwork.torch.cluster.agreement import refuse
from headwork.torch.cluster.call import Method
from headwork.torch.cluster.groups import group_of, split_of
from headwork.torch.cluster.ring import ring_attention
from headwork.torch.cluster.splits import Split


class context_parallel(TorchFunctionMode):  # named as torch's own is, which it stands in for
    """Within the block, torch's scaled_dot_product_attention works over the rows of all ranks of a group.

    `mesh_or_group` is a device mesh of one axis, a process group, or None for the default one. Give the model this
    rank's rows (`shard`), with their `positions` for rotary embeddings, and have the backward in the block too where
    activations are checkpointed. A split or group that `shard`, `unshard`, `positions` and `ring_attention` are not
    told is the block's. Masks and dropout reach over ranks: a call that asks for them is an error.
    """

    def __init__(self, mesh_or_group: Any = None, *, split: Split = "auto", method: Method = "auto") -> None:
        super().__init__()
        self.shared = Shared(group_of(mesh_or_group), split_of(split), method)

    def __enter__(self) -> "context_parallel":
        blocks.entered.append(self.shared)
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        blocks.entered.remove(self.shared)
        super().__exit__(*raised)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torchs_own or function is ours:
            return over_ranks(self.shared, *args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def over_ranks(
    shared: Shared,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch's arguments, one by one. A call that cannot be is refused on every rank."""
    wrong = ""
    if attn_mask is not None:
        wrong = "attn_mask within context_parallel: give is_causal, or call ring_attention with a window or offsets."
    elif dropout_p:
        wrong = f"dropout_p={dropout_p} within context_parallel: weights are not dropped over several ranks; give 0."
    elif key.shape[-3] != query.shape[-3] and not enable_gqa:
        wrong = f"{key.shape[-3]} key heads for {query.shape[-3]} query heads: say enable_gqa=True."
    if wrong:
        refuse(shared.group, HeadworkError(wrong))
    if torch.is_autocast_enabled("cpu"):
        query, key, value = narrowed(query, key, value)
    out = ring_attention(
        query, key, value, group=shared.group, causal=is_causal, scale=scale, split=shared.split, method=shared.method
    )
    assert isinstance(out, Tensor)
    return out
