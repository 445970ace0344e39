"""How a product is computed: precisions, and algorithms, which name the dtypes of its sums."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.base.limits import finfo
from primal.ir.trace import aval_of
from primal.ops.choose import convert_element_type
from primal.ops.contract import dot_general
from primal.ops.elementwise import reduce_precision

F16, F32, F64 = np.float16, np.float32, np.float64
BF16 = ml_dtypes.bfloat16
_F8 = (
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e4m3b11fnuz,
)  # fmt: skip


Numbers = tuple[str, str, str, int, int, int, bool]
"""Dtypes of lhs, rhs and sums, parts of lhs and rhs, products; whether sums may be imprecise."""


class Precision(enum.Enum):
    """How exactly a matrix product is computed on hardware that has a choice.

    >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=Precision.HIGHEST)
    Array(3., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        """`Precision("high")`: the words that `precision=` takes are members, None is DEFAULT."""
        if value is None:
            return cls.DEFAULT
        return _WORDS.get(value) if isinstance(value, str) else None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Precision.{self.name}"


_WORDS = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
}  # fmt: skip


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

    @property
    def numbers(self) -> Numbers:
        """The algorithm as compilers name it: short names of dtypes, counts."""
        lhs, rhs, total = [dtypes.short_name(np.dtype(d)) for d in self[:3]]
        return (lhs, rhs, total, *self[3:6], bool(self[6]))


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

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

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

    @property
    def numbers(self) -> Numbers | None:
        """The algorithm as compilers name it; None where it depends on the operands."""
        lhs, *rest = self.name.lower().split("_")
        if len(rest) < 2 or lhs == "any":
            return None
        products = int(rest[2][1:]) if len(rest) > 2 else 1
        return lhs, rest[0], rest[1], 1, 1, products, False

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


_NAMED = frozenset([p.numbers for p in DotAlgorithmPreset])


def is_named(algorithm: DotAlgorithm | DotAlgorithmPreset) -> bool:
    """Whether it is one that compilers know; others they refuse."""
    return algorithm.numbers is not None and algorithm.numbers in _NAMED


