"""How a product is computed: named algorithms, which stand for the dtypes of operands and sums."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from primal.base import dtypes
from primal.ir.trace import aval_of
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import reduce_precision

F16, F32, F64 = np.float16, np.float32, np.float64
BF16 = ml_dtypes.bfloat16
_F8 = (
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e4m3b11fnuz,
)  # fmt: skip


class DotAlgorithm(NamedTuple):
    """A way to compute products: dtypes operands are rounded to, dtype of sums, and parts.

    An operand of `component_count` parts is written as a sum of so many numbers of its dtype.

    >>> lax.DotAlgorithm(jnp.float32, jnp.float32, jnp.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: dtypes of lhs, rhs and sums; Xn splits operands into n products.

    They are an answer for `precision` of `dot` and `dot_general`.

    >>> lax.dot(jnp.ones((1, 2)), jnp.ones((2, 1)), precision=lax.DotAlgorithmPreset.BF16_BF16_F32)
    Array([[2.]], dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes that lhs may have; None where any."""
        return _OPERANDS.get(self.name)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes that rhs may have; None where any."""
        return _OPERANDS.get(self.name)

    @property
    def accumulation_type(self) -> Any:
        """The dtype of sums; None where it is the operands'."""
        parts = self.name.split("_")
        return _SUMS.get(parts[4 if parts[0] == "ANY" else 2]) if len(parts) > 2 else None

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """Dtypes that the result may have; None where any."""
        if self.name.startswith("ANY_F8_ANY_F8_F32"):
            return (F32, F16, BF16, *_F8)
        total = self.accumulation_type
        return None if total is None else (total,)


_SUMS: dict[str, Any] = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}
_OPERANDS: dict[str, tuple[Any, ...]] = {
    "F16_F16_F16": (F16,), "F16_F16_F32": (F16,), "BF16_BF16_BF16": (BF16, F32),
    "BF16_BF16_F32": (BF16, F32), "BF16_BF16_F32_X3": (F32,), "BF16_BF16_F32_X6": (F32,),
    "BF16_BF16_F32_X9": (F32,), "TF32_TF32_F32": (F32,), "TF32_TF32_F32_X3": (F32,),
    "F32_F32_F32": (F32,), "F64_F64_F64": (F64,),
}  # fmt: skip


def algorithm_of(precision: Any) -> DotAlgorithm | DotAlgorithmPreset | None:
    """The algorithm that a `precision` names; None if it names a Precision."""
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    return None


def rounded(x: Any, algorithm: Any, side: str) -> Any:
    """The operand as the algorithm reads it, and in the dtype that hardware multiplies fast."""
    if isinstance(algorithm, DotAlgorithm):
        parts = getattr(algorithm, f"{side}_component_count")
        wanted = np.dtype(getattr(algorithm, f"{side}_precision_type"))
    else:
        # Products of parts give float32's precision to within what their sums lose.
        parts = 3 if "_X" in algorithm.name else 1
        name = algorithm.name.split("_")[0]
        if name == "TF32" and parts == 1 and aval_of(x).dtype == F32:
            return reduce_precision(x, exponent_bits=8, mantissa_bits=10)
        wanted = np.dtype({"F16": F16, "BF16": BF16}.get(name, aval_of(x).dtype))
    own = aval_of(x).dtype
    narrower = dtypes.finfo(wanted).bits < dtypes.finfo(own).bits
    if parts > 1 or not narrower:
        return x
    return convert_element_type(x, new_dtype=wanted, weak_type=False)
