"""Modules loaded when first used, for what `import primal` need not wait for."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """Stands for a module until something of it is asked for.

    Written at module level, where the test of layers sees it as the import that it is.

    >>> fractions = Later("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as `__wrapped__`, for which tools ask everything
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__dict__["__name__"]), name)
        self.__dict__[name] = value
        return value
