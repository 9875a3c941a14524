"""`MultiheadAttention`: torch's layer, with our attention in it."""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from headwork.errors import HeadworkError, ShapeError
from headwork.torch.attention import scaled_dot_product_attention
from headwork.torch.calls import Biases, accumulator, forward_into, linear, plain
from headwork.torch.path import Path, choose, needs_gradient
from headwork.torch.report import count

NESTED = Path("torch", "nested tensors")


class MultiheadAttention(nn.MultiheadAttention):
    """[head_1 | … | head_h]·W_O + b_O, head_i = softmax(Q_i·K_iᵀ/√d_k)·V_i: a drop-in for `nn.MultiheadAttention`.

    The same arguments, the same parameters under the same names, the same masks: True in a Boolean mask means "not to
    be read", as torch has it in this layer. A token that may read no key gives zeros before the output projection, not
    NaN, and its weights are zeros.

    in_proj_weight is [W_Q | W_K | W_V] transposed: where query, key and value are one tensor, one product gives all
    three, and every head reads its columns where they lie.

    >>> layer = MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.zeros(1, 3, 8)
    >>> layer(x, x, x, key_padding_mask=torch.tensor([[True, True, True]]))[0].isfinite().all()
    tensor(True)
    """

    def _reset_parameters(self) -> None:
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        # The last thing that torch's constructor does. In evaluation nn.TransformerEncoderLayer would work attention
        # out itself, with this layer's parameters and without calling it, where this says that one product can give
        # all three projections.
        self._qkv_same_embed_dim = False

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights or None), as `nn.MultiheadAttention.forward`.

        query (batch, tokens, d_model) if `batch_first`, else (tokens, batch, d_model), or (tokens, d_model) without a
        batch; key and value alike. Weights (batch, tokens, keys), or (batch, heads, tokens, keys) if not averaged.
        """
        if query.is_nested or key.is_nested or value.is_nested:
            plain_rows = query.layout == torch.strided and query.device.type == "cpu"
            alone = plain_rows and query is key and key is value and attn_mask is None and key_padding_mask is None
            if alone and self.batch_first and not (need_weights or torch.is_grad_enabled()):
                return self.of_several_lengths(query), None
            count("MultiheadAttention", NESTED)
            self._qkv_same_embed_dim = self.in_proj_weight is not None
            try:
                return super().forward(
                    query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
                )
            finally:
                self._qkv_same_embed_dim = False
        if is_causal and attn_mask is None:
            raise HeadworkError(
                "is_causal says that attn_mask is the causal one, and there is no attn_mask: give "
                "nn.Transformer.generate_square_subsequent_mask(tokens) too."
            )
        single = query.dim() == 2
        tokens_axis = 1 if self.batch_first or single else 0
        self.check(query, key, value, tokens_axis)
        q, k, v = self.heads(query, key, value, tokens_axis)
        padding = key_padding_mask if key_padding_mask is None or not single else key_padding_mask[None]
        # As in torch, the hint stands for the mask where nothing else is masked and no weights are asked for.
        plain = self.bias_k is None and not self.add_zero_attn
        causal = is_causal and padding is None and not need_weights and plain
        mask = None if causal else merged(attn_mask, padding, q, k)
        k, v, mask = self.more_keys(k, v, mask)
        dropped = self.dropout if self.training else 0.0
        if need_weights:
            out, weights = with_weights(q, k, v, mask, dropped)
        else:
            out, weights = scaled_dot_product_attention(q, k, v, mask, dropped, causal), None
        joined = out.permute((0, 2, 1, 3) if tokens_axis else (2, 0, 1, 3)).flatten(2)
        output = linear(joined, self.out_proj.weight, self.out_proj.bias)
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if single:
            return output[0], None if weights is None else weights[0]
        return output, weights

    def of_several_lengths(self, x: Tensor) -> Tensor:
        """The sequences that nn.TransformerEncoder makes of padded ones in evaluation, padded again."""
        padded = x.to_padded_tensor(0.0)
        lengths = torch.tensor([len(sequence) for sequence in x.unbind()], device=x.device)
        real = torch.arange(padded.shape[1], device=x.device) < lengths[:, None]
        out, _ = self.forward(padded, padded, padded, ~real, need_weights=False)
        return torch._nested_tensor_from_mask(out, real, mask_check=False)

    def check(self, query: Tensor, key: Tensor, value: Tensor, tokens_axis: int) -> None:
        """Widths, and as many values as keys."""
        if query.dim() not in (2, 3) or not query.dim() == key.dim() == value.dim():
            wanted = "give all three as (tokens, d), or all three with a batch"
        elif (query.shape[-1], key.shape[-1], value.shape[-1]) != (self.embed_dim, self.kdim, self.vdim):
            wanted = f"this layer takes the widths {self.embed_dim}, {self.kdim}, {self.vdim}"
        elif key.shape[:-1] != value.shape[:-1]:
            wanted = "every key needs one value"
        elif query.dim() == 3 and query.shape[1 - tokens_axis] != key.shape[1 - tokens_axis]:
            wanted = "every batch item needs its own keys"
        else:
            return
        raise ShapeError(
            f"query, key, value are {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}: {wanted}."
        )

    def heads(self, query: Tensor, key: Tensor, value: Tensor, tokens_axis: int) -> list[Tensor]:
        """Q, K and V as (batch, heads, tokens, d): views of as many products as there are different inputs."""
        width, W, b = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        b_Q, b_K, b_V = (None, None, None) if b is None else b.chunk(3)
        if W is not None and query is key and key is value:
            wide = linear(query, W, b).chunk(3, dim=-1)
        elif W is not None and key is value:
            b_KV = None if b is None else b[width:]
            wide = (linear(query, W[:width], b_Q), *linear(key, W[width:], b_KV).chunk(2, dim=-1))
        else:
            own = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) if W is None else W.chunk(3)
            wide = [linear(x, w, row) for x, w, row in zip((query, key, value), own, (b_Q, b_K, b_V), strict=True)]
        order = (0, 2, 1, 3) if tokens_axis else (1, 2, 0, 3)
        parted = [x.unflatten(-1, (self.num_heads, self.head_dim)) for x in wide]
        return [(x if x.dim() == 4 else x[None]).permute(order) for x in parted]

    def more_keys(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values that every token may read besides: the learned one, and one of zeros."""
        added = []
        if self.bias_k is not None:
            added.append([row.view(1, self.num_heads, 1, self.head_dim) for row in (self.bias_k, self.bias_v)])
        if self.add_zero_attn:
            added.append([k.new_zeros(1, 1, 1, 1)] * 2)
        for more in added:
            k, v = (
                torch.cat((x, y.expand(*x.shape[:2], 1, x.shape[3])), dim=2) for x, y in zip((k, v), more, strict=True)
            )
        if mask is not None and added:
            mask = pad(mask, (0, len(added)), value=mask.dtype == torch.bool)
        return k, v, mask


