"""Ahead-of-time stages of a jitted function."""

from primal.api.stages import Compiled, Lowered, Traced

__all__ = ["Compiled", "Lowered", "Traced"]
