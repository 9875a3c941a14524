"""`headwork.torch.attention`: every option against float64, gradients, compilers, transforms, mistakes."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from mixed_calls import Call, in_numpy, wrong
from mixed_packed import Cache, Packed
from torch.nn.functional import scaled_dot_product_attention

from headwork.engine.dropout import gain, keeps
from headwork.errors import HeadworkError
from headwork.torch import attention, attention_decode, attention_varlen, report, use
from headwork.torch.calls import Biases, What
from headwork.torch.formula import worked

# torch's compiler and its forward-mode derivatives use what torch deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MADE = torch.Generator().manual_seed(0)


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=MADE, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("hundred", range(3))
def test_calls_with_every_option_at_random(hundred: int) -> None:
    """Results and gradients, NumPy and torch, each against the formula in float64."""
    for number in range(100 * hundred, 100 * hundred + 100):
        call = (Call, Packed, Cache)[number % 3](number, seed=7)
        assert not wrong(call), f"{number}: {call}"


def test_a_wrong_answer_is_seen() -> None:
    """The comparison can fail: another scale, another number dropped."""
    call = Call(3, seed=7)
    call.options["scale"] = 0.3

    def off(call: Call, *upward: torch.Tensor) -> Any:
        call.options["scale"] = 0.31
        return in_numpy(call, *upward)

    assert "apart" in wrong(call, (off,))


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": (2, 1), "offset": 1},
    "left padding": {"causal": True, "starts": torch.tensor([1, 3])},
    "lengths": {"causal": "bottom_right", "lengths": torch.tensor([4, 2])},
    "softcap": {"softcap": 1.5},
    "sinks": {"sinks": drawn(4).requires_grad_()},
    "alibi": {"alibi": drawn(4).requires_grad_(), "causal": True},
    "relative": {"relative": drawn(4, 5).requires_grad_()},
    "dropout": {"dropout": 0.4, "seed": 3},
    "mask": {"mask": drawn(4, 5, 5).requires_grad_()},
}


def inputs(name: str) -> tuple[list[torch.Tensor], Any]:
    """Tensors that want gradients, and the function of them."""
    options = dict(OPTIONS[name])
    tensors = [drawn(2, 4, 5, 3), drawn(2, 2, 5, 3), drawn(2, 2, 5, 6)]
    named = [n for n, x in options.items() if isinstance(x, torch.Tensor) and x.requires_grad]
    tensors += [options.pop(n).detach().clone() for n in named]

    def both(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *more: torch.Tensor) -> Any:
        return attention(q, k, v, **options, **dict(zip(named, more, strict=True)), return_lse=True)

    return [t.requires_grad_() for t in tensors], both


@pytest.mark.parametrize("name", OPTIONS)
def test_gradcheck(name: str) -> None:
    tensors, function = inputs(name)
    assert torch.autograd.gradcheck(
        lambda *t: torch.where(function(*t)[1][..., None].isfinite(), function(*t)[0], 0), tensors
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_compiled_whole(name: str) -> None:
    tensors, function = inputs(name)
    torch._dynamo.reset()  # every option is another program of the same lines, and those are counted
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for ours, plain in zip(compiled(*tensors), function(*tensors), strict=True):
        torch.testing.assert_close(ours, plain)
    slopes = [torch.autograd.grad(f(*tensors)[0].square().sum(), tensors) for f in (compiled, function)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("name", OPTIONS)
def test_vmap_of_grad(name: str) -> None:
    """For every item of a new axis the gradients are those of the item alone; what all share has one for each."""
    tensors, function = inputs(name)
    wide = [torch.stack([t.detach(), 0.5 * t.detach()]) for t in tensors[:3]]
    slope = torch.func.grad(lambda *t: function(*t)[0].square().sum(), argnums=tuple(range(len(tensors))))
    shared = [t.detach() for t in tensors[3:]]
    got = torch.func.vmap(slope, in_dims=(0, 0, 0, *(None for _ in shared)))(*wide, *shared)
    for i in range(2):
        alone = slope(*(t[i] for t in wide), *shared)
        torch.testing.assert_close([t[i] for t in got], list(alone))


def test_the_fallback_is_the_same_attention() -> None:
    """What the kernel cannot read is worked in torch's own operations: the same numbers, the same weights dropped."""
    q, k, v = drawn(2, 4, 9, 8), drawn(2, 2, 7, 8), drawn(2, 2, 7, 5)
    spans = torch.tensor([[0, 9, 0, 6, 1, 0], [0, 9, 0, 7, -2, 2]])
    biases = Biases(drawn(9, 7), drawn(4), drawn(4).abs(), drawn(4, 5))
    what = What(spans, torch.tensor(11), False, 0, 5, 3, 0.4, 2.0, 0.3)
    out, lse = worked(q, k, v, biases, what)
    options: dict[str, Any] = {"window": (5, 3), "offset": [1, -2], "lengths": [6, 7], "starts": [0, 2], "scale": 0.4}
    options |= {"softcap": 2.0, "dropout": 0.3, "seed": 11, "return_lse": True}
    mask, sinks, alibi, relative = biases
    ours = attention(q, k, v, mask=mask, sinks=sinks, alibi=alibi, relative=relative, **options)
    torch.testing.assert_close(ours, (out, lse))