_ORDER = (
    "bool", "uint2", "int2", "uint4", "int4", "uint8", "int8", "uint16", "int16", "uint32", "int32",
    "uint64", "int64", "float_", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


def _rank(dtype: Any) -> tuple[int, float]:
    """The place among dtypes from narrow to wide; narrow floats by the largest number they hold."""
    if dtypes.issubdtype(dtype, np.floating) and dtypes.itemsize_bits(dtype) <= 8:
        return _ORDER.index("float_"), float(finfo(dtype).max)
    return _ORDER.index(dtype.name) if dtype.name in _ORDER else len(_ORDER), 0.0


def later_dtype(one: Any, two: Any) -> Any:
    """The later of two dtypes from bool over integers to complex numbers, as products take them.

    Nothing is wider than both; jax.numpy's promotion would make float32 of bfloat16 and float16.
    TypeError for two floats of 8 bits whose largest numbers are equal.
    """
    if one == two:
        return one
    if _rank(one) == _rank(two):
        raise TypeError(
            f"[dot_general] expected operands of one dtype, or one wider than the other, got "
            f"{one.name} and {two.name}. Convert first."
        )
    return max(one, two, key=_rank)


def one_dtype(lhs: Any, rhs: Any, preferred: Any = None) -> list[Any]:
    """Operands of a product in one dtype, the later one.

    Where both differ and sums are in a dtype later than both, in that of the sums: neither
    is rounded to the other's.
    """
    one, two = aval_of(lhs).dtype, aval_of(rhs).dtype
    if one == two:
        return [lhs, rhs]
    dtype = later_dtype(one, two)
    if preferred is not None:
        dtype = max(dtype, preferred, key=_rank)
    return [
        x if aval_of(x).dtype == dtype
        else convert_element_type(x, new_dtype=dtype, weak_type=False)
        for x in (lhs, rhs)
    ]  # fmt: skip


def check_preferred(name: str, dtype: Any, preferred: Any, kinds: bool) -> None:
    """TypeError where sums of products of a dtype cannot be given in `preferred`.

    It must not be narrower, unless both are floats and not `kinds`. With `kinds`, integers may have
    sums that are integers or floats, other numbers sums of their own kind, signed ones signed sums.
    """
    if preferred is None or preferred == dtype:
        return
    is_ = dtypes.issubdtype
    kind = next((k for k in (np.integer, np.floating, np.complexfloating) if is_(dtype, k)), None)
    fits = is_(preferred, kind) or (kind is np.integer and is_(preferred, np.floating))
    if kinds and kind is not None:
        if not fits:
            raise TypeError(
                f"[{name}] expected a preferred_element_type of the kind of {dtype.name}, got "
                f"{preferred.name}: Input type is incompatible with `preferred_element_type`. "
                "Convert the result instead."
            )
        if is_(dtype, np.signedinteger) and is_(preferred, np.unsignedinteger):
            raise TypeError(
                f"[{name}] expected a preferred_element_type of the signedness of {dtype.name}, "
                f"got {preferred.name}. Convert the result instead."
            )
    # Convolutions are asked in bytes, so that integers of 8 bits may have sums of 4.
    narrower = (
        preferred.itemsize < dtype.itemsize if kinds else _bits(preferred) < _bits(dtype)
    )
    if narrower and kind is not None and (kinds or kind is not np.floating):
        raise TypeError(
            f"[{name}] expected preferred_element_type to be no narrower than {dtype.name}, got "
            f"{preferred.name}. Convert the result instead."
        )


def _bits(dtype: Any) -> int:
    """The size of a number, or of the parts of a complex one."""
    bits = 1 if dtype == np.bool_ else dtypes.itemsize_bits(dtype)
    return bits // 2 if dtypes.issubdtype(dtype, np.complexfloating) else bits


def canonical_precision(precision: Any) -> Any:
    """An algorithm, a pair of Precisions, or None; for None what the settings ask for.

    ValueError for what is neither an algorithm, a Precision nor the name of one.
    """
    if precision is None:
        precision = settings().default_matmul_precision
    if precision is None or isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    if not isinstance(precision, tuple | list):
        return (_precision(precision),) * 2
    if len(precision) != 2 or None in precision:
        raise ValueError(f"[precision] expected a pair of Precisions, got {precision!r}.")
    return _precision(precision[0]), _precision(precision[1])


def plain_precision(precision: Any) -> Any:
    """`canonical_precision` of what knows no algorithms: convolutions lose nothing for them."""
    found = canonical_precision(precision)
    if isinstance(found, DotAlgorithm | DotAlgorithmPreset):
        return (Precision.HIGHEST,) * 2
    return found


def _precision(precision: Any) -> Precision:
    found = _WORDS.get(precision) if isinstance(precision, str) else precision
    if not isinstance(found, Precision):
        raise ValueError(
            f"[precision] expected a Precision, one of {', '.join(_WORDS)}, a pair of these, or "
            f"a DotAlgorithm, got {precision!r}."
        )
    return found


def product(lhs: Any, rhs: Any, dims: Any, precision: Any, preferred: Any) -> Any:
    """`dot_general` of operands of one dtype by what the user says of its precision."""
    how = canonical_precision(precision)
    if not isinstance(how, DotAlgorithm | DotAlgorithmPreset):
        return dot_general(
            lhs, rhs, dimension_numbers=dims, precision=how, preferred_element_type=preferred
        )
    out = lhs.dtype if preferred is None else preferred
    sums = how.accumulation_type
    if how is not DotAlgorithmPreset.DEFAULT and dtypes.issubdtype(lhs.dtype, np.floating):
        lhs, rhs = one_dtype(_rounded(lhs, how, "lhs"), _rounded(rhs, how, "rhs"))
    floating = dtypes.issubdtype(out, np.floating)
    bits = 0 if sums is None or not floating else finfo(sums).bits
    given = 0 < bits <= max(32, finfo(out).bits)
    total = dot_general(
        lhs,
        rhs,
        dimension_numbers=dims,
        precision=how if is_named(how) else (Precision.HIGHEST,) * 2,
        preferred_element_type=np.dtype(sums) if given else out,
    )
    if total.dtype == out:
        return total
    return convert_element_type(total, new_dtype=out, weak_type=False)


def _rounded(x: Any, algorithm: Any, side: str) -> Any:
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
    narrower = finfo(wanted).bits < finfo(own).bits
    if parts > 1 or not narrower:
        return x
    return convert_element_type(x, new_dtype=wanted, weak_type=False)
