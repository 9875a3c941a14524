"""Packed sequences, padded batches and merged parts are the same attention."""

from typing import Any

import numpy as np
import pytest

from headwork.engine import attention, attention_varlen, merge
from tests.engine.cases import DTYPES, assert_as_good_as_plain, distance, draws, eps

LENGTHS_Q, LENGTHS_K = [5, 0, 37, 1, 130], [9, 4, 37, 0, 260]


def ends(lengths: list[int]) -> Any:
    return np.cumsum([0, *lengths])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, "top_left", "bottom_right"])
def test_each_packed_sequence_is_worked_by_itself(dtype: Any, causal: Any) -> None:
    q, k, v = draws(np.random.default_rng(0), (173, 4, 16), (310, 2, 16), (310, 2, 24), dtype=dtype)
    at_q, at_k = ends(LENGTHS_Q), ends(LENGTHS_K)
    out, lse = attention_varlen(q, k, v, at_q, at_k, causal=causal, window=(50, 60), return_lse=True)
    for i in range(5):
        rows, keys = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
        alone, alone_lse = attention(
            q[rows], k[keys], v[keys], causal=causal, window=(50, 60), layout="bshd", return_lse=True
        )
        assert distance(out[rows], alone) <= 4 * eps(dtype)
        assert distance(lse[:, rows], alone_lse) <= 1e-5
    q, k, v = (np.ascontiguousarray(a.swapaxes(0, 1)) for a in (q, k, v))
    heads_first = attention_varlen(q, k, v, at_q, at_k, causal=causal, window=(50, 60), layout="hsd")
    assert (heads_first.swapaxes(0, 1) == out).all()


def test_decoding_a_packed_batch() -> None:
    q, k, v = draws(np.random.default_rng(1), (3, 4, 64), (2000, 2, 64), (2000, 2, 64))
    out = attention_varlen(q, k, v, [0, 1, 2, 3], [0, 700, 701, 2000])
    for i, keys in enumerate((slice(0, 700), slice(700, 701), slice(701, 2000))):
        assert_as_good_as_plain(out[i : i + 1], q[i : i + 1], k[keys], v[keys], layout="bshd")


def test_no_sequences_at_all() -> None:
    empty = np.ones((0, 2, 8), np.float32)
    assert attention_varlen(empty, empty, empty, [0], [0]).shape == (0, 2, 8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_parts_of_the_keys_merge_to_the_whole(dtype: Any, layout: Any) -> None:
    q, k, v = draws(np.random.default_rng(2), (2, 20, 20, 8), (2, 20, 20, 8), (2, 20, 20, 8), dtype=dtype)
    axis = 2 if layout == "bhsd" else 1
    parts = []
    for keys in (slice(0, 5), slice(5, 5), slice(5, 19), slice(19, 20)):
        at = (slice(None),) * axis + (keys,)
        parts.append(attention(q, k[at], v[at], layout=layout, return_lse=True))
    out, lse = merge(*zip(*parts, strict=True), layout=layout)
    whole, whole_lse = attention(q, k, v, layout=layout, return_lse=True)
    assert distance(out, whole) <= 8 * eps(dtype)
    assert distance(lse, whole_lse) <= 1e-5


def test_merging_rows_that_read_nothing() -> None:
    out, lse = np.full((1, 2, 3), np.nan, np.float32), np.full((1, 2), -np.inf, np.float32)
    merged, total = merge([out, out], [lse, lse])
    assert (merged == 0).all()
    assert (total == -np.inf).all()