def test_forward_mode_goes_to_torch_and_is_right() -> None:
    x, way = drawn(2, 5, 4), drawn(2, 5, 4)
    with report() as ran:
        _, slope = torch.func.jvp(lambda q: attention(q, x, x, causal=True, softcap=3.0), (x,), (way,))
    step = 1e-6
    up, down = (attention(x + sign * step * way, x, x, causal=True, softcap=3.0) for sign in (1, -1))
    apart = torch.sub(up, down)
    torch.testing.assert_close(slope, apart / (2 * step), rtol=1e-5, atol=1e-7)
    assert ran.elsewhere() == 1


def test_a_row_without_keys_and_what_is_hidden() -> None:
    """Left padding holds NaN: no output and no gradient sees it, and rows that read nothing are zeros."""
    q, k, v = drawn(2, 3, 6, 4), drawn(2, 3, 6, 4), drawn(2, 3, 6, 4)
    for tensor in (k, v):
        tensor[1, :, :4] = torch.nan
    leaves = [t.requires_grad_() for t in (q, k, v)]
    out, lse = attention(*leaves, causal=True, starts=[0, 4], return_lse=True)
    out.sum().backward()
    assert out.isfinite().all()
    assert (out[1, :, :4] == 0).all()
    assert (lse[1, :, :4] == -torch.inf).all()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[1, :, :4] == 0).all()


def test_the_mean_over_seeds_is_the_undropped_result() -> None:
    q, k, v = drawn(4, 32, 8), drawn(4, 32, 8), drawn(4, 32, 8)
    whole, seeds = attention(q, k, v), 400
    found = torch.stack([attention(q, k, v, dropout=0.3, seed=s) for s in range(seeds)])
    spread = found.std(0) / seeds**0.5
    assert ((found.mean(0) - whole).abs() / spread).square().mean() < 1.15  # 1 where only chance is at work


def test_dropout_is_the_same_for_any_threads_and_drawn_anew_by_torch() -> None:
    q = drawn(2, 300, 16, dtype=torch.float32)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = q.clone().requires_grad_()
            out: Any = attention(leaf, leaf, leaf, dropout=0.1, seed=5)
            out.square().sum().backward()
            found.append(torch.cat((out.detach(), leaf.grad)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], x) for x in found)
    torch.manual_seed(1)
    once, again = attention(q, q, q, dropout=0.1), attention(q, q, q, dropout=0.1)
    torch.manual_seed(1)
    assert not torch.equal(once, again)
    assert torch.equal(once, attention(q, q, q, dropout=0.1))


def test_a_default_device_is_for_the_callers_own_tensors() -> None:
    """What a call makes for itself lies where its tensors lie; on "meta" there would be no numbers in it."""
    q, ends = drawn(2, 4, 9, 8, dtype=torch.float32), torch.tensor([0, 5, 9])
    packed, leaf = q[0].swapaxes(0, 1), q.clone().requires_grad_()
    ours: Any = attention
    calls: dict[str, Any] = {
        "lengths": lambda: attention(q, q, q, lengths=[9, 4]),
        "tensors": lambda: attention(q, q, q, lengths=ends[1:], starts=[1, 0], causal=True, offset=0),
        "dropout": lambda: attention(q, q, q, dropout=0.5, seed=5),
        "packed": lambda: attention_varlen(packed, packed, packed, ends, ends),
        "decode": lambda: attention_decode(q, q, q, lengths=[9, 4]),
        "gradients": lambda: torch.autograd.grad(ours(leaf, leaf, leaf, lengths=[9, 4]).sum(), leaf)[0],
        "below torch": lambda: torch.autograd.grad(scaled_dot_product_attention(leaf, leaf, leaf).sum(), leaf)[0],
    }
    with use():
        expected = {name: call() for name, call in calls.items()}
        with torch.device("meta"):
            for name, call in calls.items():
                torch.testing.assert_close(call(), expected[name], msg=name)


