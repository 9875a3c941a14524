"""Values: a step means a NumPy float64 array. Batches may stand before rows and columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork.errors import HeadworkError
from headwork.graph import Rules, Step, read
from headwork.notation import PLAIN
from headwork.numbers.digits import to_float
from headwork.ops import Add, Divide, Given, Join, MatMul, Root, Softmax, Split, Transpose

Array = NDArray[np.float64]


def values(last: Step, handed: Mapping[Step, Any]) -> dict[Step, Array]:
    """Every step in float64; `handed` gives the inputs and any step that is not to be worked out."""
    return read(last, VALUES, {step: np.asarray(array, np.float64) for step, array in handed.items()})


def _given(step: Step) -> Array:
    raise HeadworkError(f"no matrix was given for {PLAIN.of(step)}; hand one over")


def _divide(step: Step, scores: Array) -> Array:
    assert isinstance(step.op, Divide)
    by = step.op.by
    number: Array = np.array(float(by.of) ** 0.5 if isinstance(by, Root) else to_float(by))
    return np.divide(scores, number)


def _softmax(step: Step, scores: Array) -> Array:
    """A row in which nothing may be read gives zeros, not NaN."""
    assert isinstance(step.op, Softmax)
    axis = (-2, -1) if step.op.axis is None else step.op.axis
    top = np.max(scores, axis=axis, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = np.sum(powers, axis=axis, keepdims=True)
    weights: Array = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return weights


def _split(step: Step, wide: Array) -> Array:
    assert isinstance(step.op, Split)
    assert isinstance(step.op.of, int)
    return np.split(wide, step.op.of, axis=-1)[step.op.part]


VALUES: Rules[Array] = {
    Given: _given,
    MatMul: lambda step, left, right: left @ right,
    Transpose: lambda step, matrix: np.swapaxes(matrix, -1, -2),
    Divide: _divide,
    Add: lambda step, left, right: left + right,
    Softmax: _softmax,
    Split: _split,
    Join: lambda step, *parts: np.concatenate(parts, axis=-1),
}
