"""`headwork.torch.MultiheadAttention` is `nn.MultiheadAttention`: torch's own samples, options, masks and gradients."""

import copy
import inspect
import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from headwork import MultiHead
from headwork.engine.backend import kernel
from headwork.errors import HeadworkError
from headwork.torch import MultiheadAttention, calls

MODULE = next(info for info in module_db if info.module_cls is nn.MultiheadAttention)
FORWARD = next(info for info in op_db if info.name == "nn.functional.multi_head_attention_forward")
SEED = 42  # which its samples' function sets for itself
# What torch allows this function when its sums are taken in another order; where it says nothing, its usual measure.
TOLERANCE = {
    dtype: {"atol": tolerance.atol, "rtol": tolerance.rtol}
    for info in FORWARD.decorators
    for override in info.decorators
    for dtype, tolerance in getattr(override, "d", {}).items()
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Layers this small have nothing to share, and threads that wait for each other are slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pair(*arguments: Any, **options: Any) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
    """torch's layer and ours with the same parameters, none of them zero."""
    theirs = nn.MultiheadAttention(*arguments, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    ours = MultiheadAttention(*arguments, **options)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def gradients(module: nn.Module, inputs: list[Tensor], outputs: tuple[Tensor | None, ...]) -> list[Tensor]:
    """Of a sum with different factors, so that no two entries can stand in for each other."""
    total = sum((out * torch.arange(out.numel()).view(out.shape)).sum() for out in outputs if out is not None)
    return list(torch.autograd.grad(total, [*inputs, *module.parameters()]))


def test_the_arguments_are_torchs() -> None:
    for name in ("__init__", "forward"):
        ours, theirs = (inspect.signature(getattr(c, name)) for c in (MultiheadAttention, nn.MultiheadAttention))
        assert [(p.name, p.default) for p in ours.parameters.values()] == [
            (p.name, p.default) for p in theirs.parameters.values()
        ]


def module_samples() -> Iterator[Any]:
    for dtype, training in itertools.product(MODULE.dtypes, (False, True)):
        for sample in MODULE.module_inputs_func(MODULE, "cpu", dtype, True, training):
            yield dtype, training, sample


@pytest.mark.parametrize("need_weights", [False, True])
def test_torchs_samples_for_the_module(need_weights: bool) -> None:
    """ModuleInfo's: the result against torch's layer and its reference, and in float64 every gradient."""
    seen = 0
    for dtype, training, sample in module_samples():
        torch.manual_seed(seen)
        made = sample.constructor_input
        theirs, ours = pair(*made.args, **made.kwargs, dtype=dtype)
        theirs.train(training)
        ours.train(training)
        arguments, options = sample.forward_input.args, {**sample.forward_input.kwargs, "need_weights": need_weights}
        expected, got = theirs(*arguments, **options), ours(*arguments, **options)
        assert_close(got, expected)
        if need_weights:
            reference = sample.reference_fn(ours, *arguments, **sample.forward_input.kwargs)
            assert_close(got, reference)
        if dtype == torch.float64:  # inputs up to 9 saturate the softmax: in float32 the gradients are mostly rounding
            assert_close(gradients(ours, [*arguments], got), gradients(theirs, [*arguments], expected))
        seen += 1
    assert seen == 256


def as_module(sample: Any) -> tuple[MultiheadAttention, list[Tensor], dict[str, Any]]:
    """The functional form's arguments as a layer that has them for parameters."""
    key, value, width, heads, in_proj, in_bias, bias_k, bias_v, zero, dropped, out_weight, out_bias = sample.args
    named = dict(sample.kwargs)
    training, separate = named.pop("training"), named.pop("use_separate_proj_weight")
    # A width of their own for keys gives a layer three projections; theirs are then put in the place of its own.
    layer = MultiheadAttention(width, heads, dropped, add_bias_kv=True, add_zero_attn=zero, kdim=width + separate)
    layer.kdim = layer.vdim = width
    parameters = {"in_proj_weight": in_proj, "in_proj_bias": in_bias, "bias_k": bias_k, "bias_v": bias_v}
    parameters |= {name: named.pop(name) for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")}
    for name, tensor in parameters.items():
        if tensor is not None:
            shaped = tensor.view(1, 1, -1) if name in ("bias_k", "bias_v") else tensor
            setattr(layer, name, nn.Parameter(shaped.detach().clone()))
    layer.out_proj.weight = nn.Parameter(out_weight.detach().clone())
    layer.out_proj.bias = nn.Parameter(out_bias.detach().clone())
    return layer.train(training), [sample.input, key, value], named


def drops_by_itself(layer: MultiheadAttention, need_weights: bool) -> bool:
    """Our kernel drops other weights than torch does after the same seed; the same ones every time."""
    return layer.training and layer.dropout > 0 and not need_weights


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_torchs_samples_for_the_function(dtype: torch.dtype, need_weights: bool) -> None:
    """OpInfo's for `multi_head_attention_forward`, within torch's tolerance; dropout from the same seed."""
    seen = 0
    for sample in FORWARD.sample_inputs("cpu", dtype, requires_grad=False):
        layer, inputs, named = as_module(sample)
        expected = FORWARD.op(sample.input, *sample.args, **sample.kwargs, need_weights=need_weights)
        torch.manual_seed(SEED)
        got = layer(*inputs, **named, need_weights=need_weights)
        if drops_by_itself(layer, need_weights):
            torch.manual_seed(SEED)
            expected = layer(*inputs, **named, need_weights=need_weights)
        assert_close(got, expected, **({} if need_weights else TOLERANCE.get(dtype, {})))
        seen += 1
    assert seen == 192


def test_torchs_tolerance_was_found() -> None:
    assert {torch.float32: {"atol": 5e-3, "rtol": 0}} == TOLERANCE


@pytest.mark.parametrize("need_weights", [False, True])
def test_torchs_gradient_samples_for_the_function(need_weights: bool) -> None:
    for sample in FORWARD.sample_inputs("cpu", torch.float64, requires_grad=True):
        layer, inputs, named = as_module(sample)
        expected = FORWARD.op(sample.input, *sample.args, **sample.kwargs, need_weights=need_weights)
        torch.manual_seed(SEED)
        got = layer(*inputs, **named, need_weights=need_weights)
        if drops_by_itself(layer, need_weights):
            continue  # held to the formula in test_torch_full
        theirs = [*inputs, sample.args[4], sample.args[5], sample.args[10], sample.args[11]]
        ours = [*inputs, layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias]
        assert_close(torch.autograd.grad(got[0].sum(), ours), torch.autograd.grad(expected[0].sum(), theirs))


@settings(max_examples=120)
@given(data=st.data())
def test_every_option_means_what_it_means_in_torch(data: st.DataObject) -> None:
    """Outputs, weights and gradients in float64, whatever is combined; every token may read a key."""
    flag = st.booleans()
    options: dict[str, Any] = {
        name: data.draw(flag, name) for name in ("bias", "add_bias_kv", "add_zero_attn", "batch_first")
    }
    options |= {name: data.draw(st.sampled_from([None, 6, 5]), name) for name in ("kdim", "vdim")}
    torch.manual_seed(data.draw(st.integers(0, 1000), "seed"))
    theirs, ours = pair(6, data.draw(st.sampled_from([1, 2, 3]), "heads"), dtype=torch.float64, **options)
    theirs.train(training := data.draw(flag, "training"))
    ours.train(training)
    batched, tokens = data.draw(flag, "batched"), data.draw(st.integers(1, 5), "tokens")
    same = data.draw(st.sampled_from(["all", "key is value", "none"]), "same")
    keys = tokens if same == "all" else data.draw(st.integers(1, 5), "keys")
    same = "none" if theirs.kdim != theirs.vdim or (same == "all" and theirs.kdim != 6) else same
    inputs = [
        drawn(rows, width, batched, theirs) for rows, width in ((tokens, 6), (keys, theirs.kdim), (keys, theirs.vdim))
    ]
    inputs = {"all": [inputs[0]] * 3, "key is value": [inputs[0], inputs[1], inputs[1]], "none": inputs}[same]
    masks = drawn_masks(data, 2 if batched else 0, theirs.num_heads, tokens, keys)
    asked = {name: data.draw(flag, name) for name in ("need_weights", "average_attn_weights")}
    expected, got = theirs(*inputs, **masks, **asked), ours(*inputs, **masks, **asked)
    assert_close(got, expected, rtol=1e-10, atol=1e-12)
    leaves = list(dict.fromkeys(inputs))
    theirs_too = gradients(theirs, leaves, expected)
    assert_close(gradients(ours, leaves, got), theirs_too, rtol=1e-9, atol=1e-10)


def drawn(rows: int, width: int, batched: bool, layer: nn.MultiheadAttention) -> Tensor:
    shape = ((2, rows) if layer.batch_first else (rows, 2)) if batched else (rows,)
    return torch.randn(*shape, width, dtype=torch.float64, requires_grad=True)


def drawn_masks(data: st.DataObject, batch: int, heads: int, tokens: int, keys: int) -> dict[str, Tensor]:
    """Masks of one type, Boolean or float, that leave the first key to every token."""
    boolean = data.draw(st.booleans(), "Boolean masks")
    shapes: dict[str, tuple[int, ...]] = {
        "key_padding_mask": (batch, keys) if batch else (keys,),
        "attn_mask": (tokens, keys),
    }
    if data.draw(st.booleans(), "a mask for every head"):
        shapes["attn_mask"] = (max(batch, 1) * heads, tokens, keys)
    chosen = data.draw(st.sets(st.sampled_from(["key_padding_mask", "attn_mask"])), "masks")
    found = {}
    for name in sorted(chosen):
        hidden = torch.rand(shapes[name]) < 0.4
        hidden[..., 0] = False
        noise = torch.randn(shapes[name], dtype=torch.float64)
        found[name] = hidden if boolean else noise.masked_fill(hidden, float("-inf"))
    return found


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("boolean", [False, True])
def test_an_all_padded_sequence_gives_the_output_bias(boolean: bool, training: bool, need_weights: bool) -> None:
    """Zeros before the output projection, zero weights, finite gradients; the other sequence is as it was."""
    theirs, ours = pair(8, 2, batch_first=True)
    theirs.train(training)
    ours.train(training)
    x = torch.randn(2, 3, 8, requires_grad=True)
    padding: Tensor = torch.tensor([[True, True, True], [False, False, True]])
    if not boolean:
        padding = torch.zeros(2, 3).masked_fill(padding, float("-inf"))
    out, weights = ours(x, x, x, key_padding_mask=padding, need_weights=need_weights)
    assert_close(out[0], ours.out_proj.bias.expand(3, 8))
    assert_close(out[1], theirs(x, x, x, key_padding_mask=padding)[0][1])
    if weights is not None:
        assert (weights[0] == 0).all()
    assert all(g.isfinite().all() for g in gradients(ours, [x], (out, weights)))


def test_torchs_own_layer_is_not_finite_there() -> None:
    """So that the test above says something."""
    theirs, _ = pair(8, 2, batch_first=True)
    x = torch.randn(1, 3, 8)
    with torch.no_grad():
        assert theirs.eval()(x, x, x, key_padding_mask=torch.ones(1, 3, dtype=torch.bool))[0].isnan().all()


@pytest.mark.parametrize("more", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}])
@pytest.mark.parametrize("need_weights", [False, True])
def test_the_causal_hint(need_weights: bool, more: dict[str, bool]) -> None:
    """It changes nothing but the speed: a key that is added is read by every token all the same."""
    _, ours = pair(8, 2, batch_first=True, dtype=torch.float64, **more)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    plain = ours(x, x, x, attn_mask=mask, need_weights=need_weights)
    assert_close(ours(x, x, x, attn_mask=mask, is_causal=True, need_weights=need_weights), plain)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    both = ours(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=need_weights)
    hinted = ours(x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=True, need_weights=need_weights)
    assert_close(hinted, both)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"add_bias_kv": True}, {"kdim": 3, "vdim": 5}])
