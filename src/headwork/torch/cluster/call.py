"""One call over the ranks of a group: what every rank must say alike, as text that an operator can carry."""

import json
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

import headwork
from headwork.engine.arguments import Causal, checked_scale, checked_softcap, reach
from headwork.errors import HeadworkError, ShapeError
from headwork.torch.cluster.agreement import short
from headwork.torch.cluster.blockwise import Scores
from headwork.torch.cluster.splits import Intervals, checked, digest
from headwork.torch.full import check_types
from headwork.torch.path import check_tensors

Method: TypeAlias = Literal["auto", "exchange", "ulysses", "gather"]


class Call(NamedTuple):
    """The options of a call, checked. Documents come as the tensor of their offsets beside it."""

    scores: Scores
    split: str | tuple[Intervals, ...]
    method: Method
    causal: bool
    gradients: bool

    def text(self) -> str:
        return json.dumps([*self.scores, self.split, self.method, self.causal, self.gradients])

    @staticmethod
    def of(text: str) -> "Call":
        window, scale, softcap, split, method, causal, gradients = json.loads(text)
        named = split if isinstance(split, str) else checked(split)
        return Call(Scores(tuple(window), scale, softcap), named, method, causal, gradients)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch is Any to the checker
def checked_call(
    d_k: int, causal: Any, window: Any, scale: Any, softcap: Any, split: Any, method: Any, gradients: bool
) -> str:
    if not isinstance(causal, bool):
        raise HeadworkError(f"causal is {causal!r}. Give True or False: tokens and keys are one sequence here.")
    if method not in get_args(Method):
        raise HeadworkError(f'method is {method!r}. Give "auto", "exchange", "ulysses" or "gather".')
    order: Causal = causal
    scores = Scores(reach(order, window), checked_scale(scale, d_k), checked_softcap(softcap))
    return Call(scores, checked(split), method, causal, gradients).text()


def check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """(…, heads, tokens, d): three axes or more, of one type, key heads that divide query heads."""
    check_tensors(query, key, value)
    check_types(query, key, value)
    shapes = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    told = f"query, key, value are {shapes[0]}, {shapes[1]}, {shapes[2]}"
    if len({len(shape) for shape in shapes}) > 1 or query.dim() < 3:
        raise ShapeError(f"{told}: give (…, heads, tokens, d), three axes or more, the same number for all three.")
    if len({query.dtype, key.dtype, value.dtype}) > 1:
        raise HeadworkError(f"query, key, value hold {query.dtype}, {key.dtype}, {value.dtype}: give one type.")
    if not query.is_cpu or not key.is_cpu or not value.is_cpu:
        raise HeadworkError(f"query is on {query.device}: attention over several ranks works on the CPU.")
    if key.shape[:-1] != value.shape[:-1] or query.shape[:-3] != key.shape[:-3] or query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"{told}: batches are the same, key and value have the same rows, query and key the same width."
        )
    if query.shape[-1] == 0:
        raise ShapeError(f"{told}: rows without numbers have no scores.")
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if kv_heads == 0 or heads % kv_heads:
        raise ShapeError(f"{told}: {kv_heads} key heads do not divide {heads} query heads.")


def checked_ends(offsets: Any) -> Tensor:
    """Where documents begin and end, over the whole sequence: 0 … tokens. The last is compared when it is known."""
    found = torch.as_tensor(offsets)
    if found.dim() != 1 or found.numel() < 2 or found.is_floating_point() or found.dtype == torch.bool:
        raise HeadworkError(
            f"offsets are {found.dtype} {tuple(found.shape)}. Give whole numbers in one row: 0, and the end of each "
            "document in the whole sequence."
        )
    return found.to("cpu", torch.int64)


def ends_of(offsets: Tensor | None, tokens: int) -> tuple[int, ...]:
    if offsets is None:
        return ()
    ends = offsets.tolist()
    if ends[0] != 0 or ends[-1] != tokens or ends != sorted(ends):
        raise HeadworkError(
            f"offsets are {short(ends)}: they start at 0, never fall, and end at {tokens}, the rows of all ranks."
        )
    return tuple(dict.fromkeys(ends[1:]))  # an empty document reads nothing


def description(
    name: str, call: Call, offsets: Tensor | None, tensors: tuple[Tensor, Tensor, Tensor]
) -> dict[str, Any]:
    """What must be the same on every rank: all but the number of rows."""
    query, key, value = tensors
    return {
        "function": name,
        "dtype": str(query.dtype),
        "shape of query without tokens": [*query.shape[:2], query.shape[3]],
        "shape of key without tokens": [*key.shape[:2], key.shape[3]],
        "shape of value without tokens": [*value.shape[:2], value.shape[3]],
        "causal": call.causal,
        "window": list(call.scores.window),
        "scale": call.scores.scale,
        "softcap": call.scores.softcap,
        "method": call.method,
        "split": call.split if isinstance(call.split, str) else digest(call.split),
        "offsets": "none" if offsets is None else digest(offsets.tolist()),
        "gradients asked for": call.gradients,
        "headwork's version": headwork.__version__,
    }
