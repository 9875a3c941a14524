"""For other people's test suites: is this function attention?

from headwork.testing import assert_attention

def test_my_attention():
    assert_attention(my_attention)
"""

from collections.abc import Callable, Collection
from typing import Any

from headwork.errors import HeadworkError
from headwork.inspecting.corners import CORNERS
from headwork.inspecting.inspect import Inspection, inspect

# Corners on which everybody agrees; what a token without keys gives, and float16, are matters of taste.
REQUIRED = ("large scores", "more keys than tokens", "d_v is not d_k", "non-contiguous input", "inputs left alone")


def assert_attention(
    function: Callable[..., Any] | str, *, corners: Collection[str] = REQUIRED, seconds: float = 60.0
) -> Inspection:
    """Fail, with the mistake by name and a worked example, unless the function agrees with the formula.

    `corners` are the ones that must hold besides; see `headwork inspect` for all of them.
    """
    if unknown := [name for name in corners if name not in CORNERS]:
        raise HeadworkError(f"there is no corner {unknown[0]!r}; choose among: {', '.join(CORNERS)}")
    found = inspect(function, seconds=seconds)
    failed = [corner for corner in found.corners if corner.name in corners and not corner.holds]
    if not found.agrees or failed or found.why:
        raise AssertionError(str(found))
    return found
