"""`headwork.torch.scaled_dot_product_attention` is torch's function: values, errors, and which way a call takes."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.errors import HeadworkError
from headwork.torch import explain, functions, report, scaled_dot_product_attention

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
# Shapes of q, k, v and what else is asked.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 4, 9, 8), (2, 4, 9, 8), (2, 4, 9, 8), {}),
    "causal": ((2, 4, 9, 8), (2, 4, 9, 8), (2, 4, 9, 8), {"is_causal": True}),
    "causal, more keys": ((2, 4, 5, 8), (2, 4, 9, 8), (2, 4, 9, 8), {"is_causal": True}),
    "causal, fewer keys": ((2, 4, 9, 8), (2, 4, 5, 8), (2, 4, 5, 8), {"is_causal": True}),
    "scale": ((2, 4, 9, 8), (2, 4, 9, 8), (2, 4, 9, 8), {"scale": -0.3}),
    "two axes": ((9, 8), (7, 8), (7, 5), {}),
    "three axes": ((4, 9, 8), (4, 7, 8), (4, 7, 5), {}),
    "five axes": ((2, 3, 4, 9, 8), (2, 3, 4, 7, 8), (2, 3, 4, 7, 8), {}),
    "broadcast": ((2, 4, 9, 8), (1, 4, 7, 8), (2, 1, 7, 8), {}),
    "fewer axes": ((9, 8), (4, 7, 8), (2, 4, 7, 8), {}),
    "grouped": ((2, 8, 9, 8), (2, 2, 7, 8), (2, 2, 7, 8), {"enable_gqa": True}),
    "Boolean": ((2, 4, 3, 8), (2, 4, 4, 8), (2, 4, 4, 8), {"attn_mask": torch.tensor([[True, False, True, True]])}),
    "added": ((2, 4, 3, 8), (2, 4, 4, 8), (2, 4, 4, 8), {"attn_mask": torch.tensor([[0.5, -1.0, 0.0, -torch.inf]])}),
}


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32, grad: bool = False) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=made).to(dtype).requires_grad_(grad) for shape in shapes]


def test_the_arguments_are_torchs() -> None:
    """torch's own is built in and has no signature to read: its first line of documentation does."""
    ours = inspect.signature(scaled_dot_product_attention)
    theirs = "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False"
    assert theirs in " ".join(str(torchs_own.__doc__).split())
    assert [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in ours.parameters.values()] == (
        theirs.split(", ")
    )


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_torch(name: str, dtype: torch.dtype, grad: bool) -> None:
    """Against torch's function in float64, within the tolerance torch gives the type."""
    *shapes, options = CASES[name]
    q, k, v = tensors(*shapes, dtype=dtype, grad=grad)
    given = dict(options)
    if "attn_mask" in given and given["attn_mask"].is_floating_point():
        given["attn_mask"] = given["attn_mask"].to(dtype)
    assert explain(q, k, v, **given).way == "kernel"
    got = scaled_dot_product_attention(q, k, v, **given)
    if "attn_mask" in given and given["attn_mask"].is_floating_point():
        given["attn_mask"] = given["attn_mask"].double()
    exact = torchs_own(*(t.double() for t in (q, k, v)), **given)
    assert got.dtype == dtype
    torch.testing.assert_close(got, exact.to(dtype))
    if not grad:
        return
    upward = torch.randn_like(exact)
    ours = torch.autograd.grad(got, (q, k, v), upward.to(dtype))
    theirs = torch.autograd.grad(exact, (q, k, v), upward.to(dtype).double())
    if dtype in (torch.float32, torch.float64):
        torch.testing.assert_close(ours, theirs)
        return
    for a, b in zip(ours, theirs, strict=True):  # a fused backward pass reads the rounded output: some last places
        assert (a - b).abs().max() <= 4 * torch.finfo(dtype).eps * max(1, float(b.abs().max()))


def test_a_token_without_a_key_gives_zeros() -> None:
    q, k, v = tensors(*[(2, 5, 8)] * 3, grad=True)
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[3] = False
    out = scaled_dot_product_attention(q, k, v, mask)
    assert not out[:, 3].any()
    out.sum().backward()
    assert not q.grad[:, 3].any()
    assert torch.isfinite(k.grad).all()


