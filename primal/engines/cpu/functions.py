"""Mathematical functions of floats as vector code."""

from __future__ import annotations

from collections.abc import Callable

from primal.engines.cpu.code import Code

FLOAT: dict[str, Callable[..., str]] = {}
"""word -> emitter(c, dtype, x)."""


def emit(c: Code, word: str, dtype: str, x: str) -> str:
    """The function of each lane."""
    return FLOAT[word](c, dtype, x)
