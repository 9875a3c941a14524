"""The operator under torch's own checks: gradients, compilers, transforms, training."""

from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.torch import explain, scaled_dot_product_attention
from headwork.torch.calls import Biases, plain
from headwork.torch.operator import FINE_LSE, NO_LSE, attention, attention_backward

LOWER = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # the first token reads nothing
OPTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (2, {}),
    "causal": (2, {"is_causal": True}),
    "scale": (2, {"scale": 0.7}),
    "grouped": (1, {"enable_gqa": True}),
    "Boolean": (2, {"attn_mask": LOWER}),
    "added": (2, {"attn_mask": torch.linspace(-1, 1, 25, dtype=torch.float64).view(5, 5)}),
    "added, by head": (2, {"attn_mask": torch.linspace(-1, 1, 2, dtype=torch.float64).view(2, 1, 1)}),
    "added, by key": (2, {"attn_mask": torch.linspace(-1, 1, 5, dtype=torch.float64).view(1, 5)}),
}


def inputs(kv_heads: int, **options: Any) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """q, k, v, and an additive mask, that want gradients; the rest of the options."""
    made = torch.Generator().manual_seed(0)
    shapes = [(2, 2, 5, 3), (2, kv_heads, 5, 3), (2, kv_heads, 5, 4)]
    arrays = [torch.randn(s, generator=made, dtype=torch.float64).requires_grad_() for s in shapes]
    mask = options.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        arrays.append(options.pop("attn_mask").clone().requires_grad_())
    return arrays, options


def call(options: dict[str, Any], function: Any = scaled_dot_product_attention) -> Any:
    return lambda q, k, v, *mask: function(q, k, v, **options, **({"attn_mask": mask[0]} if mask else {}))


@pytest.mark.parametrize("name", OPTIONS)
def test_gradcheck(name: str) -> None:
    """At once, and through the operator, which a transform asks for."""
    kv_heads, given = OPTIONS[name]
    arrays, options = inputs(kv_heads, **given)
    assert torch.autograd.gradcheck(call(options), arrays)
    lifted = torch.func.vmap(call(options))
    assert torch.autograd.gradcheck(lifted, [a.detach()[None].requires_grad_() for a in arrays])


