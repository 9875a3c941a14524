"""Values: a step means a NumPy float64 array. Batches may stand before rows and columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork import ops
from headwork.graph import Last, Rules, Step, StepOf, read
from headwork.numbers.digits import to_float
from headwork.readings.moving import not_given

Array = NDArray[np.float64]


def values(last: Last, handed: Mapping[Step, Any]) -> dict[Step, Array]:
    """Every step in float64; `handed` gives the inputs and any step that is not to be worked out."""
    return read(last, VALUES, {step: np.asarray(array, np.float64) for step, array in handed.items()})


def _divide(step: StepOf[ops.Divide], scores: Array) -> Array:
    by = step.op.by
    number: Array = np.array(float(by.of) ** 0.5 if isinstance(by, ops.Root) else to_float(by))
    return np.divide(scores, number)


def _softmax(step: StepOf[ops.Softmax], scores: Array) -> Array:
    """A row in which nothing may be read gives zeros, not NaN."""
    axis = (-2, -1) if step.op.axis is None else step.op.axis
    top = np.max(scores, axis=axis, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = np.sum(powers, axis=axis, keepdims=True)
    weights: Array = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return weights


def _subtract(step: Step, left: Array, right: Array) -> Array:
    """−∞ less anything is −∞, −∞ included."""
    less: Array = np.subtract(left, right, out=np.full(left.shape, -np.inf), where=~np.isneginf(left))
    return less


def _divide_by(step: Step, left: Array, right: Array) -> Array:
    assert isinstance(step.op, ops.DivideBy)
    nothing = (right == 0) & ((left == 0) | step.op.back)
    return np.where(nothing, 0.0, left / np.where(nothing, 1.0, right))


def _rotate(step: StepOf[ops.Rotate], matrix: Array, cos: Array, sin: Array) -> Array:
    sin = -sin if step.op.back else sin
    first, second = (
        (matrix[..., ::2], matrix[..., 1::2]) if step.op.pairs == "neighbours" else np.split(matrix, 2, axis=-1)
    )
    turned = first * cos - second * sin, first * sin + second * cos
    if step.op.pairs == "halves":
        return np.concatenate(turned, axis=-1)
    return np.stack(turned, axis=-1).reshape(matrix.shape)


def _softcap(step: StepOf[ops.Softcap], scores: Array) -> Array:
    cap = to_float(step.op.by)
    return cap * np.tanh(scores / cap)


VALUES: Rules[Array] = {
    ops.Given: not_given,
    ops.MatMul: lambda step, left, right: left @ right,
    ops.Transpose: lambda step, matrix: np.swapaxes(matrix, -1, -2),
    ops.Divide: _divide,
    ops.Add: lambda step, *terms: sum(terms),
    ops.Softmax: _softmax,
    ops.Split: lambda step, wide: np.split(wide, step.op.of, axis=-1)[step.op.part],
    ops.Join: lambda step, *parts: np.concatenate(parts, axis=-1),
    ops.Constant: lambda step: np.full(step.op.shape, to_float(step.op.value)),
    ops.Multiply: lambda step, left, right: left * right,
    ops.Subtract: _subtract,
    ops.DivideBy: _divide_by,
    ops.Exp: lambda step, matrix: np.exp(matrix),
    ops.Sums: lambda step, matrix: np.sum(matrix, axis=step.op.axis, keepdims=True),
    ops.Maxima: lambda step, *parts: np.max(np.concatenate(parts, axis=-1), axis=-1, keepdims=True),
    ops.Means: lambda step, matrix: np.mean(matrix, axis=-1, keepdims=True),
    ops.SquareRoot: lambda step, matrix: np.sqrt(matrix),
    ops.Relu: lambda step, matrix: np.maximum(matrix, 0.0),
    ops.Rows: lambda step, matrix: matrix[..., step.op.start : step.op.stop, :],
    ops.Stack: lambda step, *parts: np.concatenate(parts, axis=-2),
    ops.Rotate: _rotate,
    ops.Softcap: _softcap,
}