BAD: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "mask and causal": ([(2, 5, 8)] * 3, {"attn_mask": torch.ones(5, 5, dtype=torch.bool), "is_causal": True}),
    "widths": ([(2, 5, 8), (2, 5, 7), (2, 5, 8)], {}),
    "keys": ([(2, 5, 8), (2, 5, 8), (2, 6, 8)], {}),
    "heads": ([(2, 5, 8), (3, 5, 8), (3, 5, 8)], {}),
    "groups": ([(1, 5, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)], {"enable_gqa": True}),
    "one axis": ([(8,)] * 3, {}),
    "a mask of whole numbers": ([(2, 5, 8)] * 3, {"attn_mask": torch.ones(5, 5, dtype=torch.int64)}),
    "a mask of one axis": ([(1, 2, 5, 8)] * 3, {"attn_mask": torch.zeros(5)}),
    "a mask that does not broadcast": ([(2, 5, 8)] * 3, {"attn_mask": torch.ones(4, 5, dtype=torch.bool)}),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_torchs(name: str) -> None:
    shapes, options = BAD[name]
    q, k, v = tensors(*shapes)
    with pytest.raises((RuntimeError, IndexError)) as theirs:
        torchs_own(q, k, v, **options)
    with pytest.raises(type(theirs.value)) as ours:
        scaled_dot_product_attention(q, k, v, **options)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("sizes", [(0, 7, 8, 8), (5, 0, 8, 8), (0, 0, 8, 8), (0, 7, 8, 4), (5, 0, 8, 4), (5, 7, 0, 8)])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("options", [{}, {"attn_mask": True}, {"dropout_p": 0.5}, {"is_causal": True}])
def test_explain_tells_what_runs_where_there_is_little_to_work_out(
    sizes: tuple[int, ...], recorded: bool, options: dict[str, Any]
) -> None:
    """Without tokens, without keys or with rows of no numbers; torch's own result and gradients, too."""
    tokens, keys, d_k, d_v = sizes
    q, k, v = tensors((2, 3, tokens, d_k), (2, 3, keys, d_k), (2, 3, keys, d_v), grad=recorded)
    given = options | ({"attn_mask": torch.ones(tokens, keys) > 0} if "attn_mask" in options else {})
    told = explain(q, k, v, **given)
    with report() as ran:
        found = scaled_dot_product_attention(q, k, v, **given)
    assert [(one.way, one.reason) for one in ran.calls] == [(told.way, told.reason)]
    if not given.get("dropout_p"):
        torch.testing.assert_close(found, torchs_own(q, k, v, **given))
    if recorded:
        found.sum().backward()
        assert all(x.grad is not None and x.grad.shape == x.shape for x in (q, k, v))


def test_explain_names_the_way_and_the_reason() -> None:
    q, k, v = tensors(*[(2, 4, 5, 8)] * 3)
    assert str(explain(q, k, v)) == "kernel: without gradients"
    assert str(explain(q.clone().requires_grad_(), k, v)) == "kernel: with gradients"
    assert str(explain(q, k, v, dropout_p=0.1)) == "kernel: without gradients"
    assert str(explain(q, k, v, dropout_p=1.1)) == "torch: dropout_p is 1.1"
    assert str(explain(*(t.to("meta") for t in (q, k, v)))) == "torch: a tensor is on meta"
    assert str(explain(q, k.double(), v)) == "torch: types torch.float32, torch.float64, torch.float32"
    assert str(explain(q, k[..., :7], v)) == "torch: shapes (2, 4, 5, 8), (2, 4, 5, 7), (2, 4, 5, 8)"
    assert str(explain(q[:0], k[:0], v[:0])) == "torch: nothing to work out"
    mask = torch.ones(5, 5)
    assert str(explain(q, k, v, mask, is_causal=True)) == "torch: attn_mask together with is_causal"
    assert str(explain(q, k, v, mask.double())) == "torch: a mask of torch.float64"
    ways: list[str] = []

    def noted(x: torch.Tensor) -> torch.Tensor:
        ways.append(str(explain(x, x, x)))
        return x

    torch.func.vmap(noted)(q)
    assert ways == ["operator: it is called under a transform of torch.func"]


