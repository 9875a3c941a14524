"""Which way a call goes: the one place that decides."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as transformed
from torch._C import _is_any_autocast_enabled as narrowing
from torch._C import _is_tracing as traced
from torch._C import _len_torch_dispatch_stack as dispatched
from torch._C import _len_torch_function_stack as overriding_modes
from torch.autograd import _profiler_enabled as profiled
from torch.autograd import forward_ad
from torch.compiler import is_compiling
from torch.nn import Parameter
from torch.utils._device import DeviceContext

from headwork.engine.arrays import BATCH_AXES, broadcasts
from headwork.engine.backend import REASON, kernel
from headwork.errors import HeadworkError

Way = Literal["kernel", "operator", "ring", "torch"]
KNOWN = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
PLAIN = (Tensor, Parameter)
MEMORY_KEYS = set()
for _inference in (False, True):
    with torch.inference_mode(_inference):
        MEMORY_KEYS.add(torch._C._dispatch_keys(torch.empty(0, device="cpu")).raw_repr())


@dataclass(frozen=True)
class Path:
    """`kernel`: ours, at once. `operator`: ours, through torch's dispatcher. `ring`: ours, over several ranks. `torch`:
    torch's own function.
    """

    way: Way
    reason: str

    def __str__(self) -> str:
        return f"{self.way}: {self.reason}"


def quiet(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether nobody looks on or has a say and tensors that have memory may be read and written at once: `busy`, and
    a little more, asked in less than a microsecond. The kernel itself sees which have none.
    """
    if is_compiling() or narrowing() or transformed() or dispatched() or overriding_modes() or traced() or profiled():
        return False
    if forward_ad._current_level >= 0:
        return False
    if type(query) not in PLAIN or type(key) not in PLAIN or type(value) not in PLAIN:
        return False
    if query.is_neg() or key.is_neg() or value.is_neg():
        return False
    return mask is None or (type(mask) in PLAIN and not mask.is_neg())


def busy(query: Tensor, key: Tensor, value: Tensor, *others: Tensor | None) -> str:
    """Why the tensors' memory may not be read and written at once, behind the dispatcher's back; "" where it may."""
    if is_compiling():
        return "it is being compiled"
    if transformed():
        return "it is called under a transform of torch.func"
    if dispatched() or overriding_modes() or traced():
        return "it is being traced"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives"
    if any(type(tensor) not in PLAIN or turned(tensor) for tensor in (query, key, value)):
        return "a tensor is not plain memory"
    if any(other is not None and (type(other) not in PLAIN or turned(other)) for other in others):
        return "a mask or another tensor is not plain memory"
    return ""


def turned(tensor: Tensor) -> bool:
    """Read with the other sign, or without memory behind it."""
    return bool(tensor.is_neg() or tensor._is_zerotensor())


def is_memory(tensor: Tensor) -> bool:
    """Plain memory on the CPU: the dispatcher would do nothing on the way to it. Takes longer than `busy`."""
    return type(tensor) in PLAIN and torch._C._dispatch_keys(tensor).raw_repr() in MEMORY_KEYS


def needs_gradient(query: Tensor, key: Tensor, value: Tensor, *others: Tensor | None) -> bool:
    if not torch.is_grad_enabled():
        return False
    some = query.requires_grad or key.requires_grad or value.requires_grad
    return some or any(other is not None and other.requires_grad for other in others)


def check_tensors(*tensors: Tensor | None) -> None:
    """Other things than tensors are refused here, unless they say themselves what torch's functions mean to them."""
    for name, tensor in zip(("query", "key", "value", "attn_mask"), tensors, strict=False):
        optional = tensor is None and name == "attn_mask"
        if not optional and not isinstance(tensor, Tensor) and not torch.overrides.has_torch_function((tensor,)):
            kind = type(tensor)
            raise HeadworkError(
                f"{name} is {'None' if tensor is None else f'a {kind.__module__}.{kind.__qualname__}'}. Give a torch "
                "tensor; NumPy arrays go to headwork.attention."
            )


def check_place(name: str, tensor: Tensor, query: Tensor) -> None:
    """For calls of our own: dense, and where the query is."""
    if tensor.is_nested:
        raise HeadworkError(f"{name} holds nested tensors: give padded ones, with lengths.")
    if tensor.layout != torch.strided:
        raise HeadworkError(f"{name} is laid out as {tensor.layout}: give {name}.to_dense().")
    if tensor.device != query.device:
        raise HeadworkError(f"{name} is on {tensor.device} and query on {query.device}: give tensors on one device.")


def check_numbers(query: Tensor, **numbers: object) -> None:
    """Whole numbers may be on the CPU, wherever the query is."""
    for name, given in numbers.items():
        if isinstance(given, Tensor) and not (given.is_cpu and given.layout == torch.strided):
            check_place(name, given, query)