def test_gradcheck_of_the_log_sum_exp() -> None:
    arrays, _ = inputs(2)
    flat = (*plain(False, 0.5), FINE_LSE)
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, *Biases(), *flat), arrays)
    seen = Biases(LOWER | torch.eye(5).bool())
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, *seen, *flat)[1], arrays)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_opcheck(masked: bool, dtype: torch.dtype) -> None:
    q, k, v = (a.detach().to(dtype).requires_grad_() for a in inputs(1)[0])
    mask = torch.randn(2, 1, 5).to(dtype).requires_grad_() if masked else None
    sinks, slopes, table = (torch.rand(s, dtype=torch.float32).requires_grad_() for s in ((2,), (2,), (2, 5)))
    biases, what = Biases(mask, sinks, slopes, table), plain(not masked, 0.5, 0.2, torch.tensor(3))
    if dtype == torch.float64:
        biases = Biases(mask, *(t.detach().double().requires_grad_() for t in (sinks, slopes, table)))
    torch.library.opcheck(attention, (q, k, v, *biases, *what, FINE_LSE))
    out, lse = attention(q, k, v, *biases, *what, FINE_LSE)
    saved = [t if t is None else t.detach() for t in (out, None, q, k, v, out, lse, *biases)]
    torch.library.opcheck(attention_backward, (*saved, *what, [masked, True, True, True]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["plain", "grouped", "added, by head"])
def test_compiled_whole(name: str, backend: str) -> None:
    kv_heads, given = OPTIONS[name]
    arrays, options = inputs(kv_heads, **given)
    compiled = torch.compile(call(options), fullgraph=True, backend=backend)
    out, expected = compiled(*arrays), call(options, torchs_own)(*arrays)
    torch.testing.assert_close(out, expected)
    upward = torch.randn_like(out)
    torch.testing.assert_close(torch.autograd.grad(out, arrays, upward), torch.autograd.grad(expected, arrays, upward))


def test_compiled_without_gradients() -> None:
    x = torch.randn(2, 4, 9, 8)
    compiled = torch.compile(scaled_dot_product_attention, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert (compiled(x, x, x, is_causal=True) - torchs_own(x, x, x, is_causal=True)).abs().max() < 1e-6


@pytest.mark.parametrize("in_dims", [(0, 0, 0, None), (0, None, 1, 0), (None, 2, None, 0), (1, 1, 1, 1)])
@pytest.mark.parametrize("rank", [2, 3])
def test_vmap(rank: int, in_dims: tuple[int | None, ...]) -> None:
    made = torch.Generator().manual_seed(0)
    mapped = []
    for sizes, at in zip([(5, 3), (6, 3), (6, 4), (5, 6)], in_dims, strict=True):
        shape = [2, *sizes][-rank:]
        if at is not None:
            shape.insert(at, 7)
        mapped.append(torch.randn(shape, generator=made, dtype=torch.float64).requires_grad_())
    ours, theirs = (torch.func.vmap(f, in_dims)(*mapped) for f in (scaled_dot_product_attention, torchs_own))
    torch.testing.assert_close(ours, theirs)
    upward = torch.randn_like(ours)
    torch.testing.assert_close(torch.autograd.grad(ours, mapped, upward), torch.autograd.grad(theirs, mapped, upward))


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: torch.func.grad(lambda q, k, v: f(q, k, v).square().sum(), argnums=(0, 1, 2)),
    "vmap": torch.func.vmap,
    "vmap of grad": lambda f: torch.func.vmap(TRANSFORMS["grad"](f)),
    "grad of vmap": lambda f: TRANSFORMS["grad"](torch.func.vmap(f)),
    "vmap of vmap": lambda f: torch.func.vmap(torch.func.vmap(f)),
    "jacrev": torch.func.jacrev,
    "vmap of jacrev": lambda f: torch.func.vmap(torch.func.jacrev(f)),
    "vjp": lambda f: lambda q, k, v: torch.func.vjp(f, q, k, v)[1](v),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of torch's own
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str, compiled: bool) -> None:
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    found = []
    for function in (scaled_dot_product_attention, torchs_own):
        work = TRANSFORMS[name](function)
        work = torch.compile(work, fullgraph=True, backend="aot_eager") if compiled else work
        found.append(work(q, k, v))
    torch.testing.assert_close(*found)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of torch's own
def test_a_batch_of_gradients_from_above() -> None:
    x = [torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    upward = torch.randn(3, 2, 5, 4, dtype=torch.float64)
    found = [
        torch.autograd.grad(f(*x), x, upward, is_grads_batched=True) for f in (scaled_dot_product_attention, torchs_own)
    ]
    torch.testing.assert_close(*found)


def test_gradients_for_each_item() -> None:
    """vmap over grad: the gradient of a mask that all items share is one for each."""
    q, k, v, mask = (torch.randn(s, dtype=torch.float64) for s in ((4, 5, 3), (4, 6, 3), (4, 6, 3), (5, 6)))
    found = []
    for function in (scaled_dot_product_attention, torchs_own):
        slope = torch.func.grad(lambda q, k, v, m, f=function: f(q, k, v, m).square().sum(), argnums=(0, 1, 2, 3))
        found.append(torch.func.vmap(slope, in_dims=(0, 0, 0, None))(q, k, v, mask))
    torch.testing.assert_close(*found)


class TinyTransformer(torch.nn.Module):
    def __init__(self, attend: Any) -> None:
        super().__init__()
        self.attend, self.heads, d = attend, 4, 32
        self.names = torch.nn.Embedding(17, d)
        self.places = torch.nn.Embedding(24, d)
        self.wide, self.join = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.up, self.down, self.read = torch.nn.Linear(d, 64), torch.nn.Linear(64, d), torch.nn.Linear(d, 17)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.names(tokens) + self.places.weight[: tokens.shape[1]]
        parts = self.wide(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.join(self.attend(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return self.read(x + self.down(torch.relu(self.up(x))))


def losses(attend: Any) -> list[float]:
    torch.manual_seed(0)
    model = TinyTransformer(attend)
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    found = []
    for _ in range(200):
        text = torch.randint(17, (8, 1)) + torch.arange(25) * torch.randint(1, 4, (8, 1))
        text %= 17
        loss = torch.nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        found.append(loss.item())
    return found


def in_float64(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool) -> torch.Tensor:
    return torchs_own(q.double(), k.double(), v.double(), is_causal=is_causal).float()


def test_a_transformer_learns_the_same() -> None:
    """200 steps from one seed: the same losses to 1e-4 as with attention in float64, and it does learn.

    Not as with torch's own in float32, which itself ends 5e-4 from the run with attention in float64.
    """
    x = torch.ones(1, 1, 2, 2, requires_grad=True)
    assert explain(x, x, x, is_causal=True).way == "kernel"
    ours, exact = losses(scaled_dot_product_attention), losses(in_float64)
    assert ours[-1] < 0.5 * ours[0]
    assert max(abs(a - b) for a, b in zip(ours, exact, strict=True)) < 1e-4


@pytest.mark.parametrize("recorded", [False, True])
def test_compiled_calls_keep_a_fine_log_sum_exp_for_gradients_alone(recorded: bool) -> None:
    """The last argument of the operator in the graphs that torch's compiler gets."""
    seen: list[Any] = []

    def look(graph: Any, inputs: Any) -> Any:
        seen.extend(node.args[-1] for node in graph.graph.nodes if node.target is attention)
        return make_boxed_func(graph.forward)

    q = torch.randn(1, 2, 5, 4, requires_grad=recorded)
    compiled = torch.compile(scaled_dot_product_attention, backend=aot_autograd(fw_compiler=look))
    torch.testing.assert_close(compiled(q, q, q), scaled_dot_product_attention(q, q, q))
    assert seen == [FINE_LSE if recorded else NO_LSE]
