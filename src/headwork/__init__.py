"""Multi-head attention, worked: by hand, in the open, at full speed.

`solve` works a sheet; `shapes`, `counts`, `moments` and `diagram` read a configuration; `prove` compares two formulas;
`mark` marks answers and `inspect` somebody's code;
`attention` is the same computation, fused, for arrays of real size, and `MultiHead` the whole layer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError

if TYPE_CHECKING:
    __version__: str
    from headwork.configure import counts, diagram, moments, shapes
    from headwork.engine.attention import attention
    from headwork.engine.decode import attention_decode
    from headwork.engine.layer import MultiHead
    from headwork.engine.merge import merge
    from headwork.engine.paged_cache import PagedCache
    from headwork.engine.quantize import quantize
    from headwork.engine.varlen import attention_varlen
    from headwork.inspecting.inspect import inspect
    from headwork.marking.mark import mark
    from headwork.proofs import prove
    from headwork.sheets.load import load
    from headwork.solving import solve

__all__ = [
    "HeadworkError",
    "MultiHead",
    "PagedCache",
    "attention",
    "attention_decode",
    "attention_varlen",
    "counts",
    "diagram",
    "inspect",
    "load",
    "mark",
    "merge",
    "moments",
    "prove",
    "quantize",
    "shapes",
    "solve",
]

# Loaded when first used, so that `import headwork` costs next to nothing.
_MODULES = {
    "headwork.configure": ("counts", "diagram", "moments", "shapes"),
    "headwork.engine": (
        "MultiHead",
        "PagedCache",
        "attention",
        "attention_decode",
        "attention_varlen",
        "merge",
        "quantize",
    ),
    "headwork.inspecting.inspect": ("inspect",),
    "headwork.marking.mark": ("mark",),
    "headwork.proofs": ("prove",),
    "headwork.sheets.load": ("load",),
    "headwork.solving": ("solve",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Called once for each name: what was loaded is kept, for a look-up through here costs more than a small call."""
    if name == "__version__":
        found: Any = _version()
    elif name in _HOME:
        found = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'headwork' has no attribute '{name}'")
    globals()[name] = found
    return found


def _version() -> str:
    """As pyproject.toml has it; a source tree that was never installed has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("headwork")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
