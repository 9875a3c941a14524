"""`MultiHead`: the graph's float64 reading, torch's layer, step by step the same as the whole, and on a page."""

import tracemalloc
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headwork import MultiHead
from headwork.engine import Rotary, backend
from headwork.engine.layer_projections import side_by_side
from headwork.errors import HeadworkError
from headwork.formulas import Projection, multi_head_blocks
from headwork.formulas import given as matrix
from headwork.readings.values import values
from tests.engine.cases import draws

Array = NDArray[Any]
NAMES = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")
SIZES = {"heads": 4, "kv_heads": 2, "d_model": 6, "d_context": 6, "d_k": 4, "d_v": 3, "d_out": 5}


def arrays(seed: int = 0, dtype: Any = np.float64, biases: Any = (), **sizes: int) -> dict[str, Any]:
    """Projections, and the biases named, of a size that keeps the scores near 1."""
    s = SIZES | sizes
    rng = np.random.default_rng(seed)
    shapes = {
        "W_Q": (s["d_model"], s["heads"] * s["d_k"]),
        "W_K": (s["d_context"], s["kv_heads"] * s["d_k"]),
        "W_V": (s["d_context"], s["kv_heads"] * s["d_v"]),
        "W_O": (s["heads"] * s["d_v"], s["d_out"]),
    }
    found = {name: rng.standard_normal(shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    found |= {name: rng.standard_normal(found["W" + name[1:]].shape[1]) for name in NAMES[4:] if name in biases}
    return {name: array.astype(dtype) for name, array in found.items()}


def layer(seed: int = 0, dtype: Any = np.float64, biases: Any = NAMES[4:], **options: Any) -> MultiHead:
    sizes = {name: options.pop(name) for name in [*options] if name in SIZES}
    heads = {name: sizes.get(name, SIZES[name]) for name in ("heads", "kv_heads")}
    return MultiHead(**arrays(seed, dtype, biases, **sizes), **heads, **options)


def worked(given_arrays: dict[str, Array], x: Array, context: Array | None, added: Array | None, **heads: Any) -> Array:
    """The formula's last step, read in float64."""
    rows = {name: np.atleast_2d(a) for name, a in given_arrays.items()} | {"X": x}
    rows |= {} if context is None else {"context": context}
    rows |= {} if added is None else {"mask": added}
    steps: dict[str, Any] = {name: matrix(name, array.shape) for name, array in rows.items()}
    taken = {name: step for name, step in steps.items() if name not in NAMES}
    taken |= {f"W_{letter}": Projection(steps[f"W_{letter}"], steps.get(f"b_{letter}")) for letter in "QKVO"}
    last = multi_head_blocks(**taken, **heads)
    return values(last, {steps[name]: array for name, array in rows.items()})[last]


@settings(max_examples=80)
@given(data=st.data())
def test_the_graph_agrees_whatever_is_asked(data: st.DataObject) -> None:
    """Heads in groups, any widths, biases or none, a context, causal order and masks of both kinds, both types."""
    kv_heads = data.draw(st.integers(1, 3))
    heads = kv_heads * data.draw(st.integers(1, 3))
    cross = data.draw(st.booleans())
    d_model = data.draw(st.integers(1, 9))
    widths = {"d_model": d_model, "d_context": data.draw(st.integers(1, 9)) if cross else d_model}
    widths |= {name: data.draw(st.integers(1, 5)) for name in ("d_k", "d_v", "d_out")}
    tokens = data.draw(st.integers(1, 8))
    keys = data.draw(st.integers(1, 8)) if cross else tokens
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    biases = data.draw(st.sets(st.sampled_from(NAMES[4:])))
    seed = data.draw(st.integers(0, 1000))
    given_arrays = arrays(seed, dtype, biases, heads=heads, kv_heads=kv_heads, **widths)
    rng = np.random.default_rng(seed)
    (x,) = draws(rng, (tokens, d_model), dtype=dtype)
    context = draws(rng, (keys, widths["d_context"]), dtype=dtype)[0] if cross else None
    causal: Any = data.draw(st.sampled_from([False, "top_left"] if cross else [False, True]))
    kind = data.draw(st.sampled_from(["none", "boolean", "added"]))
    seen = rng.random((tokens, keys)) < 0.7
    added = np.zeros((tokens, keys), dtype) if kind != "added" else draws(rng, (tokens, keys), dtype=dtype)[0]
    mask = {"none": None, "boolean": seen, "added": added}[kind]
    hidden = np.where(seen if kind == "boolean" else True, added, -np.inf)
    hidden = np.where(np.tri(tokens, keys, dtype=bool) | (not causal), hidden, -np.inf)
    one = MultiHead(**given_arrays, heads=heads, kv_heads=kv_heads)
    wide = {name: array.astype(np.float64) for name, array in given_arrays.items()}
    expected = worked(
        wide,
        x.astype(np.float64),
        None if context is None else context.astype(np.float64),
        hidden.astype(np.float64),
        heads=heads,
        kv_heads=kv_heads,
    )
    got = one(x, context, mask=mask, causal=causal)
    assert got.dtype == dtype
    assert np.abs(got - expected).max() < (2e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_the_same_as_torchs_layer(bias: bool, cross: bool) -> None:
    """in_proj_weight is [W_Q | W_K | W_V] transposed; a batch, and a padding mask by `lengths`."""
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=torch.float64).eval()
    W_Q, W_K, W_V = np.split(theirs.in_proj_weight.detach().numpy().T, 3, axis=1)
    rows: dict[str, Any] = {}
    if bias:
        torch.nn.init.normal_(theirs.in_proj_bias)
        torch.nn.init.normal_(theirs.out_proj.bias)
        rows = dict(zip(("b_Q", "b_K", "b_V"), np.split(theirs.in_proj_bias.detach().numpy(), 3), strict=True))
        rows["b_O"] = theirs.out_proj.bias.detach().numpy()
    ours = MultiHead(W_Q, W_K, W_V, theirs.out_proj.weight.detach().numpy().T, heads=3, **rows)
    x, c = draws(np.random.default_rng(0), (2, 7, 12), (2, 9, 12), dtype=np.float64)
    c = c if cross else x
    lengths = np.array([5, 3])
    padding = np.arange(c.shape[1]) >= lengths[:, None]
    tx, tc = torch.from_numpy(x), torch.from_numpy(c)
    with torch.no_grad():
        out, weights = theirs(tx, tc, tc, key_padding_mask=torch.from_numpy(padding), average_attn_weights=False)
    got, got_weights = ours(x, c if cross else None, lengths=lengths, return_weights=True)
    assert np.abs(got - out.numpy()).max() < 1e-14
    assert np.abs(got_weights - weights.numpy()).max() < 1e-14


@settings(max_examples=40)
@given(data=st.data())
def test_decoding_step_by_step_is_the_whole_causal_pass(data: st.DataObject) -> None:
    """However the tokens are cut into steps, with and without rotary positions and a window."""
    options = {"rotary": data.draw(st.sampled_from([None, Rotary.of(4), Rotary.of(2), Rotary.of(4, interleaved=True)]))}
    window = data.draw(st.sampled_from([None, (2, 0), (3, -1)]))
    one = layer(data.draw(st.integers(0, 100)), **options)
    steps = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=5))
    (x,) = draws(np.random.default_rng(1), (2, sum(steps), 6), dtype=np.float64)
    cache = one.cache()
    parts = np.split(x, np.cumsum(steps)[:-1], axis=1)
    got = np.concatenate([one(part, cache=cache, causal=True, window=window) for part in parts], axis=1)
    assert len(cache) == sum(steps)
    assert np.abs(got - one(x, causal=True, window=window)).max(initial=0) < 1e-13


