"""What a head does, in a few numbers: how widely it reads, how far, and how much of it is habit."""

from dataclasses import dataclass

import numpy as np

from headwork.engine.arrays import Array


@dataclass(frozen=True)
class Measures:
    """Means over the tokens of a text.

    entropy   −Σ w·log₂ w of a row, in bits: 0 reads one token, log₂ n all of n alike
    distance  Σ w·|i − j|, in tokens
    first, itself, before  the weight on the first token, on the token itself, on the one before it
    """

    entropy: float
    distance: float
    first: float
    itself: float
    before: float


def measures(weights: Array) -> Measures:
    """Of one head's weights, (tokens, tokens).

    >>> measures(np.eye(3))
    Measures(entropy=0.0, distance=0.0, first=0.3333333333333333, itself=1.0, before=0.0)
    """
    tokens = len(weights)
    apart = np.abs(np.arange(tokens)[:, None] - np.arange(tokens))
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return Measures(
        entropy=abs(float((weights * logs).sum(-1).mean())),
        distance=float((weights * apart).sum(-1).mean()),
        first=float(weights[:, 0].mean()),
        itself=float(np.diag(weights).mean()),
        before=float(np.diag(weights, -1).mean()) if tokens > 1 else 0.0,
    )


def strongest(weights: Array, number: int) -> list[tuple[int, int]]:
    """The pairs of different tokens with the largest weights, as (reading, read).

    >>> strongest(np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]), 2)
    [(1, 0), (0, 1)]
    """
    others = np.where(np.eye(len(weights), dtype=bool), -1.0, weights)
    order = np.argsort(-others, axis=None, kind="stable")[: min(number, others.size - len(others))]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, others.shape), strict=True)]
