"""`primal.scipy.sparse`: linear systems given by products."""

from primal.scipy.sparse import linalg

__all__ = ["linalg"]