def test_what_is_dropped_looks_like_chance() -> None:
    """The share, and no link between neighbours in a row, a column, a head, or one seed and the next."""
    axes = (np.arange(8), np.arange(512), np.arange(512))
    kept = keeps(0.25, 1, 0, *axes) - 0.75
    assert abs(kept.mean()) < 4 * (0.25 * 0.75 / kept.size) ** 0.5
    others = [keeps(0.25, 2, 0, *axes) - 0.75, keeps(0.25, 1, 1, *axes) - 0.75]
    pairs = [(kept[:, :, 1:], kept[:, :, :-1]), (kept[:, 1:], kept[:, :-1]), (kept[1:], kept[:-1])]
    for a, b in pairs + [(kept, other) for other in others]:
        assert abs((a * b).mean() / (0.25 * 0.75)) < 5 / a.size**0.5
    assert gain(0.25) == 4 / 3


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a short sink": ({"sinks": torch.ones(3)}, "sinks is (3,)"),
    "whole numbers": ({"alibi": torch.ones(4, dtype=torch.int64)}, "alibi holds torch.int64"),
    "an even table": ({"relative": torch.ones(4, 6)}, "an odd number"),
    "too long": ({"lengths": [5, 6]}, "lengths runs from 5 to 6"),
    "beyond 64 bits": ({"lengths": 10**30}, "a number has more than 64 bits"),
    "a start before the first": ({"starts": -1}, "starts runs from -1"),
    "a fraction": ({"starts": torch.tensor(0.5)}, "starts holds torch.float32"),
    "one for nobody": ({"lengths": [1, 2, 3]}, "the batch is (2,)"),
    "more than all": ({"dropout": 1.5}, "from 0 to 1"),
    "no number": ({"dropout": 0.1, "seed": "a"}, "seed is 'a'"),
    "a mask of whole numbers": ({"mask": torch.ones(5, 5, dtype=torch.int64)}, "mask holds torch.int64"),
    "a mask that does not fit": ({"mask": torch.ones(5, 4)}, "the call has (…, heads, tokens, keys) = (2, 4, 5, 5)"),
    "an offset for nothing": ({"offset": 2}, "offset places the tokens"),
    "no scale": ({"scale": math.nan}, "scale is nan"),  # nothing else asked: the short way
    "two places": ({"offset": 2, "causal": "top_left"}, "both place the tokens"),
    "a layout": ({"layout": "sbhd"}, "layout is 'sbhd'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    options, said = MISTAKES[name]
    with pytest.raises(HeadworkError) as error:
        attention(drawn(2, 4, 5, 3), drawn(2, 2, 5, 3), drawn(2, 2, 5, 3), **options)
    assert said in str(error.value)


def test_spans_from_compiled_code_do_not_lead_out_of_the_arrays() -> None:
    """There nobody has seen the numbers before the kernel does."""
    x = drawn(2, 4, 5, 3)
    compiled = torch.compile(lambda x, n: attention(x, x, x, lengths=n), fullgraph=True, backend="aot_eager")
    assert compiled(x, torch.tensor([5, 2])).shape == x.shape
    with pytest.raises(ValueError, match="outside the tokens and keys"):
        compiled(x, torch.tensor([5, 60]))


PACKED: list[dict[str, Any]] = [{}, {"causal": "bottom_right", "softcap": 2.0}, {"window": (3, 2), "sinks": drawn(4)}]


@pytest.mark.parametrize("layout", ["shd", "hsd"])
@pytest.mark.parametrize("options", PACKED)
def test_packed_sequences_and_their_gradients(options: dict[str, Any], layout: Any) -> None:
    """Each sequence by itself, also one without tokens and one without keys."""
    at_q, at_k = torch.tensor([0, 5, 5, 12, 13]), torch.tensor([0, 7, 9, 20, 20])
    q, k, v = drawn(13, 4, 8), drawn(20, 2, 8), drawn(20, 2, 3)
    upward = drawn(13, 4, 3)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    parts = []
    for i in range(4):
        rows, keys = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
        parts.append(attention(leaves[0][rows], leaves[1][keys], leaves[2][keys], layout="bshd", **options))
    expected = torch.cat(parts)
    slopes = torch.autograd.grad(expected, leaves, upward)
    packed = [t.clone().requires_grad_() for t in (q, k, v)]
    turned = packed if layout == "shd" else [t.transpose(0, 1) for t in packed]
    out = attention_varlen(turned[0], turned[1], turned[2], at_q, at_k, layout=layout, **options)
    assert isinstance(out, torch.Tensor)
    out = out if layout == "shd" else out.transpose(0, 1)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(torch.autograd.grad(out, packed, upward), slopes)


def test_packed_mistakes() -> None:
    x = drawn(5, 2, 4)
    for ends, said in (([0, 6], "ends at 5"), ([0, 3, 2, 5], "never falls"), ([0.0, 5.0], "whole numbers")):
        with pytest.raises(HeadworkError, match=said):
            attention_varlen(x, x, x, torch.tensor(ends), torch.tensor([0, 5]))