def overridden(tensors: tuple[Tensor, ...]) -> bool:
    """A tensor or a mode has a say of its own; the mode of a default device has none in what is computed."""
    if not torch.overrides.has_torch_function(tensors):
        return False
    modes = torch.overrides._get_current_function_mode_stack()
    if any(type(mode) is not DeviceContext for mode in modes):
        return True
    with torch._C.DisableTorchFunctionSubclass():
        return any(type(tensor) not in PLAIN for tensor in tensors)


def foreign(query: Tensor, key: Tensor, value: Tensor, *others: Tensor | None) -> str:
    """Why tensors like these are torch's to handle; "" where they are not."""
    if kernel is None:
        return f"{REASON}; torch's own is faster than NumPy"
    tensors = (query, key, value, *(other for other in others if other is not None))
    if overridden(tensors):
        return "a tensor or a mode has functions of its own"
    for tensor in tensors:
        if tensor.is_nested:
            return "nested tensors"
        if not tensor.is_cpu:
            return f"a tensor is on {tensor.device.type}"
        if tensor.layout != torch.strided:
            return f"a tensor is laid out as {tensor.layout}"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives"
    return ""


def unfit(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, grouped: bool) -> str:
    """Why these shapes are torch's to handle, mostly to refuse; "" where they fit."""
    ranks = (query.dim(), key.dim(), value.dim())
    if min(ranks) < 2 or max(ranks) > 3 + BATCH_AXES or (grouped and (min(ranks) < 3 or len(set(ranks)) > 1)):
        return f"tensors of {ranks} axes"
    if any(0 in (*tensor.shape[:-2], tensor.shape[-1]) for tensor in (query, key, value)):
        return "nothing to work out"  # no tokens or no keys are for the kernel, which takes them at once as well
    fit = key.shape[-1] == query.shape[-1] and key.shape[-2] == value.shape[-2]
    if grouped:
        fit = fit and key.shape[-3] == value.shape[-3] and query.shape[-3] % key.shape[-3] == 0
    lead = leading(query, key, value, grouped) if fit else None
    if lead is None:
        return f"shapes {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
    if mask is None:
        return ""
    if is_causal:
        return "attn_mask together with is_causal"
    if mask.dtype not in (torch.bool, query.dtype):
        return f"a mask of {mask.dtype}"
    whole = (*lead, query.shape[-2], key.shape[-2])
    if mask.dim() < 2 or not broadcasts(mask.shape, whole):
        return f"a mask of shape {tuple(mask.shape)}"
    return ""


def leading(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> tuple[int, ...] | None:
    """All axes of the result but the last two; None where they do not broadcast."""
    cut = -3 if grouped else -2
    shapes = query.shape[:cut], key.shape[:cut], value.shape[:cut]
    lead = shapes[0]
    if not shapes[0] == shapes[1] == shapes[2]:
        try:
            lead = torch.broadcast_shapes(*shapes)
        except RuntimeError:
            return None
    return (*lead, query.shape[-3]) if grouped else tuple(lead)


def choose(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Path:
    if kernel is not None:
        check_tensors(query, key, value, attn_mask)
    if foreigner := foreign(query, key, value, attn_mask):
        return Path("torch", foreigner)
    if type(is_causal) is not bool or type(enable_gqa) is not bool:
        return Path("torch", f"is_causal is {is_causal!r} and enable_gqa {enable_gqa!r}")
    if not isinstance(dropout_p, (int, float)) or not 0 <= dropout_p <= 1:
        return Path("torch", f"dropout_p is {dropout_p!r}")
    if scale is not None and not isinstance(scale, (int, float, torch.SymInt, torch.SymFloat)):
        return Path("torch", f"a scale of type {type(scale).__name__}")
    if not query.dtype == key.dtype == value.dtype or query.dtype not in KNOWN:
        return Path("torch", f"types {query.dtype}, {key.dtype}, {value.dtype}")
    if misfit := unfit(query, key, value, attn_mask, is_causal, enable_gqa):
        return Path("torch", misfit)
    return ours(query, key, value, attn_mask)


def where(query: Tensor, key: Tensor, value: Tensor, *others: Tensor | None) -> Path:
    """For calls of our own: shapes and types have been checked."""
    foreigner = foreign(query, key, value, *others)
    return Path("torch", foreigner) if foreigner else ours(query, key, value, *others)


def ours(query: Tensor, key: Tensor, value: Tensor, *others: Tensor | None) -> Path:
    if reason := busy(query, key, value, *others):
        return Path("operator", reason)
    gradient = needs_gradient(query, key, value, *others)
    return Path("kernel", "with gradients" if gradient else "without gradients")
