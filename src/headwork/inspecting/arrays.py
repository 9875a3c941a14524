"""The catalogue's operations on NumPy arrays: somebody's matrices may be large, and come in batches."""

import numpy as np

from headwork.graph import Rules, StepOf
from headwork.mistakes.operations import NOISE, HideOthers, LaterColumn, LaterRow, LessMaximum, Share, ZeroHidden
from headwork.ops import Softmax
from headwork.readings import values
from headwork.readings.values import Array


def _share(step: StepOf[Share], scores: Array) -> Array:
    """As in `headwork.mistakes.operations`: a sum of 0 leaves no number."""
    axis = (-2, -1) if step.op.axis is None else step.op.axis
    visible = np.where(np.isneginf(scores), 0.0, scores)
    total = np.sum(visible, axis=axis, keepdims=True)
    noise = NOISE * np.sum(np.abs(visible), axis=axis, keepdims=True)
    shares: Array = np.divide(visible, total, out=np.full_like(visible, np.nan), where=np.abs(total) > noise)
    return shares


def _rows(step: StepOf[LaterRow], mask: Array) -> Array:
    moved = np.roll(mask, -step.op.by, axis=-2)
    if step.op.by == 1:
        moved[..., -1, :] = 0.0
    else:
        moved[..., 0, :] = -np.inf
    return moved


def _columns(step: StepOf[LaterColumn], mask: Array) -> Array:
    hidden = np.full((*mask.shape[:-1], step.op.by), -np.inf)
    return np.concatenate([mask[..., step.op.by :], hidden], axis=-1)


def _less_maximum(step: StepOf[LessMaximum], scores: Array) -> Array:
    tops = np.max(scores, axis=-2 if step.op.of == "columns" else -1)
    return scores - np.where(np.isneginf(tops), 0.0, tops)[..., None, :]


VALUES: Rules[Array] = {
    **values.VALUES,
    ZeroHidden: lambda step, left, mask: np.where(np.isneginf(mask), 0.0, left + mask),
    HideOthers: lambda step, left, mask: np.where(np.isneginf(mask), left, -np.inf),
    Share: _share,
    LaterRow: _rows,
    LaterColumn: _columns,
    LessMaximum: _less_maximum,
}


def _softmax(step: StepOf[Softmax], scores: Array) -> Array:
    """A row in which nothing may be read gives NaN: code gives zeros there, NaN or the mean, and none is predicted."""
    axis = (-2, -1) if step.op.axis is None else step.op.axis
    weights = values.VALUES[Softmax](step, scores)
    return np.where(np.isneginf(np.max(scores, axis=axis, keepdims=True)), np.nan, weights)


PREDICTED: Rules[Array] = {**VALUES, Softmax: _softmax}
