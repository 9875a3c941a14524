"""How somebody's attention is called: (q, k, v), or x with projections, or a torch module; NumPy or torch; and in
which layout. Every way is a `Caller`, which takes a case in our own terms and gives back an array."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headwork.inspecting.torch_projections import projections
from headwork.readings.values import Array

Case = dict[str, Array]  # by role: Q, K, V, or X, W_Q …; "mask" holds True where a key may be read

LAYOUTS = ("(tokens, d)", "(batch, tokens, d)", "(batch, heads, tokens, d)")
LEADING = ((), (2,), (2, 3))  # the axes before the last two that each has
MASKS = ("mask", "attn_mask", "attention_mask", "src_mask")
CAUSAL = ("is_causal", "causal")
HEADS = ("heads", "num_heads", "n_heads", "nhead", "n_head", "h", "nheads", "number_of_heads")
WIDTHS = (
    *("d_model", "embed_dim", "dim", "embed_size", "hidden_size", "d"),
    *("emb", "n_embd", "d_in", "d_out", "model_dim"),
)
OTHERS: Mapping[str, Any] = {"dropout": 0.0, "dropout_p": 0.0, "attn_dropout": 0.0, "batch_first": True}
LENGTHS = ("context_length", "block_size", "max_len", "max_seq_len", "seq_len")
FIRST = ("x", "inputs", "input", "hidden_states", "embeddings", "tokens")

# What a mask may be.
TRUE_READ, ADDED = "True where a key may be read", "added: 0 or −∞"
ONE_READ, TRUE_HIDDEN = "1 where a key may be read", "True where a key is hidden"
FLAG = "a causal flag"


@dataclass(frozen=True)
class CaseSizes:
    """The lengths of a case."""

    tokens: int = 4
    keys: int = 4
    d_k: int = 4
    d_v: int = 4
    heads: int = 2


@dataclass(frozen=True)
class Caller:
    """One way of calling the function."""

    function: Any
    kind: str  # "qkv", "projections" or "module"
    framework: str
    leading: int
    names: tuple[str, ...] | None  # of its parameters, where they can be known
    dtype: str = "float64"
    mask_name: str | None = None
    mask_form: str = TRUE_READ
    three: bool = False  # a module called with (x, x, x)
    own: Mapping[str, Array] = field(default_factory=dict)  # a module's projections
    handing: Callable[[Any], Any] = lambda array: array  # what is done to every array on its way to the function

    @property
    def text(self) -> str:
        called = {"qkv": "(q, k, v)", "projections": "(x, W_Q, W_K, W_V …)", "module": "module(x)"}[self.kind]
        if self.three:
            called = "module(x, x, x)"
        return f"{called}, {self.framework}, {LAYOUTS[self.leading]}"

    def draw(self, sizes: CaseSizes, generator: np.random.Generator, whole: bool = False) -> Case:
        """Inputs of these sizes: without pattern, or small whole numbers for working by hand."""

        def drawn(*shape: int) -> Array:
            if whole:
                return generator.integers(-2, 3, shape).astype(np.float64)
            return generator.normal(0, 1, shape)

        lead = LEADING[self.leading]
        if self.kind == "qkv":
            return {
                "Q": drawn(*lead, sizes.tokens, sizes.d_k),
                "K": drawn(*lead, sizes.keys, sizes.d_k),
                "V": drawn(*lead, sizes.keys, sizes.d_v),
            }
        width = sizes.heads * sizes.d_k
        if self.kind == "module":
            return {"X": drawn(*lead, sizes.tokens, self.width(width)), **self.own}
        weights = {role: drawn(width, width) / (1 if whole else width**0.5) for role in self.weights()}
        return {"X": drawn(*lead, sizes.tokens, width), **weights}

    def width(self, otherwise: int) -> int:
        """d_model as the module's own projections have it."""
        return self.own["W_O"].shape[1] if "W_O" in self.own else otherwise

    def weights(self) -> tuple[str, ...]:
        """Which projections the function takes, by how many parameters come before the heads."""
        names = [n for n in self.names or () if n not in (*HEADS, *MASKS, *CAUSAL)]
        return ("W_Q", "W_K", "W_V", "W_O") if len(names) >= 5 else ("W_Q", "W_K", "W_V")

    def __call__(self, case: Case, heads: int = 2) -> Array:
        """The function's answer to a case, as a float64 array."""
        return as_array(self.raw(case, heads))

    def raw(self, case: Case, heads: int = 2) -> Any:
        if self.kind == "qkv":
            arguments = [self._own_kind(case[role]) for role in "QKV"]
        elif self.kind == "module":
            x = self._own_kind(case["X"])
            arguments = [x, x, x] if self.three else [x]
        else:
            arguments = [self._own_kind(case[role]) for role in ("X", *self.weights())]
        return self.function(*arguments, **self._named(case, heads, len(arguments)))

    def _named(self, case: Case, heads: int, taken: int) -> dict[str, Any]:
        """What else it asks for, by name."""
        given: dict[str, Any] = {}
        for name in (self.names or ())[taken:]:
            if name in HEADS and self.kind != "module":
                given[name] = heads
            elif name in ("d_k", "dk", "head_dim"):
                given[name] = case["Q"].shape[-1] if "Q" in case else case["X"].shape[-1] // heads
        if "mask" in case and self.mask_name is not None:
            given[self.mask_name] = self._mask(case["mask"].astype(bool))
        return given

    def _mask(self, seen: Any) -> Any:
        if self.mask_form == FLAG:
            return True
        if self.mask_form == ADDED:
            return self._own_kind(np.where(seen, 0.0, -np.inf))
        kept = {TRUE_READ: seen, ONE_READ: seen.astype(np.int64), TRUE_HIDDEN: ~seen}
        return self._own_kind(kept[self.mask_form], keep=True)

    def _own_kind(self, array: Any, keep: bool = False) -> Any:
        typed = np.array(array) if keep else np.array(array, dtype=self.dtype)  # a copy: it may be written to
        if self.framework == "torch":
            import torch

            return self.handing(torch.from_numpy(typed))
        return self.handing(typed)


