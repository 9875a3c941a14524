"""Bad input: the argument, what was given, what was expected, what to do; and nothing is computed."""

from typing import Any

import numpy as np
import pytest

from headwork.engine import attention, attention_varlen, merge
from headwork.errors import HeadworkError

Q = np.ones((2, 4, 8), np.float32)
ODD = np.ones((2, 4, 7), np.float32)


def refused(message: str, *arrays: Any, **options: Any) -> None:
    with pytest.raises(HeadworkError) as error:
        attention(*(arrays or (Q, Q, Q)), **options)
    assert message in str(error.value)


def test_arrays_that_do_not_fit() -> None:
    refused("q is (2, 4, 8) but k is (2, 4, 7): q·kᵀ needs the same last axis", Q, ODD, Q)
    refused("every key needs one value. k has 2 heads of 4 keys, v 2 heads of 3", Q, Q, Q[:, :3])
    refused("k has 2 heads of 4 keys, v 1 heads of 4", Q, Q, Q[:1])
    refused("q has 3 heads and k 2", np.ones((3, 4, 8), np.float32), Q, Q)
    refused("Give all three as (tokens, d) for one head", Q[0], Q, Q)
    refused("Give all three as (tokens, d) for one head", Q[0, 0], Q, Q)
    refused("do not broadcast", np.ones((2, 2, 4, 8)), np.ones((3, 2, 4, 8)), np.ones((3, 2, 4, 8)))
    refused("at most 8 batch axes", *[np.ones((1,) * 11 + (2, 2))] * 3)


@pytest.mark.parametrize("dtype", [np.int64, np.complex64, object, ">f4", np.longdouble, bool])
def test_types_that_are_not_worked(dtype: Any) -> None:
    refused("k holds", Q, Q.astype(dtype), Q)


def test_double_and_single_do_not_mix() -> None:
    refused("float64 does not mix", Q, Q.astype(np.float64), Q)


def test_masks() -> None:
    refused("mask holds int64", mask=np.ones((4, 4), int))
    refused("does not broadcast to (…, heads, tokens, keys) = (2, 4, 4)", mask=np.ones((3, 4), bool))
    refused("does not broadcast", mask=np.ones((1, 1, 2, 4, 4), bool))


def test_order_and_windows() -> None:
    refused("causal=True with 4 tokens and 3 keys is ambiguous", Q, Q[:, :3], Q[:, :3], causal=True)
    refused("causal is 'upside_down'", causal="upside_down")
    refused("offset places the tokens", offset=1)
    refused("both place the tokens", causal="top_left", offset=1)
    refused("offset holds float64", causal=True, offset=0.5)
    for window in (3, (1,), (1, -2), (1.0, 2)):
        refused("Give (left, right)", window=window)


def test_nothing_and_masked_arrays() -> None:
    refused("q is None. Give an array", None, Q, Q)
    refused("v is None", Q, Q, None)
    refused("q is no array", [[1.0], [1.0, 2.0]], Q, Q)
    hidden = np.ma.masked_greater(Q, 0.5)
    refused("k is a masked array, and its mask would be ignored: give k.data", Q, hidden, Q)
    refused("mask is a masked array", mask=np.ma.masked_array(np.ones((4, 4), bool), False))
    refused("lengths is a masked array", lengths=np.ma.masked_array([1], True))


def test_positions_no_key_can_have() -> None:
    for offset in (10**30, 2**63 - 1, -(2**63)):
        with pytest.raises(HeadworkError, match="offset"):
            attention(Q, Q, Q, causal=True, offset=offset)
    refused("lengths runs from", lengths=np.array(2**64 - 1, np.uint64))


def test_numbers() -> None:
    refused("scale is nan", scale=float("nan"))
    refused("scale is '1'", scale="1")
    refused("softcap is 0", softcap=0)
    refused("threads is 0", threads=0)
    refused("layout is 'hbsd'", layout="hbsd")
    refused("lengths holds float64", lengths=[1.0])
    refused("lengths runs from 5 to 5, but there are 4 keys", lengths=5)
    refused("lengths is (2,), but the batch is ()", lengths=[1, 2])


def test_results_that_cannot_be_written() -> None:
    fixed = np.empty_like(Q)
    fixed.flags.writeable = False
    refused("out is read-only", out=fixed)
    refused("out is float32 (2, 4, 7), but the result is float32 (2, 4, 8)", out=np.empty_like(ODD))
    refused("out is float64", out=np.empty((2, 4, 8)))
    refused("out is list", out=[1])
    refused("out shares memory with k", np.ones_like(Q), Q, Q.copy(), out=Q)


def test_nothing_is_computed_when_an_argument_is_wrong() -> None:
    out = np.full_like(Q, 7)
    refused("softcap", out=out, softcap=-1)
    assert (out == 7).all()


def test_packed_sequences() -> None:
    x = np.ones((5, 1, 2), np.float32)
    for offsets, message in (
        ([0, 2], "ends at 5"),
        ([1, 5], "starts at 0"),
        ([0, 3, 2, 5], "never falls"),
        ([0.0, 5.0], "whole numbers"),
        ([[0, 5]], "in one row"),
    ):
        with pytest.raises(HeadworkError, match=message):
            attention_varlen(x, x, x, offsets, [0, 5])
    with pytest.raises(HeadworkError, match="2 sequences and offsets_k 1"):
        attention_varlen(x, x, x, [0, 2, 5], [0, 5])
    with pytest.raises(HeadworkError, match="sequence 0 has 2 tokens and 3 keys"):
        attention_varlen(x, x, x, [0, 2, 5], [0, 3, 5], causal=True)
    with pytest.raises(HeadworkError, match="three axes"):
        attention_varlen(x[0], x, x, [0, 5], [0, 5])
    with pytest.raises(HeadworkError, match="layout is 'bhsd'"):
        attention_varlen(x, x, x, [0, 5], [0, 5], layout="bhsd")  # type: ignore[call-overload]  # the mistake


def test_parts_that_do_not_belong_together() -> None:
    out, lse = attention(Q, Q, Q, return_lse=True)
    with pytest.raises(HeadworkError, match="give one part at least"):
        merge([], [])
    with pytest.raises(HeadworkError, match="one shape"):
        merge([out, out[:1]], [lse, lse[:1]])
    with pytest.raises(HeadworkError, match="one number for every head and token"):
        merge([out], [lse[:1]])
