"""Arrays of other libraries through DLPack."""

from primal.numpy import from_dlpack

__all__ = ["from_dlpack"]