@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning")
def test_nested_tensors_go_to_torch() -> None:
    parts = tensors((3, 2, 8), (5, 2, 8))
    x = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    assert str(explain(x, x, x)) in ("torch: nested tensors", "torch: a tensor or a mode has functions of its own")
    got, theirs = (f(x, x, x) for f in (scaled_dot_product_attention, torchs_own))
    for a, b in zip(got.unbind(), theirs.unbind(), strict=True):
        assert (a - b).abs().max() < 1e-6


def test_a_subclass_with_functions_of_its_own_is_asked() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "asked" if func is torchs_own else super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, 3, 4).as_subclass(Loud)
    assert scaled_dot_product_attention(x, x, x) == "asked"


def test_memory_that_is_read_negated() -> None:
    """The imaginary part of a conjugate is stored with the other sign."""
    x = torch.randn(2, 5, 8, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    y = x.clone()
    assert (scaled_dot_product_attention(x, x, x) - torchs_own(y, y, y)).abs().max() < 1e-6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's forward mode uses what torch deprecates
def test_a_forward_mode_tangent_is_not_dropped() -> None:
    """Through torch's own function, which has forward-mode rules in its plain form."""
    q, k, v, way = tensors(*[(2, 5, 8)] * 4, dtype=torch.float64)
    with forward_ad.dual_level(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert str(explain(q, k, v)) == "torch: forward-mode derivatives"
        found = [
            forward_ad.unpack_dual(f(forward_ad.make_dual(q, way), k, v)).tangent
            for f in (scaled_dot_product_attention, torchs_own)
        ]
    torch.testing.assert_close(*found)


def test_tensors_without_memory() -> None:
    q, k, v = tensors(*[(2, 5, 8)] * 3)
    meta = scaled_dot_product_attention(*(t.to("meta") for t in (q, k, v)))
    assert (meta.device.type, meta.shape) == ("meta", q.shape)
    zero = torch._efficientzerotensor(2, 5, 8)
    for given in ((zero, k, v), (q, zero, v), (q, k, zero)):
        assert explain(*given).way == "operator"
        got = scaled_dot_product_attention(*given)
        assert (got - torchs_own(*(t.clone() for t in given))).abs().max() < 1e-6
    slopes = torch.autograd.grad(scaled_dot_product_attention(q.requires_grad_(), k, v), q, zero)
    assert not slopes[0].any()


@pytest.mark.parametrize("shapes", [[(2, 5, 0)] * 3, [(2, 5, 0), (2, 5, 0), (2, 5, 4)], [(0, 5, 8)] * 3])
def test_empty_axes_are_torchs(shapes: list[tuple[int, ...]]) -> None:
    q, k, v = tensors(*shapes)
    assert explain(q, k, v).way == "torch"
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v), torchs_own(q, k, v))