def test_a_cache_grows_without_copying_the_whole_at_each_step() -> None:
    one = layer()
    (x,) = draws(np.random.default_rng(0), (1000, 6), dtype=np.float64)
    cache, places = one.cache(), []
    for token in x:
        one(token[None], cache=cache, causal=True)
        places.append(cache.keys.__array_interface__["data"][0])
    moves = sum(a != b for a, b in pairwise(places))
    assert cache.keys.shape == (2, 1000, 4)
    assert cache.values.shape == (2, 1000, 3)
    assert 1 <= moves <= 4


def test_a_refused_call_leaves_the_cache_as_it_was() -> None:
    one, x = layer(), np.ones((3, 6))
    cache = one.cache()
    one(x, cache=cache, causal=True)
    before = cache.keys.copy()
    with pytest.raises(HeadworkError, match="mask is"):
        one(x, cache=cache, mask=np.ones((3, 3), bool))
    assert len(cache) == 3
    assert (cache.keys == before).all()
    with pytest.raises(HeadworkError, match="top_left"):
        one(x, cache=cache, causal="top_left")
    assert len(cache) == 3


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_cache_may_be_narrower_than_the_layer(dtype: Any) -> None:
    """Half the memory; the result keeps the layer's type and loses what the rounding of keys and values loses."""
    one = layer(dtype=np.float32)
    (x,) = draws(np.random.default_rng(0), (20, 6))
    narrow, wide = one.cache(dtype), one.cache()
    got, exact = one(x, cache=narrow, causal=True), one(x, cache=wide, causal=True)
    assert got.dtype == np.float32
    assert narrow.keys.dtype == dtype
    assert 0 < np.abs(got - exact).max() < (0.01 if dtype == np.float16 else 0.08)