def merged(attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """Both of the layer's masks as one for attention: Boolean, True where a key may be read, or added to the scores."""
    batch, heads, tokens, _ = q.shape
    keys = k.shape[2]
    masks = []
    if attn_mask is not None:
        if attn_mask.shape not in ((tokens, keys), (batch * heads, tokens, keys)):
            raise ShapeError(
                f"attn_mask is {tuple(attn_mask.shape)}: give (tokens, keys) = {(tokens, keys)}, or "
                f"(batch·heads, tokens, keys) = {(batch * heads, tokens, keys)}."
            )
        masks.append(attn_mask if attn_mask.dim() == 2 else attn_mask.unflatten(0, (batch, heads)))
    if padding is not None:
        if padding.shape != (batch, keys):
            raise ShapeError(
                f"key_padding_mask is {tuple(padding.shape)}: give (batch, keys) = {(batch, keys)}, or (keys,) without "
                "a batch."
            )
        masks.append(padding[:, None, None, :])
    for mask in masks:
        if mask.dtype != torch.bool and not mask.is_floating_point():
            raise HeadworkError(f"a mask holds {mask.dtype}: give Booleans, True for what is hidden, or floats to add.")
    if not masks:
        return None
    if all(mask.dtype == torch.bool for mask in masks):
        return ~(masks[0] if len(masks) == 1 else masks[0] | masks[1])
    floats = [as_added(mask, q.dtype) for mask in masks]
    return floats[0] if len(floats) == 1 else floats[0] + floats[1]


def as_added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to the scores: −∞ where a Boolean mask hides."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf"))


def with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropped: float) -> tuple[Tensor, Tensor]:
    """(head outputs, weights): by our kernel, but where gradients are to flow through the weights too."""
    if dropped or choose(q, k, v, mask, 0.0, False, None, False).way != "kernel" or needs_gradient(q, k, v, mask):
        return explicit(q, k, v, mask, dropped)
    out, weights = torch.empty_like(q), q.new_empty((*q.shape[:-1], k.shape[2]), dtype=accumulator(q))
    forward_into(out, None, q, k, v, Biases(mask), plain(False, q.shape[-1] ** -0.5), weights)
    return out, weights.to(q.dtype)


def explicit(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropped: float) -> tuple[Tensor, Tensor]:
    """(head outputs, weights) with the whole matrix of weights, which is what was asked for."""
    batch = q.shape[:2]
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))  # copied once here, or by every product
    q, keys = q * q.shape[-1] ** -0.5, k.transpose(1, 2)
    if mask is None:
        weights = torch.bmm(q, keys).softmax(dim=-1)
    else:
        added = as_added(~mask, q.dtype) if mask.dtype == torch.bool else mask
        added = added if added.dim() == 2 else added.expand(*batch, -1, -1).flatten(0, 1)
        empty = (added == float("-inf")).all(dim=-1, keepdim=True)
        scores = torch.baddbmm(added, q, keys)  # the mask is added before 16-bit scores are rounded
        weights = scores.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)
    weights = dropout(weights, dropped) if dropped else weights
    return torch.bmm(weights, v).unflatten(0, batch), weights.unflatten(0, batch)
