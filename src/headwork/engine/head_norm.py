"""A norm for every head's queries or keys, as Qwen 3 and Gemma 3 have it between the projection and the positions."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arrays import Array
from headwork.errors import ShapeError


@dataclass(frozen=True)
class HeadNorm:
    """x / √(mean of x² + eps) · gain, over the columns of each head.

    >>> heads = np.array([[[3.0, 4.0]]])
    >>> HeadNorm(np.ones(2), eps=0.0).scale(heads)
    >>> heads.round(3)
    array([[[0.849, 1.131]]])
    """

    gain: NDArray[np.floating] = field(compare=False)
    eps: float = 1e-6

    def check(self, name: str, d_k: int) -> None:
        if np.shape(self.gain) != (d_k,):
            raise ShapeError(
                f"the gain of {name} is {np.shape(self.gain)}, but a head has {d_k} columns: give ({d_k},)."
            )

    def scale(self, heads: Array) -> None:
        """(…, tokens, heads, d_k) in place."""
        mean = np.mean(np.square(heads), axis=-1, keepdims=True)
        heads /= np.sqrt(mean + heads.dtype.type(self.eps))
        heads *= np.asarray(self.gain, heads.dtype)
