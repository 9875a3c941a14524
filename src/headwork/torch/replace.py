"""`use` puts our kernel below torch's own `scaled_dot_product_attention`; `restore` takes it out again.

torch has a registry of implementations of fused attention. Ours registers for the operators that its function calls on
the CPU, forward, backward and, for dropout, written out: models that call torch's function run on our kernel, without a
change to them.
"""

import os
import sys
import warnings
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed
from torch.nn import attention as registry

from headwork.engine.backend import REASON, kernel
from headwork.errors import HeadworkError
from headwork.torch.attention import scaled_dot_product_attention
from headwork.torch.calls import Biases, accumulator, backward_into, forward_into, plain
from headwork.torch.path import Path, check_tensors, choose, foreign
from headwork.torch.report import Report, count, listening

if TYPE_CHECKING:
    from headwork.torch.cluster.torchs_own import Entries

NAME = "headwork"
BELOW = Path("kernel", "below torch's function")
OPERATOR = "_scaled_dot_product_flash_attention_for_cpu"
MATHS = torch.ops.aten._scaled_dot_product_attention_math.default
TOKENS_FIRST = (0, 2, 1, 3)  # torch lays what these operators return out so, and its compiler relies on it


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """torch calls this for tensors (batch, heads, tokens, d) without dropout."""
    if listening:
        count("use", BELOW)
    out = torch.empty_like(query)
    lse = torch.empty_permuted(query.shape[:-1], (0, 2, 1), dtype=accumulator(query), device=query.device)
    if out.numel():
        forward_into(out, lse, query, key, value, Biases(attn_mask), plain(is_causal, factor(query, scale)))
    if attn_mask is not None:
        lse.masked_fill_(lse == -torch.inf, 0)  # torch's for a row that reads nothing: its own backward may follow
    return out, lse


def backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (query.shape, key.shape, value.shape)
    like = {"dtype": query.dtype, "device": query.device}
    dq, dk, dv = (torch.empty_permuted(shape, TOKENS_FIRST, **like) for shape in shapes)
    saved = (query, key, value, out, logsumexp)
    what = plain(is_causal, factor(query, scale))
    backward_into((dq, dk, dv), Biases(), grad_out, None, saved, Biases(attn_mask), what)
    return dq, dk, dv


