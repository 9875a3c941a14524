"""`headwork.jax.dot_product_attention` held against the formula in float64 and against `jax.nn`'s own.

`test_jax.py` runs this file in a process of its own: JAX warns at every fork of a process that it was imported into.
"""

import doctest
import inspect
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headwork.errors import HeadworkError
from headwork.jax import dot_product_attention

jax.config.update("jax_enable_x64", True)
compiled: Any = jax.jit
forgetful: Any = jax.checkpoint

Shape = tuple[int, ...]
Q, K, V = (2, 5, 6, 8), (2, 7, 3, 8), (2, 7, 3, 4)  # batch, tokens or keys, heads or key heads, d_k or d_v
SEEN = np.random.default_rng(9).random((2, 1, 5, 7)) < 0.7
CASES: dict[str, tuple[Shape, Shape, Shape, dict[str, Any]]] = {
    "grouped, d_v of its own": (Q, K, V, {}),
    "one sequence": (Q[1:], K[1:], V[1:], {}),
    "one key head": (Q, (2, 7, 1, 8), (2, 7, 1, 8), {"scale": -0.3}),
    "causal": (Q, K, V, {"is_causal": True}),
    "causal, fewer keys": (Q, (2, 3, 3, 8), (2, 3, 3, 4), {"is_causal": True}),
    "window": (Q, K, V, {"local_window_size": (2, 1)}),
    "window of one number": (Q, K, V, {"local_window_size": 1}),
    "mask": (Q, K, V, {"mask": SEEN}),
    "bias": (Q, K, V, {"bias": np.linspace(-2, 2, 42).reshape(1, 6, 1, 7)}),
    "bias and mask": (Q, K, V, {"bias": np.linspace(-2, 2, 35).reshape(5, 7), "mask": SEEN, "is_causal": True}),
    "lengths": (Q, K, V, {"key_value_seq_lengths": np.array([7, 2], np.int32)}),
    "both lengths": (Q, K, V, {"key_value_seq_lengths": np.array([3, 7]), "query_seq_lengths": np.array([5, 1])}),
    "no token": ((2, 0, 6, 8), K, V, {}),
    "no key": (Q, (2, 0, 3, 8), (2, 0, 3, 4), {}),
}


def drawn(*shapes: Shape, dtype: Any = jnp.float64) -> list[Any]:
    generator = np.random.default_rng(3)
    return [jnp.asarray(generator.normal(size=shape), dtype) for shape in shapes]


def formula(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, **asked: Any) -> Any:
    """The attention that anybody would write, in the type of its inputs; a token that reads nothing gives zeros."""
    q, k, v = (a[None] if a.ndim == 3 else a for a in (query, key, value))
    k, v = (jnp.repeat(a, q.shape[2] // a.shape[2], 2) for a in (k, v))
    scale = asked.get("scale") or q.shape[-1] ** -0.5
    scores = jnp.einsum("btnh,bsnh->bnts", q, k) * scale + (0 if bias is None else bias)
    i, j = jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])
    seen = jnp.ones(scores.shape, bool) if mask is None else jnp.broadcast_to(mask, scores.shape)
    if asked.get("is_causal"):
        seen &= j <= i
    if (window := asked.get("local_window_size")) is not None:
        left, right = (window, window) if isinstance(window, int) else window
        seen &= (j >= i - left) & (j <= i + right)
    if (lengths := asked.get("key_value_seq_lengths")) is not None:
        seen &= j < jnp.asarray(lengths)[:, None, None, None]
    if (lengths := asked.get("query_seq_lengths")) is not None:
        seen &= i < jnp.asarray(lengths)[:, None, None, None]
    powers = jnp.where(seen, jnp.exp(jnp.where(seen, scores, 0)), 0)
    sums = powers.sum(-1, keepdims=True)
    out = jnp.einsum("bnts,bsnh->btnh", powers / jnp.where(sums == 0, 1, sums), v)
    return out[0] if query.ndim == 3 else out


