"""Every option together, as Hypothesis thinks them up."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwork.engine import attention
from tests.engine import oracle
from tests.engine.cases import DTYPES, Array, accumulates, assert_as_good_as_plain, distance, eps

SIZES = st.one_of(st.integers(1, 9), st.integers(1, 140))


class Drawn:
    """A call to try; not a dataclass, so that a failure prints shapes and not thousands of numbers."""

    def __init__(self, q: Array, k: Array, v: Array, options: dict[str, Any]) -> None:
        self.q, self.k, self.v, self.options = q, k, v, options

    def __repr__(self) -> str:
        arrays = " ".join(f"{a.dtype}{a.shape}" for a in (self.q, self.k, self.v))
        options = {name: x.shape if isinstance(x, np.ndarray) and x.ndim else x for name, x in self.options.items()}
        return f"{arrays} {options}"


def stretched(array: Array, steps: tuple[int, ...]) -> Array:
    """The same numbers with other strides: spread out in a larger array, backwards where the step is
    negative.
    """
    wide = np.zeros(tuple(n * abs(s) for n, s in zip(array.shape, steps, strict=True)), array.dtype)
    view = wide[tuple(slice(None, None, abs(s)) for s in steps)]
    view = view[tuple(slice(None, None, -1 if s < 0 else 1) for s in steps)]
    view[...] = array
    return view


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(DTYPES))
    narrow = draw(st.sampled_from([dtype, *DTYPES[2:]])) if dtype == np.float32 else dtype
    batch = draw(st.sampled_from([(), (1,), (2,), (2, 3)]))
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    tokens, keys = draw(SIZES), draw(SIZES)
    d_k, d_v = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    causal = draw(st.sampled_from([False, True, "top_left", "bottom_right"]))
    tokens = keys if causal is True else tokens
    layout = draw(st.sampled_from(["bhsd", "bshd"]))
    some = draw(st.sampled_from([batch, batch[1:], (1,) * len(batch)]))

    def array(lead: tuple[int, ...], heads: int, rows: int, width: int, sort: Any) -> Array:
        shape = (*lead, rows, heads, width) if layout == "bshd" else (*lead, heads, rows, width)
        values = rng.standard_normal(shape).astype(sort)
        return stretched(values, tuple(draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape))

    q = array(batch, kv_heads * group, tokens, d_k, dtype)
    k, v = array(some, kv_heads, keys, d_k, narrow), array(some, kv_heads, keys, d_v, narrow)
    options: dict[str, Any] = {"causal": causal, "layout": layout}
    if draw(st.booleans()):
        options["window"] = (draw(st.integers(-1, 30)), draw(st.integers(-1, 30)))
    heads = kv_heads * group
    lead = draw(st.sampled_from([(heads,), (1,), (*batch, heads), (*(1 for _ in batch), heads)]))
    if draw(st.sampled_from([False, False, True])):
        options["sinks"] = (rng.standard_normal(lead) * 3).astype(dtype)
    if draw(st.sampled_from([False, False, True])):
        options["alibi"] = (rng.random(lead) / 4).astype(dtype)
    if draw(st.sampled_from([False, False, True])):
        options["relative"] = rng.standard_normal((*lead, 2 * draw(st.integers(0, 40)) + 1)).astype(dtype)
    if draw(st.sampled_from([False, False, True])):
        options |= {"dropout": draw(st.floats(0, 1)), "seed": draw(st.integers(-(2**70), 2**70))}
    placed = "window" in options or "alibi" in options or "relative" in options
    if (causal is True or (not causal and placed)) and draw(st.booleans()):
        one = draw(st.booleans())
        options["offset"] = draw(st.integers(-20, 20)) if one else rng.integers(-keys, keys, batch)
    if draw(st.booleans()):
        options["scale"] = draw(st.floats(-2, 2))
    if draw(st.booleans()):
        options["softcap"] = draw(st.floats(0.5, 50))
    if draw(st.booleans()):
        options["lengths"] = rng.integers(0, keys + 1, batch)
    if draw(st.booleans()):
        options["starts"] = rng.integers(0, keys + 1, batch)
    if (kind := draw(st.sampled_from([None, "bool", "blocks", "float"]))) is not None:
        whole = (*batch, kv_heads * group, tokens, keys)
        shape = tuple(1 if draw(st.booleans()) else n for n in whole)[draw(st.integers(0, len(whole))) :]
        mask: Any = rng.random(shape) < draw(st.sampled_from([0.1, 0.5, 0.95]))
        if kind == "blocks" and shape:
            mask = np.broadcast_to(mask[..., :1], shape) | (np.arange(shape[-1]) // 32 % 3 == 0)
        if kind == "float":
            mask = np.where(mask, rng.standard_normal(shape), -np.inf).astype(draw(st.sampled_from(DTYPES)))
        options["mask"] = np.asarray(mask)
    return Drawn(q, k, v, options)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(drawn())
def test_every_option_together(case: Drawn) -> None:
    q, k, v, options = case.q, case.k, case.v, case.options
    out, lse = attention(q, k, v, **options, return_lse=True)
    assert_as_good_as_plain(out, q, k, v, **options)
    _, exact_lse, exact_weights = oracle.attention(q, k, v, **options)
    sort = accumulates(q.dtype)
    largest = float(np.abs(exact_lse[np.isfinite(exact_lse)]).max(initial=1))
    assert distance(lse, exact_lse) <= 16 * eps(sort) * largest
    again, weights = attention(q, k, v, **options, return_weights=True)
    assert distance(weights, exact_weights) <= 64 * eps(sort) * largest
    reach = float(np.abs(v.astype(sort)).max())
    assert distance(again, out) <= (64 * eps(sort) * largest + 2 * eps(q.dtype)) * reach
    assert (attention(q, k, v, **options, threads=1) == out).all()
