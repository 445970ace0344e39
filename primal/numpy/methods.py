"""Methods and properties of arrays, installed once on the class that arrays and tracers share."""

from __future__ import annotations

from typing import Any

from primal.numpy import operators


def install_methods(cls: Any) -> None:
    """Give the class of arrays its operators, methods and properties."""
    operators.install(cls)
