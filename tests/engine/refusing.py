"""A source that `MultiHead.load` must refuse."""

from typing import Any

import pytest

from headwork import MultiHead
from headwork.errors import HeadworkError


def refused(message: str, source: Any, **options: Any) -> None:
    with pytest.raises(HeadworkError) as error:
        MultiHead.load(source, **options)
    assert message in str(error.value)
    assert len(str(error.value)) < 4000
