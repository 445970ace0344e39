"""The dtypes and what is known of each: one table, from which every other fact follows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from primal.base.config import settings

DType: TypeAlias = (
    Any  # np.dtype | KeyType; numpy's stubs know no ml_dtypes, a union only adds casts
)


class extended(np.generic):
    """Scalar type above all dtypes that NumPy does not know.

    >>> jnp.issubdtype(random.key(0).dtype, primal.dtypes.extended)
    True
    """


class prng_key(extended):
    """Scalar type of typed random keys: `issubdtype(key.dtype, prng_key)`.

    >>> jnp.issubdtype(random.key(0).dtype, primal.dtypes.prng_key)
    True
    """


_KEY_TAGS = {"threefry2x32": "fry", "rbg": "rbg", "unsafe_rbg": "urbg"}


class KeyType:
    """The dtype of typed random keys of one generator; equal when the generators are.

    `physical` is the dtype in which engines hold one key. A threefry key is one uint64 of the same
    shape as the key array, so that structural operations (reshape, gather, ...) work on keys
    unchanged.

    >>> KeyType("threefry2x32", uint64)
    key<fry>
    """

    __slots__ = ("_hash", "impl", "itemsize", "name", "physical")
    type = prng_key
    kind = "k"
    isbuiltin = 0

    def __init__(self, impl: Hashable, physical: Any = "uint64") -> None:
        self.impl = impl
        self.physical = np.dtype(physical)
        self.itemsize = self.physical.itemsize
        impl_name = str(getattr(impl, "name", impl))
        self.name = f"key<{_KEY_TAGS.get(impl_name, impl_name)}>"
        self._hash = hash((KeyType, impl))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is KeyType and self.impl == other.impl)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyType, (self.impl, self.physical)


bool_ = np.dtype("bool")
int1, int2, int4 = map(np.dtype, (ml_dtypes.int1, ml_dtypes.int2, ml_dtypes.int4))
uint1, uint2, uint4 = map(np.dtype, (ml_dtypes.uint1, ml_dtypes.uint2, ml_dtypes.uint4))
int8, int16, int32, int64 = map(np.dtype, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(np.dtype, ("uint8", "uint16", "uint32", "uint64"))
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = np.dtype(ml_dtypes.float6_e3m2fn)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = map(np.dtype, ("float16", "float32", "float64"))
complex64, complex128 = map(np.dtype, ("complex64", "complex128"))
# The tangent type of integers, booleans and keys.
float0 = np.dtype([("float0", np.void, 0)])

# dtype -> (kind, bits, name in jaxprs, name in StableHLO); the one table from which the others
# follow.
SMALL_FLOATS = (
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz,
    float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip
FACTS: dict[Any, tuple[str, int, str, str]] = {
    bool_: ("b", 8, "bool", "i1"),
    bfloat16: ("f", 16, "bf16", "bf16"),
    float0: ("0", 0, "float0", "i1"),
}
for _d in (int1, int2, int4, int8, int16, int32, int64):
    _bits = int(_d.name[3:])
    FACTS[_d] = ("i", _bits, f"i{_bits}", f"i{_bits}")
for _d in (uint1, uint2, uint4, uint8, uint16, uint32, uint64):
    _bits = int(_d.name[4:])
    FACTS[_d] = ("u", _bits, f"u{_bits}", f"ui{_bits}")
for _d in (float16, float32, float64):
    FACTS[_d] = ("f", _d.itemsize * 8, f"f{_d.itemsize * 8}", f"f{_d.itemsize * 8}")
for _d in (complex64, complex128):
    FACTS[_d] = ("c", _d.itemsize * 8, f"c{_d.itemsize * 8}", f"complex<f{_d.itemsize * 4}>")
for _d in SMALL_FLOATS:
    _form = _d.name.removeprefix("float")  # 8_e4m3fn
    FACTS[_d] = ("f", int(_form[0]), f"f{_form}", f"f{_form.replace('_', '').upper()}")

all_dtypes: tuple[Any, ...] = tuple(d for d in FACTS if d is not float0)
KIND = {d: facts[0] for d, facts in FACTS.items()}
SHORT = {d: facts[2] for d, facts in FACTS.items()}
MLIR = {d: facts[3] for d, facts in FACTS.items()}
REAL = {complex64: float32, complex128: float64}
COMPLEX = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}
NARROW = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


def unsupported(where: str, dtype: Any) -> str:
    """Return the error text for a dtype that arrays cannot have, or that no operation takes."""
    if dtype == float0:
        return (
            f"[{where}] expected numbers, got float0, the tangents of what has none: float0s do "
            "not support any operations. numpy.zeros_like(x, dtype=float) makes zeros of them."
        )
    return (
        f"[{where}] expected a boolean, integer, float or complex dtype, got dtype {dtype}.\n"
        "Arrays hold numbers and booleans only."
    )


def kind_of(dtype: DType) -> str:
    """Return one letter: b bool, i signed, u unsigned, f float, c complex, k key, 0 float0.

    Raises TypeError for dtypes that arrays cannot have.
    """
    try:
        return KIND[dtype]
    except KeyError:
        if isinstance(dtype, KeyType):
            return "k"
        raise TypeError(unsupported("dtype", dtype)) from None


def short_name(dtype: DType) -> str:
    """Return the name used in jaxprs: f32, i32, u8, bf16, c64, bool, f8_e4m3fn, key<fry>.

    >>> short_name(float32), short_name(bool_), short_name(KeyType("threefry2x32"))
    ('f32', 'bool', 'key<fry>')
    """
    return SHORT.get(dtype) or str(dtype.name)


def mlir_name(dtype: DType) -> str:
    """Return the element type in StableHLO; typed keys are their physical dtype.

    >>> mlir_name(uint8), mlir_name(bool_), mlir_name(complex64), mlir_name(float8_e4m3fn)
    ('ui8', 'i1', 'complex<f32>', 'f8E4M3FN')
    """
    if isinstance(dtype, KeyType):
        dtype = dtype.physical
    try:
        return MLIR[dtype]
    except KeyError:
        raise TypeError(unsupported("dtype", dtype)) from None


def physical_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy dtype in which engines hold this one."""
    return dtype.physical if isinstance(dtype, KeyType) else dtype


def to_tangent_dtype(dtype: DType) -> DType:
    """Return the dtype of tangents: floats and complex keep theirs, all others have float0.

    >>> to_tangent_dtype(float32), to_tangent_dtype(int32) == float0
    (dtype('float32'), True)
    """
    return dtype if KIND.get(dtype) in ("f", "c") else float0


def to_real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real part: complex64 gives float32, real dtypes give themselves."""
    return REAL.get(dtype, dtype)


def to_complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype that holds this one: float64 and complex128 give complex128."""
    return COMPLEX.get(dtype, complex64)


def to_inexact_dtype(dtype: DType) -> DType:
    """Return the dtype of floating results: inexact dtypes stay, 64-bit integers get float64.

    Other integers and bool get float32, also with the 64-bit switch.
    """
    if KIND.get(dtype) in ("f", "c"):
        return dtype
    return float64 if dtype.itemsize == 8 and settings().enable_x64 else float32
