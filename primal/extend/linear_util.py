"""Functions under transformations, for libraries that are written with JAX's `linear_util`."""

from primal.api.wrapped import StoreException as StoreException
from primal.api.wrapped import WrappedFun as WrappedFun
from primal.api.wrapped import cache as cache
from primal.api.wrapped import merge_linear_aux as merge_linear_aux
from primal.api.wrapped import transformation as transformation
from primal.api.wrapped import transformation2 as transformation2
from primal.api.wrapped import transformation_with_aux as transformation_with_aux
from primal.api.wrapped import transformation_with_aux2 as transformation_with_aux2
from primal.api.wrapped import wrap_init as wrap_init

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
