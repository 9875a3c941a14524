"""`MultiHead`: the whole layer, projections and all."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine.arguments import Causal, checked_scale, checked_softcap
from headwork.engine.arrays import Array, floats
from headwork.engine.attention import attention
from headwork.engine.cache import Cache
from headwork.engine.head_norm import HeadNorm
from headwork.engine.layer_projections import Projections, projected
from headwork.engine.rotary import Rotary
from headwork.errors import HeadworkError, ShapeError

if TYPE_CHECKING:
    from headwork.working import Working


class CallOptions(TypedDict, total=False):
    """What a layer may be told when it is called, for the type checker; a test holds it to the signature."""

    mask: ArrayLike | None
    causal: Causal
    window: tuple[int, int] | None
    lengths: ArrayLike | None
    cache: Cache | None


class MultiHead:
    """[head_1 | … | head_h]·W_O + b_O, where head_i = softmax(Q_i·K_iᵀ/√d_k)·V_i.

    Q = X·W_Q + b_Q, K = C·W_K + b_K, V = C·W_V + b_V, where C is the context, or X itself. The columns of a projection
    are the heads' blocks, W_Q = [W_Q,1 | … | W_Q,h], and the three projections are blocks of one wide one,
    [W_Q | W_K | W_V]: one product gives every head's Q, K and V, and each is a view of its columns.

    W_Q (d_model, heads·d_k), W_K (d_context, kv_heads·d_k), W_V (d_context, kv_heads·d_v), W_O (heads·d_v, d_out);
    a bias has one number for every column. Query head i reads key head i // (heads / kv_heads).
    float32 or float64; 16-bit projections are widened to float32.

    rotary   a `headwork.engine.Rotary`, which turns Q and K by their positions
    relative  biases by distance, (heads, 2·r + 1), as in `headwork.attention`
    q_norm, k_norm  a `headwork.engine.HeadNorm` for every head's queries, and keys, before they are turned
    scale    1/√d_k unless given
    softcap  as in `headwork.attention`

    >>> layer = MultiHead(np.eye(2), np.eye(2), np.eye(2), np.eye(2), heads=1)
    >>> layer([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([[0.67, 0.33],
           [0.33, 0.67]])
    """

    def __init__(
        self,
        W_Q: ArrayLike,
        W_K: ArrayLike,
        W_V: ArrayLike,
        W_O: ArrayLike,
        *,
        heads: int,
        kv_heads: int | None = None,
        b_Q: ArrayLike | None = None,
        b_K: ArrayLike | None = None,
        b_V: ArrayLike | None = None,
        b_O: ArrayLike | None = None,
        rotary: Rotary | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        q_norm: HeadNorm | None = None,
        k_norm: HeadNorm | None = None,
        relative: ArrayLike | None = None,
    ) -> None:
        arrays = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O, "b_Q": b_Q, "b_K": b_K, "b_V": b_V, "b_O": b_O}
        self.projections = sizes = Projections(arrays, heads, kv_heads)
        self.heads, self.kv_heads, self.d_k, self.d_v = sizes.heads, sizes.kv_heads, sizes.d_k, sizes.d_v
        self.d_model, self.d_context, self.dtype = sizes.d_model, sizes.d_context, sizes.dtype
        checked_scale(scale, self.d_k)
        checked_softcap(softcap)
        if rotary is not None:
            rotary.check(self.d_k)
        for name, norm in (("q_norm", q_norm), ("k_norm", k_norm)):
            if norm is not None:
                norm.check(name, self.d_k)
        self.rotary, self.scale, self.softcap = rotary, scale, softcap
        self.q_norm, self.k_norm = q_norm, k_norm
        self.relative = None if relative is None else floats("relative", relative).astype(self.dtype)
        if self.relative is not None and (self.relative.ndim != 2 or len(self.relative) != self.heads):
            raise ShapeError(f"relative is {self.relative.shape}. Give ({self.heads}, 2·r + 1), a row for every head.")

    @classmethod
    def load(
        cls,
        source: str | PathLike[str] | Any,
        *,
        layer: int | str | None = None,
        heads: int | None = None,
        rotary: Rotary | Literal["config"] | None = "config",
    ) -> MultiHead:
        """One attention layer of somebody's model.

        `source` is a .safetensors file, a torch file of a state dict (.pt .pth .bin), a directory that holds one, a
        torch module, or a mapping of names to arrays. nn.MultiheadAttention, BERT, DistilBERT, ModernBERT, GPT-2,
        Llama, Qwen, Gemma, T5, BART, Whisper, CLIP and ViT are known by the names of their arrays.

        layer   its number, or the beginning of its tensors' names; not needed where there is only one
        heads   how many, where neither a config.json beside the file nor the module tells
        rotary  as the config.json or the module tells, unless given; so do scale, softcap and norms of the heads

        A model whose tokens read only earlier ones is called with causal=True, as always, and one that reads a window
        with its window.
        """
        from headwork.engine.layer_from_checkpoint import load

        return cls(**load(source, layer, heads, rotary))

    def astype(self, dtype: Any) -> MultiHead:
        """The same layer in float32 or float64."""
        named = self.projections.named().items()
        arrays: dict[str, Any] = {name: None if a is None else a.astype(dtype) for name, a in named}
        options: dict[str, Any] = {"rotary": self.rotary, "scale": self.scale, "softcap": self.softcap}
        options |= {"q_norm": self.q_norm, "k_norm": self.k_norm}
        options |= {"relative": None if self.relative is None else self.relative.astype(dtype)}
        return MultiHead(**arrays, heads=self.heads, kv_heads=self.kv_heads, **options)

    def cache(self, dtype: Any = None) -> Cache:
        """An empty cache for decoding, in the layer's type unless a narrower one is given."""
        held = np.dtype(self.dtype if dtype is None else dtype)
        floats("the cache", np.empty(0, held))
        if (held == np.float64) != (self.dtype == np.float64):
            raise HeadworkError(f"a cache of {held} does not go with a layer of {self.dtype}: leave dtype out.")
        return Cache(self.kv_heads, self.d_k, self.d_v, held)

    def __repr__(self) -> str:
        sizes = ("heads", "kv_heads", "d_model", "d_context", "d_k", "d_v", "dtype")
        return f"MultiHead({', '.join(f'{name}={getattr(self, name)}' for name in sizes)})"

    # fmt: off
    @overload
    def __call__(
        self, x: ArrayLike, context: ArrayLike | None = None, *,
        return_weights: Literal[False] = False, **options: Unpack[CallOptions],
    ) -> Array: ...
    @overload
    def __call__(
        self, x: ArrayLike, context: ArrayLike | None = None, *,
        return_weights: Literal[True], **options: Unpack[CallOptions],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, context: ArrayLike | None = None, *,
        return_weights: bool = False, **options: Unpack[CallOptions],
    ) -> Array | tuple[Array, Array]: ...
    # fmt: on
    def __call__(
        self,
        x: ArrayLike,
        context: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        causal: Causal = False,
        window: tuple[int, int] | None = None,
        lengths: ArrayLike | None = None,
        cache: Cache | None = None,
        return_weights: bool = False,
    ) -> Array | tuple[Array, Array]:
        """x (…, tokens, d_model) → (…, tokens, d_out), and the weights (…, heads, tokens, keys) if asked for.

        context         (…, keys, d_context), what keys and values are made of in cross-attention
        mask, causal, window, lengths  which keys a token reads, as in `headwork.attention`
        cache           the tokens stand after those in it, read them too and are added to it; what `causal` and
                        `window` count starts after them: causal=True, one step after another, is the whole causal pass

        A token that may read no key gives b_O. A call that is refused leaves the cache as it was.
        """
        given = self._input("x", x, self.d_model)
        source = None if context is None else self._input("context", context, self.d_context)
        self._check(given, source, cache)
        q, k, v = self.projections.heads_of(given, source)
        past, offset = 0 if cache is None else len(cache), None
        self.prepare(q, k, past)
        if cache is not None:
            k, v = cache.with_new(k, v)
            offset = past if causal or window is not None or self.relative is not None else None
            causal = bool(causal) if causal in (True, "bottom_right") else causal
        result = attention(
            q, k, v, mask=mask, causal=causal, offset=offset, window=window, lengths=lengths, scale=self.scale,
            softcap=self.softcap, relative=self.relative, layout="bshd", return_weights=return_weights,
        )  # fmt: skip
        if cache is not None:
            cache.keep(q.shape[-3])
        joined, weights = result if isinstance(result, tuple) else (result, None)
        wide = joined.reshape(*joined.shape[:-2], self.heads * self.d_v)
        out = projected(wide, self.projections.W_O, self.projections.b_O)
        return out if weights is None else (out, weights)

    def prepare(self, q: Array, k: Array, past: int) -> None:
        """Queries and keys, (…, tokens, heads, d_k), normed and turned in place; `past` tokens stand before them."""
        for heads, norm in ((q, self.q_norm), (k, self.k_norm)):
            if norm is not None:
                norm.scale(heads)
            if self.rotary is not None:
                self.rotary.turn(heads, past)

    def work(
        self,
        x: ArrayLike,
        context: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        causal: Causal = False,
        places: int = 2,
    ) -> Working:
        """The same layer on the same numbers as a page: every step worked, exact, with `places` decimals.

        x (tokens, d_model); the arrays' numbers are taken as they print, 0.1 as one tenth. With rotary positions or
        norms of the heads, which no step of the page has, Q and K are handed over as they are after them.
        """
        from headwork.layer_on_page import work

        return work(self, floats("x", x), None if context is None else floats("context", context), mask, causal, places)

    def _input(self, name: str, given: ArrayLike, width: int) -> Array:
        array = floats(name, given)
        if array.ndim < 2 or array.shape[-1] != width:
            raise ShapeError(f"{name} is {array.shape}, but this layer takes (…, tokens, {width}).")
        if (array.dtype == np.float64) != (self.dtype == np.float64):
            raise HeadworkError(
                f"{name} holds {array.dtype}, but the layer {self.dtype}: convert one, with {name}.astype"
                f"({str(self.dtype)!r}) or layer.astype({str(array.dtype)!r})."
            )
        return array.astype(self.dtype, copy=False)

    def _check(self, x: Array, context: Array | None, cache: Cache | None) -> None:
        if context is None and self.d_context != self.d_model:
            raise HeadworkError(
                f"this layer makes its keys of a context {self.d_context} wide, and x is {self.d_model} wide: give the "
                "context too."
            )
        if context is not None and cache is not None:
            raise HeadworkError("a cache holds the keys of x itself: give a context or a cache, not both.")
        if context is not None and (self.rotary is not None or self.relative is not None):
            raise HeadworkError("positions place tokens and keys in one sequence: give no context.")
        if context is not None and context.shape[:-2] != x.shape[:-2]:
            raise ShapeError(
                f"x is {x.shape} and the context {context.shape}: every axis before the last two is shared."
            )
        if cache is not None:
            cache.check(x.shape[:-2], self.kv_heads, self.d_k, self.d_v)