def as_array(returned: Any) -> Array:
    """The first array of what was returned."""
    if isinstance(returned, tuple | list) and returned and not isinstance(returned[0], int | float):
        returned = returned[0]
    if hasattr(returned, "detach"):
        returned = returned.detach().double().numpy()
    return np.asarray(returned, dtype=np.float64)


def callers(function: Any) -> Iterator[Caller]:
    """Every way in which the function might be meant to be called, likeliest first."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        yield from _module_callers(function, torch)
        return
    names = _names(function)
    kind = "projections" if names and names[0].lower() in FIRST else "qkv"
    frameworks = ["torch", "numpy"] if torch is not None and _speaks_torch(function) else ["numpy", "torch"]
    for framework in frameworks:
        if framework == "torch" and torch is None:
            continue
        # torch mixes no precisions: a function with constants of its own may want single.
        for dtype in ("float64", "float32") if framework == "torch" else ("float64",):
            for leading in (0, 1, 2) if kind == "qkv" else (0, 1):
                yield Caller(function, kind, framework, leading, names, dtype)


def _speaks_torch(function: Any) -> bool:
    return "torch" in getattr(function, "__globals__", {}) or "torch" in str(getattr(function, "__module__", "torch"))


def _names(function: Any) -> tuple[str, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None  # built in: nothing is known of its parameters


def _module_callers(module: Any, torch: Any) -> Iterator[Caller]:
    module = module.double().eval()
    own = projections(module)
    names = _names(module.forward)
    three = bool(names) and len(names or ()) >= 3 and (names or ("",))[0].lower() not in FIRST
    for leading in (1, 0):
        yield Caller(module, "module", "torch", leading, names, three=three, own=own)


def with_masks(caller: Caller) -> Iterator[Caller]:
    """The same with a mask, in every form in which it may be meant; flags that make one come last.

    PyTorch's modules have an `attn_mask` in which True means hidden; a mask by any other name is held to ours.
    """
    known = [name for name in caller.names if name in MASKS] if caller.names is not None else list(MASKS[:2])
    for name in known:
        theirs = caller.kind == "module" and name in ("attn_mask", "src_mask")
        for form in (TRUE_HIDDEN, ADDED) if theirs else (TRUE_READ, ADDED, ONE_READ):
            yield replace(caller, mask_name=name, mask_form=form)
    for name in caller.names or ():
        if name in CAUSAL:
            yield replace(caller, mask_name=name, mask_form=FLAG)


def heads_of(function: Any) -> int:
    """A module's own number of heads, where it says so; else 2."""
    known = (getattr(function, name, None) for name in HEADS)
    return next((n for n in known if isinstance(n, int) and not isinstance(n, bool) and n > 0), 2)


def built(target: Any, d_model: int = 8, heads: int = 2) -> Any:
    """A function as it is; a module class or a factory of modules called with sizes that its parameters ask for."""
    torch: Any = sys.modules.get("torch")
    if torch is None or isinstance(target, torch.nn.Module):
        return target
    names = _names(target)
    is_class = isinstance(target, type) and issubclass(target, torch.nn.Module)
    factory = names is not None and all(name in (*WIDTHS, *HEADS) for name in names)
    if not is_class and not factory:
        return target
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if name in OTHERS:
            given[name] = OTHERS[name]
        elif name in WIDTHS:
            given[name] = d_model
        elif name in HEADS:
            given[name] = heads
        elif name in LENGTHS and parameter.default is inspect.Parameter.empty:
            given[name] = 16
    torch.manual_seed(0)
    return target(**given)
