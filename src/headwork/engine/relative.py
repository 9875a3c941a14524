"""Biases by distance as T5 stores them, one for every bucket of distances, as the table that `attention` takes."""

import numpy as np

from headwork.engine.arrays import Array


def by_distance(buckets: Array, farthest: int, both_ways: bool) -> Array:
    """(buckets, heads) → (heads, 2·farthest + 1), for key − position from −farthest to farthest.

    Half of the buckets hold one distance each; the others hold ever more, up to `farthest`, from which on all are one.
    Where tokens read in both directions, keys before and after have buckets of their own; else those after share the
    first.

    >>> by_distance(np.arange(4.0)[:, None], 4, both_ways=False)
    array([[3., 3., 2., 1., 0., 0., 0., 0., 0.]])
    """
    apart = np.arange(-farthest, farthest + 1)
    number = len(buckets) // 2 if both_ways else len(buckets)
    far = np.abs(apart) if both_ways else np.maximum(-apart, 0)
    single = number // 2
    # In float32, as the model has it: at the edge of a bucket the last place decides.
    share = np.log(np.maximum(far, 1).astype(np.float32) / single) / np.float32(np.log(farthest / single))
    wide = np.minimum(single + (share * (number - single)).astype(int), number - 1)
    which = np.where(far < single, far, wide) + (number * (apart > 0) if both_ways else 0)
    return np.asarray(buckets[which].T)