def near(found: Any, right: Any, within: float) -> None:
    assert found.shape == right.shape
    assert np.abs(np.asarray(found, np.float64) - np.asarray(right)).max(initial=0) <= within


def test_its_example_holds() -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        assert doctest.testmod(inspect.getmodule(dot_product_attention)).failed == 0
    finally:
        jax.config.update("jax_enable_x64", True)


def test_the_arguments_are_jaxs() -> None:
    ours, theirs = (inspect.signature(f).parameters for f in (dot_product_attention, jax.nn.dot_product_attention))
    assert {n: (p.kind, p.default) for n, p in ours.items()} == {n: (p.kind, p.default) for n, p in theirs.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("jit", [False, True])
def test_it_is_the_formula(name: str, jit: bool) -> None:
    *shapes, asked = CASES[name]

    def call(*arrays: Any) -> Any:
        return dot_product_attention(*arrays, **asked)

    arrays = drawn(*shapes)
    near((compiled(call) if jit else call)(*arrays), formula(*arrays, **asked), 1e-13)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_the_formulas(name: str) -> None:
    *shapes, asked = CASES[name]
    bias = {"bias": jnp.asarray(asked["bias"])} if "bias" in asked else {}
    rest = {key: value for key, value in asked.items() if key != "bias"}
    arrays = drawn(*shapes)

    def loss(function: Any) -> Any:
        return lambda arrays, bias: (function(*arrays, **bias, **rest) ** 2).sum()

    ours, theirs = (compiled(jax.grad(loss(f), (0, 1)))(arrays, bias) for f in (dot_product_attention, formula))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        near(one, other, 1e-12)


@pytest.mark.parametrize(("dtype", "within"), [(jnp.float32, 2e-6), (jnp.bfloat16, 2e-2), (jnp.float16, 2e-3)])
def test_narrow_types_as_near_as_jaxs_own(dtype: Any, within: float) -> None:
    shape = (2, 33, 4, 16)
    arrays = drawn(shape, shape, shape, dtype=dtype)
    right = formula(*(a.astype(jnp.float64) for a in arrays), is_causal=True)
    ours, theirs = (f(*arrays, is_causal=True) for f in (dot_product_attention, jax.nn.dot_product_attention))
    assert ours.dtype == theirs.dtype == dtype
    near(ours, right, within)
    errors = [np.abs(np.asarray(found, np.float64) - right).max() for found in (ours, theirs)]
    assert errors[0] <= 2 * errors[1]
    gradient = jax.grad(lambda q: dot_product_attention(q, *arrays[1:]).astype(jnp.float32).sum())(arrays[0])
    assert gradient.dtype == dtype


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, 1), (1, 2, None), (3, 0, 0)])
@pytest.mark.parametrize("name", ["causal", "bias and mask"])
def test_vmap_over_any_of_them(axes: Any, name: str) -> None:
    *shapes, asked = CASES[name]
    batched = [
        shape if axis is None else (*shape[:axis], 3, *shape[axis:]) for shape, axis in zip(shapes, axes, strict=True)
    ]
    arrays = drawn(*batched)

    def each(function: Any) -> Any:
        return jax.vmap(lambda *a: function(*a, **asked), axes)(*arrays)

    def gradients(function: Any) -> Any:
        def loss(*a: Any) -> Any:
            return (function(*a, **asked) ** 2).sum()

        return jax.vmap(jax.grad(loss, (0, 1, 2)), axes)(*arrays)

    near(each(dot_product_attention), each(formula), 1e-13)
    for one, other in zip(gradients(dot_product_attention), gradients(formula), strict=True):
        near(one, other, 1e-12)


