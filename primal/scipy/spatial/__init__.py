"""`primal.scipy.spatial`: geometry."""

from primal.scipy.spatial import transform

__all__ = ["transform"]
