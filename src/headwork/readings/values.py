"""Values: a step means a NumPy float64 array. Batches may stand before rows and columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork.errors import HeadworkError
from headwork.graph import Rules, Step, read
from headwork.notation import PLAIN
from headwork.numbers.digits import to_float
from headwork.ops import (
    Add,
    Constant,
    Divide,
    DivideBy,
    Exp,
    Given,
    Join,
    MatMul,
    Maxima,
    Multiply,
    Root,
    Rows,
    Softmax,
    Split,
    Stack,
    Subtract,
    Sums,
    Transpose,
)

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


def _constant(step: Step) -> Array:
    assert isinstance(step.op, Constant)
    return np.full(step.op.shape, to_float(step.op.value))


def _subtract(step: Step, left: Array, right: Array) -> Array:
    """−∞ less anything is −∞, −∞ included."""
    less: Array = np.subtract(left, right, out=np.full(left.shape, -np.inf), where=~np.isneginf(left))
    return less


def _divide_by(step: Step, left: Array, right: Array) -> Array:
    nothing = (left == 0) & (right == 0)
    return np.where(nothing, 0.0, left / np.where(nothing, 1.0, right))


def _sums(step: Step, matrix: Array) -> Array:
    assert isinstance(step.op, Sums)
    sums: Array = np.sum(matrix, axis=step.op.axis, keepdims=True)
    return sums


def _rows(step: Step, matrix: Array) -> Array:
    assert isinstance(step.op, Rows)
    return matrix[..., step.op.start : step.op.stop, :]


VALUES: Rules[Array] = {
    Given: _given,
    MatMul: lambda step, left, right: left @ right,
    Transpose: lambda step, matrix: np.swapaxes(matrix, -1, -2),
    Divide: _divide,
    Add: lambda step, *terms: sum(terms),
    Softmax: _softmax,
    Split: _split,
    Join: lambda step, *parts: np.concatenate(parts, axis=-1),
    Constant: _constant,
    Multiply: lambda step, left, right: left * right,
    Subtract: _subtract,
    DivideBy: _divide_by,
    Exp: lambda step, matrix: np.exp(matrix),
    Sums: _sums,
    Maxima: lambda step, *parts: np.max(np.concatenate(parts, axis=-1), axis=-1, keepdims=True),
    Rows: _rows,
    Stack: lambda step, *parts: np.concatenate(parts, axis=-2),
}
