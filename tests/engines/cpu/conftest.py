"""What tests of the cpu engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from primal.base.config import flush_subnormals


@pytest.fixture
def subnormals() -> Iterator[None]:
    """Programs compute with numbers below the normal ones, as NumPy does."""
    with flush_subnormals(False):
        yield