def written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """torch calls this for all that it has no fused kernel for: dropout, and masks with gradients, are ours.

    Not where the caller has switched fused kernels off. The second result, which torch's function drops, is empty.
    """
    if entered() and over_ranks().is_shared(query):
        out = over_ranks().beside(query, key, value, attn_mask, dropout_p, is_causal, scale)
        return out, query.new_empty(0)
    reason = beside(query, attn_mask, dropout_p) if dropout_mask is None else "a dropout mask is given"
    asked = (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    path = Path("torch", reason) if reason else choose(*asked)
    if path.way == "torch":
        count("use", path)
        given = (query, key, value, attn_mask, dropout_p, is_causal, dropout_mask)
        found: tuple[Tensor, Tensor] = MATHS.decompose(*given, scale=scale, enable_gqa=enable_gqa)
        return found
    return scaled_dot_product_attention(*asked), query.new_empty(0)


def below(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Path:
    """Which way torch's function takes while ours is in use: it asks itself first whether a fused kernel will do."""
    check_tensors(query, key, value, attn_mask)
    if foreigner := foreign(query, key, value, attn_mask):
        return Path("torch", foreigner)
    if not (query.numel() and key.numel() and value.numel()):
        return Path("torch", "nothing to work out")
    choice = torch._fused_sdp_choice(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    if choice == registry.SDPBackend.FLASH_ATTENTION.value:
        return BELOW
    if reason := beside(query, attn_mask, dropout_p):
        return Path("torch", reason)
    return choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def beside(query: Tensor, attn_mask: Tensor | None, dropout_p: float) -> str:
    """Why torch writes a call out that it has no fused kernel for, or has been told to use none; "" where ours may."""
    if not torch.backends.cuda.flash_sdp_enabled():
        return "fused kernels are switched off"
    if dropout_p or (attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()):
        return ""
    only = "tensors of 4 axes alone" if query.dim() != 4 else "other calls alone"
    return f"torch has a fused kernel for {only}"


def factor(query: Tensor, scale: float | None) -> float:
    return query.size(-1) ** -0.5 if scale is None else scale


class Registered:
    """The operators, ours until `remove`."""

    def __init__(self) -> None:
        # What torch writes out has no kernel of its own for the CPU: ours stands where gradients are recorded, too.
        keys = ("CPU", "AutogradCPU")
        self.libraries = [torch.library.Library("aten", "IMPL", key) for key in keys]
        with warnings.catch_warnings():
            # torch warns that a kernel is being replaced, which is what the caller has asked for.
            warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)
            self.libraries[0].impl(OPERATOR, forward, allow_override=True)
            self.libraries[0].impl(f"{OPERATOR}_backward", backward, allow_override=True)
            for library in self.libraries:
                library.impl(MATHS.name(), written_out, allow_override=True)

    def remove(self) -> None:
        for library in self.libraries:
            library._destroy()


class Use(Report):
    """Our kernel in torch's place, until `restore`d: as a context manager, at the end of the block, with a report of
    what ran in it.
    """

    def __init__(self, before: str | None, entries: "Entries | None") -> None:
        super().__init__()
        self.before = before
        self.entries = entries  # in torch's table for sequences over several ranks

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        with changing:
            if self in in_use:  # not where the block itself has restored it
                end(self)


in_use: list[Use] = []  # the last one is in force; all are ours, so only the first has put anything in place
changing = RLock()  # blocks of several threads begin and end in any order


def use() -> Use:
    """Run torch's `scaled_dot_product_attention` on our kernel from here on, or within a `with` block.

    Where torch.distributed is in use, torch's `context_parallel`, and what is built on it, runs on CPUs too.

    >>> x = torch.eye(2)
    >>> with use():
    ...     torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], scale=1.0)
    tensor([[[[0.7311, 0.2689],
              [0.2689, 0.7311]]]])
    """
    if kernel is None:
        raise HeadworkError(f"there is no kernel to use: {REASON}.")
    if not hasattr(registry, "restore_flash_attention_impl"):
        raise HeadworkError(
            f"use() needs the registry of attention that newer versions of torch have; this is {torch.__version__}: "
            "call headwork.torch.scaled_dot_product_attention, or upgrade torch."
        )
    with changing:
        ready = over_ranks().table() if may_be_over_ranks() and not entered() else None
        before = registry.current_flash_attention_impl()
        if before != NAME:
            registry.register_flash_attention_impl(NAME, register_fn=Registered)
            registry.activate_flash_attention_impl(NAME)
        last = Use(before, None if ready is None else ready.enter())
        in_use.append(last)
    return last


def may_be_over_ranks() -> bool:
    """Whether sequences may lie on several ranks: to get ready for it takes as long as a small program runs."""
    if not distributed.is_available():
        return False
    started = distributed.is_initialized() or "TORCHELASTIC_RUN_ID" in os.environ
    return started or "torch.distributed.tensor.experimental" in sys.modules


def over_ranks() -> Any:
    return import_module("headwork.torch.cluster.torchs_own")


def entered() -> bool:
    """Whether torch's table has our entries."""
    return any(one.entries is not None for one in in_use)


def restore() -> None:
    """Undo the last `use` that is still in force: torch's own kernel, or what was in its place, is back."""
    with changing:
        if not in_use:
            raise HeadworkError("there is nothing to restore: headwork.torch.use() was not called.")
        end(in_use[-1])


def end(one: Use) -> None:
    """What it put in place is taken out, or left to the next one that is still in force."""
    at = in_use.index(one)
    in_use.remove(one)
    if in_use[at:]:
        heir = in_use[at]
        heir.before = one.before if heir.before == NAME else heir.before
        heir.entries = heir.entries or one.entries
        return
    if one.entries is not None:
        one.entries.remove()
    if one.before == NAME:
        return
    registry.restore_flash_attention_impl()
    if one.before is not None:
        registry.activate_flash_attention_impl(one.before)
