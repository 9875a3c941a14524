"""What the tests of variations share: small matrices, a sheet solved from them, NumPy written out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import headwork
from headwork.sheets.load import parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.working import Working

Array = NDArray[np.float64]
RNG = np.random.default_rng(14)


def drawn(*shape: int) -> Array:
    return RNG.integers(-2, 3, shape).astype(float)


def text(value: Any) -> str:
    return str(value.astype(int).tolist()) if isinstance(value, np.ndarray) else str(value)


def solved(formula: str, given: dict[str, Any], keys: str = "", part: str = 'find = ["output"]') -> Working:
    """The sheet is written, saved, read again and solved: what is saved means the same."""
    matrices = "\n".join(f"{role} = {text(value)}" for role, value in given.items())
    sheet = parse_sheet(f'formula = "{formula}"\n{keys}\n[given]\n{matrices}\n[[part]]\n{part}', "drawn.toml")
    again = parse_sheet(sheet_toml(sheet), "drawn.toml")
    assert again.problems == sheet.problems
    return headwork.solve(again)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def close(worked: Any, expected: Array) -> None:
    np.testing.assert_allclose(np.asarray(worked), expected, rtol=1e-12, atol=1e-12)


X, X_PAST = drawn(2, 3), drawn(3, 3)
W_Q, W_K, W_V, W_O = drawn(3, 2), drawn(3, 2), drawn(3, 2), drawn(2, 3)
W = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
CAUSAL = np.where(np.arange(5) <= 3 + np.arange(2)[:, None], 0.0, -np.inf)  # two new tokens after three


Q, K, V = drawn(3, 2), drawn(3, 2), drawn(3, 2)
QKV = {"Q": Q, "K": K, "V": V}
DISTANCE = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))


def turned(matrix: Array, angles: Any, pairs: str) -> Array:
    """Every pair of columns as a complex number, times e^(iθ)."""
    half = matrix.shape[1] // 2
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if pairs == "neighbours" else (slice(0, half), slice(half, None))
    )
    product = (matrix[:, first] + 1j * matrix[:, second]) * np.exp(1j * np.radians(angles))
    found = np.empty_like(matrix)
    found[:, first], found[:, second] = product.real, product.imag
    return found