class Noted(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_is_asked_and_explain_says_so() -> None:
    q, k, v = tensors(*[(2, 5, 8)] * 3)
    with Noted() as mode:
        scaled_dot_product_attention(q, k, v)
        assert torchs_own in mode.seen
        assert str(explain(q, k, v)) == "torch: a tensor or a mode has functions of its own"
    with torch.device("cpu"):  # a mode that says where new tensors go, and nothing about this
        assert explain(q, k, v).way == "operator"
        torch.testing.assert_close(scaled_dot_product_attention(q, k, v), torchs_own(q, k, v))


def test_what_is_no_tensor_is_refused_by_name() -> None:
    q, k, v = tensors(*[(2, 5, 8)] * 3)
    bad: Any
    for bad, said in (
        (
            np.ones((2, 5, 8), np.float32),
            r"a numpy.ndarray. Give a torch tensor; NumPy arrays go to headwork.attention",
        ),
        (None, "None. Give a torch tensor"),
        ([[1.0]], "a builtins.list"),
    ):
        for at, name in enumerate(("query", "key", "value")):
            given = [q, k, v]
            given[at] = bad
            with pytest.raises(HeadworkError, match=f"{name} is {said}"):
                scaled_dot_product_attention(*given)
            with torch.autocast("cpu"), pytest.raises(HeadworkError, match=f"{name} is {said}"):
                scaled_dot_product_attention(*given)
    with pytest.raises(HeadworkError, match=r"attn_mask is a numpy.ndarray"):
        scaled_dot_product_attention(q, k, v, np.ones((5, 5), bool))
    with pytest.raises(TypeError, match="'scale' must be float, not str"):
        scaled_dot_product_attention(q, k, v, scale="a")  # type: ignore[arg-type]  # the mistake
    assert (scaled_dot_product_attention(q, k, v, scale=1) == scaled_dot_product_attention(q, k, v, scale=1.0)).all()


def test_strides_are_followed_and_kept() -> None:
    wide = torch.randn(2, 9, 4, 3 * 8)
    q, k, v = (part.transpose(1, 2) for part in wide.chunk(3, -1))
    got = scaled_dot_product_attention(q, k, v)
    assert (got - torchs_own(*(t.contiguous() for t in (q, k, v)))).abs().max() < 1e-6
    assert got.transpose(1, 2).is_contiguous()  # as the heads were stored: joining them costs no copy


def test_autocast_means_what_it_means_to_torch() -> None:
    q, k, v = tensors(*[(2, 4, 9, 8)] * 3, grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        got, theirs = (f(q, k, v, torch.zeros(9, 9)) for f in (scaled_dot_product_attention, torchs_own))
        assert explain(q, k, v, torch.zeros(9, 9)).way == "kernel"
    assert got.dtype == theirs.dtype == torch.bfloat16
    exact = torchs_own(*(t.bfloat16().double() for t in (q, k, v)))
    torch.testing.assert_close(got, exact.bfloat16())
    got.sum().backward()
    assert q.grad.dtype == torch.float32


def test_a_second_derivative_is_refused() -> None:
    q, k, v = tensors(*[(2, 5, 8)] * 3, grad=True)
    (first,) = torch.autograd.grad(scaled_dot_product_attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(HeadworkError, match="no second derivatives"):
        first.sum().backward()
    curve = torch.func.grad(lambda x: torch.func.grad(lambda y: scaled_dot_product_attention(y, k, v).sum())(x).sum())
    with pytest.raises(HeadworkError, match="no second derivatives"):
        curve(q)


@pytest.mark.parametrize("name", ["plain", "causal", "grouped", "Boolean"])
def test_what_is_worked_again_is_what_was_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small call keeps neither its output nor its log-sum-exp for the gradients: bit for bit the same."""
    *shapes, options = CASES[name]
    q, k, v = tensors(*shapes, grad=True)
    found = []
    for limit in (0, 10**9):
        monkeypatch.setattr(functions, "SOON_AGAIN", limit)
        out = scaled_dot_product_attention(q, k, v, **options)
        found.append(torch.autograd.grad(out.square().sum(), (q, k, v)))
    for kept, again in zip(*found, strict=True):
        assert torch.equal(kept, again)


@pytest.mark.parametrize("limit", [0, 10**9])
def test_gradients_from_above_that_are_no_plain_memory(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read negated, without memory behind them, several at once, or watched by the profiler; one that is not asked."""
    monkeypatch.setattr(functions, "SOON_AGAIN", limit)
    q, k, v = tensors((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), grad=True)
    upward = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(1))
    k = k.detach()
    ours, theirs = (f(q, k, v) for f in (scaled_dot_product_attention, torchs_own))
    for above in (upward, torch._neg_view(upward), torch._efficientzerotensor(upward.shape)):
        got, wanted = (torch.autograd.grad(out, (q, v), above, retain_graph=True) for out in (ours, theirs))
        torch.testing.assert_close(got, wanted)
    several = torch.stack([upward, -upward])
    got = torch.autograd.grad(ours, (q, v), several, retain_graph=True, is_grads_batched=True)
    once = torch.autograd.grad(theirs, (q, v), upward, retain_graph=True)
    torch.testing.assert_close(got, tuple(torch.stack([x, -x]) for x in once))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        torch.autograd.grad(ours, (q, v), upward)
    assert "headwork::backward" in {event.key for event in seen.key_averages()}
