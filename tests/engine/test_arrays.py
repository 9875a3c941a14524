"""Strides, alignment, broadcasting and layouts: the same numbers in other places give the same result."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from headwork.engine import attention
from tests.engine.cases import DTYPES, Array, assert_as_good_as_plain, draws


def unaligned(array: Array) -> Array:
    """The same numbers, one byte off every boundary."""
    fields = np.zeros(array.shape, np.dtype([("pad", "i1"), ("x", array.dtype)]))
    fields["x"] = array
    return np.asarray(fields["x"])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tokens", [2, 30])
def test_unaligned_and_strided_data(dtype: Any, tokens: int) -> None:
    q, k, v = draws(np.random.default_rng(0), (2, tokens, 16), (2, 60, 16), (2, 60, 16), dtype=dtype)
    expected = attention(q, k, v)
    out = unaligned(np.zeros_like(expected))
    result = attention(unaligned(q), unaligned(k), unaligned(v), out=out)
    assert result is out
    assert_as_good_as_plain(out, q, k, v)
    backwards = attention(q[:, ::-1], k[:, ::-1], v[:, ::-1])[:, ::-1]
    assert_as_good_as_plain(backwards, q, k, v)
    columns = np.ascontiguousarray(k.swapaxes(-1, -2)).swapaxes(-1, -2)
    assert_as_good_as_plain(attention(q, columns, v), q, k, v)


def test_a_mask_of_any_strides() -> None:
    rng = np.random.default_rng(1)
    q, k, v = draws(rng, *[(2, 50, 8)] * 3)
    mask = rng.random((50, 50)) < 0.5
    expected = attention(q, k, v, mask=mask)
    for given in (
        mask.T.copy().T,
        mask[::-1].copy()[::-1],
        np.broadcast_to(mask, (2, 50, 50)),
        unaligned(mask),
    ):
        assert (attention(q, k, v, mask=given) == expected).all()
    bias = rng.standard_normal((50, 50))
    expected = attention(q, k, v, mask=bias.astype(np.float32))
    assert (attention(q, k, v, mask=bias.astype(np.float32).astype(np.float64)) == expected).all()


def test_batch_axes_broadcast() -> None:
    q, k, v = draws(np.random.default_rng(2), (2, 3, 4, 10, 8), (3, 2, 12, 8), (1, 2, 12, 8))
    got = attention(q, k, v)
    assert got.shape == q.shape
    assert_as_good_as_plain(got, q, k, v)


def test_both_layouts_agree() -> None:
    q, k, v = draws(np.random.default_rng(3), (2, 6, 33, 16), (2, 3, 70, 16), (2, 3, 70, 16))
    expected, lse = attention(q, k, v, return_lse=True)
    swapped = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in (q, k, v)]
    got, same = attention(*swapped, layout="bshd", return_lse=True)
    assert (got.swapaxes(1, 2) == expected).all()
    assert (same == lse).all()


def test_wide_rows_are_copied_and_give_the_same() -> None:
    """Rows 8 kB apart take another way through the kernel."""
    q, k, v = draws(np.random.default_rng(4), (1, 40, 16, 128), (1, 40, 16, 128), (1, 40, 16, 128))
    assert_as_good_as_plain(attention(q, k, v, layout="bshd"), q, k, v, layout="bshd")


def test_one_head_without_an_axis_for_it() -> None:
    q, k, v = draws(np.random.default_rng(5), (7, 4), (9, 4), (9, 3))
    out, lse, weights = attention(q, k, v, return_lse=True, return_weights=True)
    assert (out.shape, lse.shape, weights.shape) == ((7, 3), (7,), (7, 9))
    assert (out == attention(q[None], k[None], v[None])[0]).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_short_way_and_the_long_way_agree(dtype: Any) -> None:
    """A call without options goes straight to the kernel; an explicit default takes it through every
    check.
    """
    for shape in ((5, 8), (2, 5, 8), (3, 2, 5, 8), (2, 3, 2, 5, 8)):
        q, k, v = draws(np.random.default_rng(6), shape, shape, shape, dtype=dtype)
        for causal in (False, True):
            assert (attention(q, k, v, causal=causal) == attention(q, k, v, causal=causal, scale=1 / sqrt(8))).all()
        turned = [a.swapaxes(0, -2) for a in (q, k, v)]
        assert (attention(*turned) == attention(*turned, threads=1)).all()


def test_lists_are_arrays_too() -> None:
    assert attention([[1.0]], [[1.0]], [[2.5]]).tolist() == [[2.5]]