def test_16_bit_projections_and_tokens_are_widened() -> None:
    narrow: dict[str, Any] = arrays(dtype=np.float16)
    one = MultiHead(**narrow, heads=4, kv_heads=2)
    (x,) = draws(np.random.default_rng(0), (5, 6), dtype=np.float16)
    widened: dict[str, Any] = {name: array.astype(np.float32) for name, array in narrow.items()}
    same = MultiHead(**widened, heads=4, kv_heads=2)
    assert one.dtype == np.float32
    assert (one(x) == same(x.astype(np.float32))).all()


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    """The same tokens further on give the same weights; without rotary positions order does not matter at all."""
    one = layer(biases=(), rotary=Rotary.of(4))
    (x,) = draws(np.random.default_rng(0), (5, 6), dtype=np.float64)
    later = np.concatenate([np.zeros((90, 6)), x])
    mask = np.arange(95) >= 90
    near, far = one(x, return_weights=True), one(later, mask=mask, return_weights=True)
    assert np.abs(near[1] - far[1][:, 90:, 90:]).max() < 1e-13
    turned, plain = one(x)[0], one(x[[0, 2, 1, 3, 4]])[0]
    assert np.abs(turned - plain).max() > 1e-3


def test_the_blocks_lie_in_one_array_and_nothing_is_copied() -> None:
    """Views of one wide projection are used as they are; a pass allocates Q·K·V, the heads and the output, no more."""
    wide = np.random.default_rng(0).standard_normal((64, 3 * 64)).astype(np.float32) / 8
    W_O = np.ascontiguousarray(wide[:, :64])
    W_Q, W_K, W_V = np.split(wide, 3, axis=1)
    one = MultiHead(W_Q, W_K, W_V, W_O, heads=8)
    assert one.projections.wide is not None
    assert np.shares_memory(one.projections.wide, wide)
    assert (one.projections.wide == wide).all()
    W_Q, W_K, W_V = np.split(wide.T.copy().T, 3, axis=1)
    transposed = MultiHead(W_Q, W_K, W_V, W_O, heads=8)
    x = draws(np.random.default_rng(0), (4, 256, 64))[0]
    assert np.abs(one(x) - transposed(x)).max() < 1e-6
    if not backend().native:
        return  # NumPy's blocks of scores are arrays too
    tracemalloc.start()
    one(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.05 * (3 + 1 + 1) * x.nbytes


def test_blocks_of_different_arrays_are_joined() -> None:
    blocks = draws(np.random.default_rng(0), (3, 2), (3, 4), (3, 2))
    assert (side_by_side(*blocks) == np.concatenate(blocks, axis=1)).all()
    one = np.arange(24.0).reshape(3, 8)
    assert (side_by_side(one[:, :2], one[:, 4:6]) == one[:, [0, 1, 4, 5]]).all()
    assert (side_by_side(one[:, :4:2], one[:, 4::2]) == one[:, ::2]).all()


def test_a_token_without_a_key_gives_the_output_bias() -> None:
    one = layer()
    out = one(np.ones((2, 3, 6)), lengths=[0, 3])
    assert (out[0] == one.projections.b_O).all()
    assert one(np.ones((2, 0, 6))).shape == (2, 0, 5)


def test_the_layer_in_another_type() -> None:
    one = layer(rotary=Rotary.of(4), scale=0.3, softcap=2.0)
    (x,) = draws(np.random.default_rng(0), (5, 6), dtype=np.float64)
    narrow = one.astype(np.float32)
    assert narrow.dtype == np.float32
    assert np.abs(narrow(x.astype(np.float32)) - one(x)).max() < 1e-5


PAGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "masked": {"mask": np.array([[True, False, True], [True, True, False], [False, True, True]])},
    "added": {"mask": np.array([[0.5, 0.0, -np.inf]]), "causal": True},
    "scaled": {"scale": 0.25},
    "rotary": {"rotary": Rotary.of(4), "causal": True},
    "context": {"context": True, "d_context": 3},
    "context, causal": {"context": True, "causal": "bottom_right"},
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_page_agrees_with_the_pass(name: str, dtype: Any) -> None:
    """`work` prints the same output as the layer gives: every step exact, on the arrays' own numbers."""
    options = dict(PAGES[name])
    asked = {key: options.pop(key) for key in ("causal", "mask") if key in options}
    cross = options.pop("context", False)
    one = layer(dtype=dtype, **options)
    x, c = draws(np.random.default_rng(3), (3, 6), (5, one.d_context), dtype=dtype)
    context = c if cross else None
    page = one.work(x, context, places=4, **asked)
    got = one(x, context, **asked)
    assert np.abs(np.asarray(page["output"]) - got).max() < (1e-14 if dtype == np.float64 else 1e-6) * 20
    first = f"{float(np.asarray(page['output'])[0, 0]):.4f}".replace("-", "−")
    assert first in repr(page)


def test_a_page_has_its_limits() -> None:
    with pytest.raises(HeadworkError, match=r"tokens: 65, but a page holds at most 64 rows and columns"):
        layer().work(np.ones((65, 6)))
    with pytest.raises(HeadworkError, match=r"the columns of W_Q: 400"):
        layer(heads=100).work(np.ones((2, 6)))
    with pytest.raises(HeadworkError, match="A page works one sequence"):
        layer().work(np.ones((2, 2, 6)))
    with pytest.raises(HeadworkError, match="X holds numbers that are not finite"):
        layer().work(np.full((2, 6), np.nan))
    with pytest.raises(HeadworkError, match="let every token read one"):
        layer().work(np.ones((2, 6)), mask=np.array([[True, True], [False, False]]))
    with pytest.raises(HeadworkError, match=r"takes \(…, tokens, 6\)"):
        layer().work(np.ones((2, 5)))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"heads": 0}, "heads is 0. Give a whole number from 1 up."),
    ({"heads": 3}, "heads is 3 and kv_heads 2."),
    ({"heads": 6}, "6 heads cannot share its 16 columns equally"),
    ({"heads": 2}, "so d_k is 8, but W_K is (6, 8) with 2: it needs 16 columns"),
    ({"W_K": np.ones((6, 8, 1))}, "W_K is (6, 8, 1). Give a matrix"),
    ({"W_V": np.ones((5, 6))}, "keys and values are made of one context"),
    ({"W_O": np.ones((11, 5))}, "the joined heads are 4·3 wide"),
    ({"b_V": np.ones(5)}, "b_V is (5,), but W_V has 6 columns"),
    ({"W_Q": np.ones((6, 16), np.int64)}, "W_Q holds int64"),
    ({"W_O": np.ones((12, 5), np.float32)}, "float64 does not mix"),
    ({"rotary": Rotary.of(8)}, "turn 8 columns, but d_k is 4"),
    ({"scale": float("nan")}, "scale is nan"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_a_layer_that_does_not_fit_together(change: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadworkError) as error:
        MultiHead(**{**arrays(), "heads": 4, "kv_heads": 2, **change})
    assert message in str(error.value)


def test_calls_that_do_not_fit_the_layer() -> None:
    one = layer()
    x = np.ones((2, 6))
    calls: list[tuple[tuple[Array, ...], dict[str, Any], str]] = [
        ((np.ones(6),), {}, "x is (6,), but this layer takes (…, tokens, 6)"),
        ((x.astype(np.float32),), {}, "x holds float32, but the layer float64"),
        ((x, x), {"cache": one.cache()}, "give a context or a cache, not both"),
        ((np.ones((3, 2, 6)), x), {}, "every axis before the last two is shared"),
        ((x,), {"cache": layer(d_v=2).cache()}, "every layer needs its own"),
        ((x,), {"causal": "sideways"}, "causal is 'sideways'"),
    ]
    for arguments, options, message in calls:
        with pytest.raises(HeadworkError) as error:
            one(*arguments, **options)
        assert message in str(error.value)
    with pytest.raises(HeadworkError, match="give the context too"):
        layer(d_context=3)(x)
    with pytest.raises(HeadworkError, match="give no context"):
        layer(rotary=Rotary.of(4))(x, x)
    with pytest.raises(HeadworkError, match="does not go with a layer of float64"):
        one.cache(np.float16)
    cache = one.cache()
    one(np.ones((2, 1, 6)), cache=cache)
    with pytest.raises(HeadworkError, match="begin a new one"):
        one(np.ones((3, 1, 6)), cache=cache)


def test_rotary_positions_that_make_no_pairs() -> None:
    with pytest.raises(HeadworkError, match="3 columns do not make pairs"):
        Rotary.of(3)
    with pytest.raises(HeadworkError, match="Give a positive number"):
        Rotary.of(4, base=0.0)
    with pytest.raises(HeadworkError, match="one finite number for every pair"):
        Rotary(np.ones((2, 2)))