def test_parameters_go_both_ways(options: dict[str, Any]) -> None:
    theirs, ours = nn.MultiheadAttention(8, 2, **options), MultiheadAttention(8, 2, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert_close(dict(theirs.state_dict()), dict(ours.state_dict()))
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(copied) is MultiheadAttention
        assert_close(dict(copied.state_dict()), dict(ours.state_dict()))


def test_the_same_layer_in_numpy() -> None:
    """`MultiHead.load` reads this module as it reads torch's."""
    _, ours = pair(8, 2, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    assert_close(torch.from_numpy(MultiHead.load(ours)(x.numpy())), ours(x, x, x, need_weights=False)[0].detach())


@pytest.mark.parametrize("need_weights", [False, True])
def test_it_compiles_whole(need_weights: bool) -> None:
    """No graph break, in evaluation and with gradients. The compiler's front end is what is tested, not its code."""
    _, ours = pair(8, 2, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    for mask in (None, padding):
        got, expected = (f(x, x, x, key_padding_mask=mask, need_weights=need_weights) for f in (compiled, ours))
        assert_close(got, expected)
        assert_close(gradients(ours, [x], got), gradients(ours, [x], expected))
    with torch.no_grad():
        assert_close(compiled(x, x, x, need_weights=need_weights), ours(x, x, x, need_weights=need_weights))


def test_under_vmap() -> None:
    _, ours = pair(8, 2, batch_first=True, dtype=torch.float64)
    x = torch.randn(3, 2, 5, 8, dtype=torch.float64)
    with torch.no_grad():
        mapped = torch.func.vmap(lambda one: ours(one, one, one, need_weights=False)[0])(x)
        assert_close(mapped, torch.stack([ours(one, one, one, need_weights=False)[0] for one in x]))


class Small(nn.Module):
    """A decoder of one block, which learns to count on."""

    def __init__(self, attention: type[nn.MultiheadAttention]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(16, 32)
        self.places = nn.Embedding(12, 32)
        self.attention = attention(32, 4, batch_first=True)
        self.norm, self.out = nn.LayerNorm(32), nn.Linear(32, 16)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = x + self.attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return self.out(self.norm(x))


def losses(attention: type[nn.MultiheadAttention]) -> list[float]:
    model = Small(attention)
    steps = torch.optim.Adam(model.parameters(), 3e-3)
    torch.manual_seed(1)
    found = []
    for _ in range(200):
        start, step = torch.randint(0, 16, (2, 8, 1))
        ids = (start + step * torch.arange(13)) % 16
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        steps.zero_grad()
        loss.backward()
        steps.step()
        found.append(loss.item())
    return found


def test_it_trains_as_torchs_does() -> None:
    """200 steps from the same seed: the same loss at every one, and it falls."""
    ours, theirs = losses(MultiheadAttention), losses(nn.MultiheadAttention)
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-4
    assert ours[-1] < 0.6 * ours[0]


def test_inputs_that_do_not_fit() -> None:
    layer = MultiheadAttention(8, 2, batch_first=True)
    x, masks = torch.randn(2, 3, 8), {"attn_mask": torch.zeros(3, 4)}
    for arguments, options, message in [
        ((x, x, x[0]), {}, "give all three as (tokens, d), or all three with a batch"),
        ((x[..., :7], x, x), {}, "this layer takes the widths 8, 8, 8"),
        ((x, x, x[:, :2]), {}, "every key needs one value"),
        ((x[:1], x, x), {}, "every batch item needs its own keys"),
        (
            (x, x, x),
            masks,
            "attn_mask is (3, 4): give (tokens, keys) = (3, 3), or (batch·heads, tokens, keys) = (4, 3, 3)",
        ),
        ((x, x, x), {"key_padding_mask": torch.zeros(3, 2)}, "key_padding_mask is (3, 2): give (batch, keys) = (2, 3)"),
        ((x, x, x), {"attn_mask": torch.zeros(3, 3, dtype=torch.int64)}, "a mask holds torch.int64"),
        ((x, x, x), {"is_causal": True}, "there is no attn_mask"),
    ]:
        with pytest.raises(HeadworkError) as error:
            layer(*arguments, **options)
        assert message in str(error.value)


class TestWhereOurProductIsAhead:
    """The projections by the kernel, as a machine does it on which that is ahead of torch's library."""

    @pytest.fixture(autouse=True)
    def ahead(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
        """The shapes of what our product took."""
        taken: list[tuple[int, ...]] = []
        if kernel is None:
            pytest.skip("the product is the compiled kernel's: pip install .")

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(kernel, name)

            def linear(self, x: Tensor, *others: Any) -> bool:
                done: bool = self.__getattr__("linear")(x, *others)
                taken.extend([tuple(x.shape)] * done)
                return done

        monkeypatch.setattr(calls, "AHEAD", True)
        monkeypatch.setattr(calls, "kernel", Watched())
        return taken

    @pytest.mark.parametrize("batch_first", [False, True])
    def test_evaluation_is_torchs(self, ahead: list[tuple[int, ...]], batch_first: bool) -> None:
        theirs, ours = pair(64, 4, batch_first=batch_first)
        x, context = torch.randn(3, 5, 64), torch.randn(3, 5, 64)
        with torch.no_grad():
            for inputs in ((x, x, x), (x, context, context), (x, context, x), (x[0],) * 3):
                assert_close(ours(*inputs)[0], theirs(*inputs)[0], rtol=1e-4, atol=1e-5)
        assert (ahead.count((15, 64)), ahead.count((5, 64))) == (2 + 3 + 4, 2)

    def test_gradients_and_what_looks_on_are_torchs(self, ahead: list[tuple[int, ...]]) -> None:
        _, ours = pair(64, 4, batch_first=True)
        x = torch.randn(3, 5, 64)
        assert ours(x, x, x)[0].requires_grad
        with torch.no_grad():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert ours(x, x, x)[0].dtype == torch.bfloat16
            torch.vmap(lambda one: ours(one, one, one, need_weights=False)[0])(x[None])
            ours.double()(*[x.double()] * 3)
        assert ahead == []

    def test_widths_that_fill_no_vector_are_torchs(self, ahead: list[tuple[int, ...]]) -> None:
        theirs, ours = pair(36, 4, batch_first=True, kdim=10, vdim=7)
        inputs = torch.randn(2, 5, 36), torch.randn(2, 6, 10), torch.randn(2, 6, 7)
        with torch.no_grad():
            assert_close(ours(*inputs)[0], theirs(*inputs)[0], rtol=1e-4, atol=1e-5)
        assert ahead == []
