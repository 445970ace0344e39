"""The reference engine: NumPy, op by op. It defines what every op means."""

from primal.engines.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
