"""`primal.scipy.cluster`: clusters of points."""

from primal.scipy.cluster import vq

__all__ = ["vq"]
