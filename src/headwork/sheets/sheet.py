"""The model: a sheet holds problems, a problem holds what is given and lettered parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from headwork.formulas import SQRT_D_K, Scale
from headwork.notation import Notation
from headwork.numbers.surd import Real
from headwork.readings.exact import Matrix
from headwork.variations import Pairs

KINDS = ("value", "shape", "count", "prove", "moments", "explain", "diagram", "gradient")
NUMBERS = ("value", "gradient")  # the kinds whose answers are matrices of numbers
LOSSES = ("sum", "half-squares")

PAIRS: tuple[Pairs, ...] = ("neighbours", "halves")
DECIMALS = ("short", "always")
SOFTMAXES = ("whole", "steps", "safe-steps")


class EachHead(tuple[str | Matrix, ...]):
    """A mask for every head."""


@dataclass(frozen=True)
class Bias:
    """What is added to the scores, by position: matrices (one for all heads, or one for each), ALiBi, or a table."""

    matrices: tuple[Matrix, ...] = ()
    alibi: bool = False
    slopes: tuple[Real, ...] = ()  # of ALiBi, one for each head; none for those of the paper
    relative: tuple[tuple[Real, ...], ...] = ()  # for each head, by distance, from the farthest left to the right


@dataclass(frozen=True)
class Angles:
    """From one position to the next: degrees for every pair of columns, or base^(−2j/d) radians for pair j of d/2."""

    degrees: tuple[Fraction, ...] = ()
    base: Fraction | None = None
    first: int = 0  # the first position
    places: int | None = None  # to which sines and cosines are rounded before they are used; None for not at all


@dataclass(frozen=True)
class Rotary:
    """Rotary positions: which columns make a pair, and its angles; none where cos and sin are given."""

    pairs: Pairs = "neighbours"
    angles: Angles | None = None


# A matrix is known by its role and head: ("W_Q", 0), ("X", None).
Key = tuple[str, int | None]


@dataclass(frozen=True)
class Part:
    """One lettered question."""

    label: str
    kind: str = "value"
    text: str = ""
    find: tuple[str, ...] = ()
    given: Mapping[Key, Matrix] = field(default_factory=dict)
    answer: str = ""
    mean: Real | None = None
    variance: Real | None = None
    loss: str = ""  # of a gradient: what L is of the output; nothing where d_output is given
    rate: Real | None = None  # of a gradient: the η of one step of learning
    entries: bool = False  # of a proof: whether it is written out entry by entry
    points: Fraction | None = None  # what the part is worth; 1 unless given here or under [marking]


@dataclass(frozen=True)
class Problem:
    """One exercise: a formula, what is given, and its parts."""

    title: str
    formula: str
    parts: tuple[Part, ...]
    text: str = ""
    heads: int | None = None
    kv_heads: int | None = None
    scale: Scale = SQRT_D_K
    mask: str | Matrix | EachHead = "none"
    window: tuple[int, int] | None = None  # how many keys to the left and to the right are read; −1 for all
    padding: tuple[str, ...] = ()  # the names of keys that nobody reads
    bias: Bias | None = None
    softcap: Real | None = None
    rotary: Rotary | None = None
    positions: Angles | None = None  # sinusoids to add to X; other positions are given
    blocks: int | tuple[int, ...] = 1  # of keys, for blockwise: how many, or how many keys in each
    around: str = "none"  # what stands around attention: "residual", "post-norm", "pre-norm"
    eps: Real = Fraction(0)  # what a layer norm adds to the variance
    softmax: str = "whole"  # or taken apart into "steps", or into "safe-steps", less the row's maximum first
    tokens: tuple[str, ...] = ()  # what the tokens are called: rows of scores and weights, and columns
    keys: tuple[str, ...] = ()  # what the columns are called, where they are others
    decimals: str = "short"  # or "always": 2.667, never 8/3
    places: int = 2
    notation: Notation = field(default_factory=Notation)
    columns: bool = False  # whether single rows are written as column vectors, q = Wᵀ·x
    given: Mapping[Key, Matrix] = field(default_factory=dict)
    sizes: Mapping[str, int | str] = field(default_factory=dict)
    marking: Mapping[str, Any] = field(default_factory=dict)  # see `headwork.marking.rules`

    @property
    def masked(self) -> bool:
        return self.mask != "none" or self.window is not None or bool(self.padding)

    @property
    def only_causal(self) -> bool:
        """Whether a key can only be hidden because it comes later."""
        return self.mask == "causal" and self.window is None and not self.padding


@dataclass(frozen=True)
class Sheet:
    """A file's worth of problems. `source` is the name or path it was read from, for messages."""

    title: str
    problems: tuple[Problem, ...]
    summary: str = ""
    source: str = "sheet"