def test_vmap_over_what_differs_by_item() -> None:
    """Lengths and biases of their own, two axes deep, with a gradient for every bias."""
    q, k, v = drawn(Q, K, V)
    lengths = jnp.array([[7, 2], [1, 5], [3, 3]])
    biases = jnp.linspace(-1, 1, 3 * 2 * 42).reshape(3, 2, 1, 6, 1, 7)

    def loss(function: Any) -> Any:
        def of(bias: Any, length: Any) -> Any:
            return (function(q, k, v, bias, key_value_seq_lengths=length) ** 2).sum()

        return jax.vmap(jax.vmap(jax.grad(of), (0, None)))(biases, lengths)

    near(loss(dot_product_attention), loss(formula), 1e-12)


def test_the_log_sum_exp_is_jaxs() -> None:
    arrays = drawn(Q, K, K)
    ours, theirs = (
        f(*arrays, is_causal=True, return_residual=True) for f in (dot_product_attention, jax.nn.dot_product_attention)
    )
    near(ours[0], theirs[0], 1e-6)
    near(ours[1], theirs[1], 1e-6)
    assert dot_product_attention(*(a[0] for a in arrays), return_residual=True)[1].shape == (5, 6)


def test_jaxs_own_are_left_to_jax() -> None:
    arrays = drawn(Q, K, K)
    near(dot_product_attention(*arrays, implementation="xla"), jax.nn.dot_product_attention(*arrays), 0)


def test_inside_scan_checkpoint_and_many_threads() -> None:
    """Nothing waits for anything: programs of several threads, with the kernel in a loop, come to their ends."""
    q, k, v = drawn((1, 64, 4, 16), (1, 64, 4, 16), (1, 64, 4, 16), dtype=jnp.float32)

    def deep(x: Any) -> Any:
        def layer(x: Any, _: Any) -> Any:
            return x + dot_product_attention(x, k, v), None

        return jax.lax.scan(forgetful(layer), x, None, length=8)[0]

    gradient = compiled(jax.grad(lambda x: deep(x).sum()))
    expected = gradient(q)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.extend(gradient(q) for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 20
    assert all(np.array_equal(one, expected) for one in found)


@pytest.mark.parametrize(
    ("arguments", "asked", "says"),
    [
        ((jnp.ones((5, 8)), jnp.ones((7, 8)), jnp.ones((7, 8))), {}, r"query is \(5, 8\)"),
        ((jnp.ones(Q, int), jnp.ones(K), jnp.ones(K)), {}, "query holds int64"),
        ((jnp.ones(Q), jnp.ones(K, jnp.float32), jnp.ones(K)), {}, "hold float64, float32, float64"),
        ((jnp.ones(Q), jnp.ones((2, 7, 3, 9)), jnp.ones((2, 7, 3, 9))), {}, "do not fit"),
        ((jnp.ones(Q), jnp.ones((2, 7, 4, 8)), jnp.ones((2, 7, 4, 8))), {}, "6 must be a multiple of 4"),
        ((jnp.ones(Q), jnp.ones(K), jnp.ones(K)), {"mask": np.ones((5, 7))}, "mask holds float64"),
        ((jnp.ones(Q), jnp.ones(K), jnp.ones(K)), {"bias": np.ones((4, 7))}, r"\(4, 7\) and does not broadcast"),
        ((jnp.ones(Q), jnp.ones(K), jnp.ones(K)), {"key_value_seq_lengths": [1, 2, 3]}, "Give 2 whole numbers"),
        ((jnp.ones(Q), jnp.ones(K), jnp.ones(K)), {"local_window_size": (1.5, 2)}, "window is"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, asked: Any, says: str) -> None:
    with pytest.raises(HeadworkError, match=says):
        dot_product_attention(*arguments, **asked)


def test_what_only_the_run_can_tell_is_an_error_of_the_call() -> None:
    """A length beyond the keys is seen when the numbers are there; the process goes on."""
    q, k, v = drawn(Q, K, V)
    with pytest.raises(Exception, match="lengths runs from 1 to 99"):
        jax.block_until_ready(compiled(dot_product_attention)(q, k, v, key_value_seq_lengths=jnp.array([1, 99])))
    near(dot_product_attention(q, k, v), formula(q, k, v), 1e-13)
