"""The kernel's linear layer, whether or not it is ahead of the libraries on this machine: x·W + b."""

from typing import Any

import numpy as np
import pytest

from headwork import MultiHead
from headwork.engine import layer_projections
from headwork.engine.backend import kernel

pytestmark = pytest.mark.skipif(kernel is None, reason="the product is the compiled kernel's: pip install .")

ROWS = [4, 5, 7, 8, 24, 26, 127, 128, 131, 521]
WIDTHS = [(16, 16), (32, 48), (64, 64), (80, 112), (400, 16), (768, 208), (1040, 80)]  # inputs, outputs


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).standard_normal(shape, np.float32)


def product(x: Any, W: Any, b: Any, threads: int = 0) -> Any:
    assert kernel is not None
    out = np.full((len(x), W.shape[1]), np.nan, np.float32)
    assert kernel.linear(x, W, b, out, threads)
    return out


def assert_as_good_as_plain(found: Any, x: Any, W: Any, b: Any) -> None:
    """At most twice plain NumPy's error beside the sum of all that is added, in the mean square and in any number."""
    b = np.zeros(W.shape[1], np.float32) if b is None else b
    exact = x.astype(np.float64) @ W.astype(np.float64) + b
    plain = x @ W + b
    size = np.abs(x).astype(np.float64) @ np.abs(W).astype(np.float64) + np.abs(b)
    error, of_plain = np.abs(found - exact) / size, np.abs(plain - exact) / size
    last = np.finfo(np.float32).eps
    assert np.sqrt((error**2).mean()) <= 2 * np.sqrt((of_plain**2).mean()) + last / 16
    assert error.max() <= 2 * of_plain.max() + last / 2


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_as_numpy_has_it(rows: int, widths: tuple[int, int]) -> None:
    x, W, b = drawn(rows, widths[0]), drawn(*widths), drawn(widths[1])
    for bias in (b, None):
        assert_as_good_as_plain(product(x, W, bias), x, W, bias)
        assert_as_good_as_plain(product(x, np.asfortranarray(W), bias), x, W, bias)


def test_arrays_are_read_and_written_where_they_lie() -> None:
    """Columns and rows of larger arrays, and what lies between them stays as it was."""
    assert kernel is not None
    big_x, big_W, big_out = drawn(90, 100), drawn(200, 70), drawn(120, 90, seed=1)
    x, W, b = big_x[::3, 20:84], big_W[10:138:2, 3:51], drawn(50)[2:]
    out, before = big_out[5:35, 30:78], big_out.copy()
    assert kernel.linear(x, W, b, out, 0)
    assert_as_good_as_plain(out, x, W, b)
    big_out[5:35, 30:78] = before[5:35, 30:78]
    assert (big_out == before).all()
    turned = np.ascontiguousarray(W.T)
    assert (product(x, turned.T, b) == product(x, W, b)).all()


def test_the_same_bits_for_any_number_of_threads() -> None:
    x, W, b = drawn(1031, 192), drawn(192, 400), drawn(400)
    one = product(x, W, b, threads=1)
    for threads in (2, 3, 8, 64):
        assert (product(x, W, b, threads) == one).all()
    assert (product(x[:130], W, b) == one[:130]).all()


def test_what_is_not_finite_stays_in_its_row_and_its_column() -> None:
    x, W = drawn(30, 48), drawn(48, 64)
    x[7, 3], W[5, 20] = np.nan, np.inf
    found = product(x, W, None)
    touched = np.zeros((30, 64), bool)
    touched[7], touched[:, 20] = True, True
    assert (np.isfinite(found) == ~touched).all()


def test_what_does_not_suit_it_is_left_alone() -> None:
    assert kernel is not None
    x, W, b, out = drawn(8, 64), drawn(64, 64), drawn(64), drawn(8, 64, seed=1)
    wide = np.zeros((8, 64))
    before = out.copy()
    for unfit in (
        (x[:3], W, b, out[:3]),  # few rows
        (x[:, :63], W[:63], b, out),  # no whole vectors
        (x, W[:, :63], b[:63], out[:, :63]),
        (x[:, :0], W[:0], b, out),
        (wide, W, b, out),  # another type
        (x, wide, b, out),
        (x, W, wide[0], out),
        (x, W, b, wide),
        (x[::-1], W, b, out),  # backwards
        (x[:, ::-1], W, b, out),
        (x, W[::2, ::2], b, out),
        (x, W, b[::-1], out),
        (x, W, b[:16], out),  # other sizes
        (x, W[:32], b, out),
        (x, W, b, out[:7]),
        (x[0], W, b, out),  # other axes
        (x, W, "b", out),
    ):
        assert not kernel.linear(*unfit, 0)
    assert (out == before).all()


def test_a_layer_by_it_is_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Self-attention and a context, with biases and without: which product a machine has chosen makes no difference."""
    named = {"W_Q": drawn(64, 96), "W_K": drawn(64, 48), "W_V": drawn(64, 32), "W_O": drawn(64, 80)}
    layer = MultiHead(**named, b_Q=drawn(96), b_O=drawn(80), heads=4, kv_heads=2)
    x, context = drawn(3, 17, 64), drawn(3, 23, 64, seed=1)
    found = {}
    for ahead in (False, True):
        monkeypatch.setattr(layer_projections, "AHEAD", ahead)
        found[ahead] = layer(x), layer(x, context)
    for ours, theirs in zip(found[True], found[False], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())
