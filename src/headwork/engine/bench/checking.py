"""What is timed is checked: some rows of the result against the formula in float64."""

from typing import Any

import numpy as np

from headwork.engine.bench.cases import Array, Problem

ROWS = 48  # tokens of each head that are checked


def check(problem: Problem, result: Any, contender: str) -> None:
    """A fast wrong answer fails: AssertionError says by how much."""
    rounded = "bfloat16" in contender or problem.q.dtype.itemsize < np.float32().itemsize
    tolerance = 2e-2 if rounded else 2e-5 if contender == "headwork" else 2e-4
    got = np.asarray(result.float() if hasattr(result, "float") else result, np.float64)
    rows = np.random.default_rng(0).permutation(problem.q.shape[0 if problem.lengths else -2])[:ROWS]
    expected = packed_rows(problem, rows) if problem.lengths else dense_rows(problem, rows)
    got = got[rows] if problem.lengths else got[..., rows, :]
    worst = float(np.abs(got - expected).max())
    if not worst <= tolerance:
        raise AssertionError(f"off by {worst:.2e}, allowed {tolerance:.0e}")


def dense_rows(problem: Problem, rows: Array) -> Array:
    q = problem.q[..., rows, :].astype(np.float64)
    group = problem.q.shape[1] // problem.k.shape[1]
    k, v = (np.repeat(a.astype(np.float64), group, 1) for a in (problem.k, problem.v))
    seen = problem.visible()
    return formula(q, k, v, None if seen is None else seen[rows])


def packed_rows(problem: Problem, rows: Array) -> Array:
    out = []
    for row in rows:
        i = int(np.searchsorted(problem.ends, row, side="right"))
        own = slice(*problem.ends[i - 1 : i + 1])
        parts = (problem.q[row : row + 1], problem.k[own], problem.v[own])
        q, k, v = (a.swapaxes(0, 1).astype(np.float64) for a in parts)
        out.append(formula(q, k, v, None)[:, 0])
    return np.stack(out)


def formula(q: Array, k: Array, v: Array, seen: Array | None) -> Array:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights @ v / weights.sum(-1, keepdims=True))
