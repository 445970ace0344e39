"""Dtypes and their promotion, as values: bfloat16, float8 and int4 kinds, `float0`."""

from primal.base import dtypes as _dtypes
from primal.base.dtypes import (
    TypePromotionError,
    can_cast,
    canonicalize_dtype,
    extended,
    float0,
    issubdtype,
    itemsize_bits,
    prng_key,
    promote_types,
    result_type,
    scalar_type_of,
)
from primal.base.limits import finfo, iinfo

bfloat16 = _dtypes.bfloat16.type
"""The type of bfloat16 scalars: bfloat16(1.5) is one."""

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "can_cast",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "promote_types",
    "result_type",
    "scalar_type_of",
]
