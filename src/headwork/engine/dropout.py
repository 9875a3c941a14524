"""Which weights dropout keeps: a function of (seed, batch item, head, row, column), as in native/kernel/dropout.h.

Nothing is drawn in order, so that every cut into tiles and every number of threads drops the same weights, and so does
the backward pass.
"""

import numpy as np
from numpy.typing import NDArray

DRAWN = 2**24  # numbers are drawn from 0 up to this one
Words = NDArray[np.uint64]


def dropped_below(dropout: float) -> int:
    """Numbers drawn below this one drop their weight."""
    return int(dropout * DRAWN + 0.5)


def gain(dropout: float) -> float:
    """What the weights that are kept are multiplied by; 0 where none is."""
    kept = DRAWN - dropped_below(dropout)
    return DRAWN / kept if kept else 0.0


def scattered(x: Words) -> Words:
    """A step of a 64-bit generator (splitmix): every bit of x reaches every bit of the result."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def keeps(
    dropout: float, seed: int, item: int, heads: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(heads, rows, columns): True where a weight is kept."""
    key = scattered(np.array(seed % 2**64, np.uint64))
    key = scattered(key ^ np.uint64(item))
    key = scattered(key ^ heads.astype(np.uint64)[:, None])
    key = scattered(key ^ rows.astype(np.uint64))[..., None]
    half = np.uint64(0xFFFFFFFF)
    x = (columns.astype(np.uint64) + (key & half)) & half
    x ^= x >> np.uint64(16)
    x = (x * np.uint64(0x7FEB352D)) & half
    x ^= x >> np.uint64(15)
    x ^= key >> np.uint64(32)
    x = (x * np.uint64(0x846CA68B)) & half
    x ^= x >> np.uint64(16)
    return np.asarray((x >> np.uint64(8)) >= np.uint64(dropped_below(dropout)))
