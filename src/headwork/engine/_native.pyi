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
) -> None:
    """Work out `out`, and `lse` and `weights` where given. bfloat16 comes as its bits, uint16."""

def backward(
    q: _Array,
    k: _Array,
    v: _Array,
    mask: _Array | None,
    out: _Array,
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
) -> None:
    """Work out the gradients that have an array; those of biases are of the accumulation type."""

def plain(q: object, k: object, v: object, causal: bool, threads: int) -> _Array | None:
    """The result for three arrays of one type and rank that fit; None where they need a closer look."""

def plain_tensors(
    q: object, k: object, v: object, out: object, causal: bool, grouped: bool, scale: float, threads: int
) -> bool:
    """The same for tensors, into `out`; False where they need a closer look, with nothing worked out."""

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
