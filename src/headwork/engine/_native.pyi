"""The compiled kernel. Arguments are checked in `headwork.engine.arguments`, not here."""

from typing import Any

from numpy.typing import NDArray

_Array = NDArray[Any]

def forward(
    q: _Array,
    k: _Array,
    v: _Array,
    mask: _Array | None,
    out: _Array,
    lse: _Array | None,
    weights: _Array | None,
    spans: _Array | None,
    sinks: _Array | None,
    slopes: _Array | None,
    table: _Array | None,
    swapped: bool,
    offset: int,
    left: int,
    right: int,
    scale: float,
    softcap: float,
    dropout: float,
    seed: int,
    threads: int,
    merges: bool = False,
    blocks: _Array | None = None,
    block_tokens: int = 0,
    block_keys: int = 0,
) -> None:
    """Work out `out`, and `lse` and `weights` where given. bfloat16 comes as its bits, uint16. `blocks` is a Boolean
    table, false where nothing of a block of so many tokens and keys may be read.

    `merges`: into the result over other keys that stands in `out` and `lse`.
    """

def backward(
    q: _Array,
    k: _Array,
    v: _Array,
    mask: _Array | None,
    out: _Array | None,
    lse: _Array,
    dout: _Array,
    dlse: _Array | None,
    dq: _Array | None,
    dk: _Array | None,
    dv: _Array | None,
    dmask: _Array | None,
    dslopes: _Array | None,
    dtable: _Array | None,
    spans: _Array | None,
    sinks: _Array | None,
    slopes: _Array | None,
    table: _Array | None,
    swapped: bool,
    offset: int,
    left: int,
    right: int,
    scale: float,
    softcap: float,
    dropout: float,
    seed: int,
    threads: int,
    delta: _Array | None = None,
    adds: bool = False,
    blocks: _Array | None = None,
    block_tokens: int = 0,
    block_keys: int = 0,
) -> None:
    """Work out the gradients that have an array; those of biases are of the accumulation type.

    `delta`, Σ dout·out of every row in the accumulation type, may stand for `out`; `adds`: to what stands there.
    """

def merge(out: _Array, lse: _Array, added: _Array, added_lse: _Array, swapped: bool, threads: int) -> None:
    """Merge a result over other keys into `out` and `lse`."""

def decode(
    q: _Array,
    k: _Array,
    v: _Array,
    k_scales: _Array | None,
    v_scales: _Array | None,
    block_table: _Array | None,
    out: _Array,
    lse: _Array | None,
    spans: _Array,
    sinks: _Array | None,
    slopes: _Array | None,
    table: _Array | None,
    k_kind: int,
    v_kind: int,
    swapped: bool,
    left: int,
    right: int,
    scale: float,
    softcap: float,
    threads: int,
) -> None:
    """Decoding from a cache: four axes, a span for every batch item. 8-bit numbers come as bytes, with a kind: 1 int8,
    2 float8_e4m3fn, 3 float8_e5m2; otherwise it is 0. Block table and spans are int64.
    """

def short_call(*told: object) -> _Array | tuple[_Array, ...] | None:
    """`attention` for three arrays of one type and rank that fit, told all of its arguments in their order and how many
    threads there are; None where anything needs a closer look.
    """

def plain_tensors(
    q: object,
    k: object,
    v: object,
    mask: object,
    out: object,
    lse: object,
    causal: bool,
    grouped: bool,
    scale: float | None,
    threads: int,
) -> bool:
    """Attention with torch's arguments, into `out` and, unless it is None, `lse`. False where they need a closer look,
    with nothing worked out.
    """

def plain_gradients(
    q: object,
    k: object,
    v: object,
    mask: object,
    out: object,
    lse: object,
    dout: object,
    dq: object,
    dk: object,
    dv: object,
    causal: bool,
    scale: float | None,
    threads: int,
) -> bool:
    """Its gradients, where `dq`, `dk` and `dv` are not None; False as above. Where `out` and `lse` are None, they are
    worked out again.
    """

def linear(x: object, weights: object, bias: object, out: object, threads: int) -> bool:
    """x·weights + bias into `out`, all float32 with numbers side by side. False where they need a closer look, with
    nothing done.
    """

def linear_is_ahead() -> bool:
    """Whether it is faster on this machine than the libraries that torch and NumPy bring."""

def multiply_add(operations: int, threads: int) -> None:
    """As many float32 operations, or a few more, as fast as this machine can; 0 threads = the default."""

def read(data: _Array, threads: int) -> None:
    """Read `data`, and nothing else, as fast as this machine can; 0 threads = the default."""

def cpu() -> str:
    """The instruction set in use."""

def use_cpu(name: str) -> bool:
    """Force one; False where this machine or build has no such set."""

def threads() -> int:
    """How many threads a call uses unless told."""

def thread_runtime() -> str:
    """`openmp`, or `threads` where the process has no OpenMP runtime or is the child of a fork."""
