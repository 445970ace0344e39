"""`primal.scipy.optimize`: minima of smooth functions."""

from primal.scipy.optimize.minimizing import minimize
from primal.scipy.optimize.results import OptimizeResults

__all__ = ["OptimizeResults", "minimize"]
