"""Dtypes: names, the 64-bit switch, the hierarchy, limits, promotion of what users pass.

A dtype is a `numpy.dtype` (`ml_dtypes` adds bfloat16, the floats of 4 to 8 bits and the integers
of 1, 2 and 4 bits) or a `KeyType`. A *weak* type is that of a Python scalar: it decides the kind
of a result (integer, float, complex) but not its width.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from primal.base import caches, source
from primal.base.config import config, settings
from primal.base.dtype_table import (
    FACTS,
    KIND,
    NARROW,
    DType,
    KeyType,
    all_dtypes,
    bfloat16,
    bool_,
    complex64,
    complex128,
    extended,
    float0,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    kind_of,
    mlir_name,
    physical_dtype,
    prng_key,
    short_name,
    to_complex_dtype,
    to_inexact_dtype,
    to_real_dtype,
    to_tangent_dtype,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsupported,
)
from primal.base.errors import UnhashableArgumentError
from primal.base.promotion import (
    TypePromotionError,
    lattice_result,
    promote_pair,
    wide_bound,
)

__all__ = [
    "DType",
    "KeyType",
    "TypePromotionError",
    "all_dtypes",
    "as_dtype",
    "bfloat16",
    "bool_",
    "can_cast",
    "canonicalize_dtype",
    "check_user_dtype_supported",
    "complex128",
    "complex64",
    "dtype_of",
    "extended",
    "float0",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "is_weak",
    "isdtype",
    "issubdtype",
    "itemsize_bits",
    "kind_of",
    "lattice_result",
    "mlir_name",
    "physical_dtype",
    "prng_key",
    "promote_pair",
    "promote_types",
    "python_scalar_dtype",
    "result_type",
    "scalar_type_of",
    "short_name",
    "to_complex_dtype",
    "to_inexact_dtype",
    "to_real_dtype",
    "to_tangent_dtype",
    "uint1",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
]

# --- dtype-like values -> dtypes ------------------------------------------------------------------

_resolved: dict[Any, DType] = {}
caches.register(_resolved.clear)


def as_dtype(dtype: Any) -> DType:
    """Return the dtype that a dtype-like value names, not canonicalised: `as_dtype(int)` is int64.

    Accepts dtypes, names, scalar types, Python types, None (float64), and objects with a `dtype`.
    Raises TypeError for anything else.

    >>> as_dtype("bfloat16"), as_dtype(complex)
    (dtype(bfloat16), dtype('complex128'))
    """
    try:
        return _resolved[dtype]
    except (KeyError, TypeError):
        pass  # a value not seen before, or an unhashable one: resolved below
    if isinstance(dtype, KeyType):
        return dtype
    inner = getattr(dtype, "__numpy_dtype__", None) or getattr(dtype, "dtype", None)
    if isinstance(inner, (np.dtype, KeyType)):
        return inner
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError) as e:
        kind = UnhashableArgumentError if isinstance(dtype, list | dict) else TypeError
        raise kind(f"[dtype] expected a dtype or its name, got {dtype!r}: {e}.") from None
    if found.byteorder not in "=|":
        found = found.newbyteorder("=")
    if isinstance(dtype, (np.dtype, type, str)) or dtype is None:
        _resolved[dtype] = found
    return found


# One table per setting of the switch: what a dtype-like value is under it. The settings carry the
# table that applies, so that a look-up chooses nothing.
_canonical: dict[bool, dict[Any, DType]] = {True: {}, False: {}}
for _table in _canonical.values():
    caches.register(_table.clear)
config.derive("canonical_dtypes", lambda now: _canonical[now["enable_x64"]])


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """Return the dtype that arrays have for this one: at most 32 bits a part without the switch.

    Raises ValueError for key types unless `allow_extended_dtype`, TypeError for what is no dtype.

    >>> canonicalize_dtype("float64"), canonicalize_dtype(int)
    (dtype('float32'), dtype('int32'))
    """
    now = settings()
    try:
        return now.canonical_dtypes[dtype]
    except (KeyError, TypeError):
        pass  # not seen before, or unhashable
    found = as_dtype(dtype)
    if isinstance(found, KeyType):
        if allow_extended_dtype:
            return found
        raise ValueError(
            f"[canonicalize_dtype] expected a dtype that NumPy knows, got {found}.\n"
            "Pass allow_extended_dtype=True where typed keys are meant to go through."
        )
    if not now.enable_x64:
        found = NARROW.get(found, found)
    if isinstance(dtype, (np.dtype, type, str)) or dtype is None:
        now.canonical_dtypes[dtype] = found
    return found


_SCALARS_32 = {bool: bool_, int: int32, float: float32, complex: complex64}
_SCALARS_64 = {bool: bool_, int: int64, float: float64, complex: complex128}


def python_scalar_dtype(scalar: Any) -> DType:
    """Return the dtype of a Python scalar or scalar type: int32, float32, complex64, or 64-bit.

    >>> python_scalar_dtype(3), python_scalar_dtype(float)
    (dtype('int32'), dtype('float32'))
    """
    table = _SCALARS_64 if settings().enable_x64 else _SCALARS_32
    kind = scalar if isinstance(scalar, type) else type(scalar)
    found = table.get(kind)
    if found is not None:
        return found
    for base in (bool, int, float, complex):  # enumerations and other subclasses
        if issubclass(kind, base) and not issubclass(kind, np.generic):
            return table[base]
    raise TypeError(
        f"[dtype] expected a Python scalar (bool, int, float, complex), got {scalar!r} "
        f"of type {kind.__name__}."
    )


def scalar_type_of(x: Any) -> type:
    """Return the Python type (bool, int, float, complex) of the elements of a value.

    Raises TypeError for other values.

    >>> scalar_type_of(np.int8(3))
    <class 'int'>
    """
    kind = KIND.get(_raw_dtype(x))
    try:
        return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind or ""]
    except KeyError:
        raise TypeError(f"[dtype] expected a numeric or boolean value, got {x!r}.") from None


def _raw_dtype(x: Any) -> DType:
    if type(x) in _SCALARS_32:
        return python_scalar_dtype(x)
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, (np.dtype, KeyType)):
        return dtype
    if isinstance(x, (bool, int, float, complex)):
        return python_scalar_dtype(x)
    raise TypeError(
        f"[dtype] expected an array or a scalar, got {_brief(x)} of type {type(x).__name__}.\n"
        "Lists and tuples must be made into arrays first, with numpy.array(...)."
    )


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def dtype_of(x: Any) -> DType:
    """Return the dtype that a value has, or would have as an array, under the 64-bit switch.

    Raises TypeError for values that are neither arrays nor scalars.

    >>> dtype_of(1.0), dtype_of(np.ones(2))
    (dtype('float32'), dtype('float32'))
    """
    return canonicalize_dtype(_raw_dtype(x), allow_extended_dtype=True)


def is_weak(x: Any) -> bool:
    """Return whether a value's type is weak, as Python ints, floats and complex numbers are.

    >>> is_weak(1), is_weak(True), is_weak(np.float32(1))
    (True, False, False)
    """
    kind = type(x)
    if kind is int or kind is float or kind is complex:
        return True
    weak = getattr(x, "weak_type", None)
    if weak is not None:
        return bool(weak)
    return isinstance(x, (int, float, complex)) and not isinstance(x, (bool, np.generic))


# --- facts of a dtype -----------------------------------------------------------------------------


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of one element; packed kinds count their true width.

    >>> itemsize_bits("int4"), itemsize_bits(bool)
    (4, 8)
    """
    found = as_dtype(dtype)
    if isinstance(found, KeyType):
        return found.itemsize * 8
    facts = FACTS.get(found)
    return facts[1] if facts is not None else found.itemsize * 8


# --- hierarchy ------------------------------------------------------------------------------------

_ABOVE = {
    "b": (np.generic, np.bool_),
    "i": (np.generic, np.number, np.integer, np.signedinteger),
    "u": (np.generic, np.number, np.integer, np.unsignedinteger),
    "f": (np.generic, np.number, np.inexact, np.floating),
    "c": (np.generic, np.number, np.inexact, np.complexfloating),
}
_subtype: dict[tuple[Any, Any], bool] = {}
caches.register(_subtype.clear)


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether dtype `a` equals `b` or lies below it in NumPy's hierarchy of scalar types.

    Small floats and integers count as `floating`, `signedinteger`, `unsignedinteger`; typed keys
    lie below `prng_key` and `extended`. Raises TypeError for NumPy's arrays.

    >>> issubdtype(bfloat16, np.floating), issubdtype("int4", np.integer)
    (True, True)
    >>> issubdtype(KeyType("threefry2x32"), prng_key)
    True
    """
    try:
        return _subtype[a, b]
    except (KeyError, TypeError):
        pass  # not seen before, or unhashable
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        raise TypeError("[issubdtype] expected dtypes, got an array. Give its dtype: x.dtype.")
    lower, upper = _scalar_class(a), _scalar_class(b)
    if isinstance(b, KeyType):
        result = a == b
    elif issubclass(lower, upper):
        result = True
    else:
        # ml_dtypes' scalar types hang directly below np.generic: place them by kind.
        kind = KIND.get(as_dtype(a)) if not _is_abstract(lower) else None
        result = kind is not None and upper in _ABOVE.get(kind, ())
    if all(isinstance(v, (np.dtype, type, str, KeyType)) for v in (a, b)):
        _subtype[a, b] = result
    return result


def _is_abstract(cls: type) -> bool:
    return cls in (
        np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
        np.floating, np.complexfloating, np.flexible, np.character, extended, prng_key,
    )  # fmt: skip


def _scalar_class(value: Any) -> type:
    if isinstance(value, type) and issubclass(value, np.generic):
        return value
    return as_dtype(value).type


_KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind: an array API name, a dtype, or a tuple of these.

    Raises ValueError for unknown names, TypeError for other values.

    >>> isdtype("bfloat16", ("real floating", "integral"))
    True
    """
    if isinstance(dtype, np.ndarray):
        _no_array("isdtype", dtype)
    found = as_dtype(dtype)
    for choice in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(choice, str) and choice in _KINDS:
            if KIND.get(found, "-") in _KINDS[choice]:
                return True
            continue
        named = isinstance(choice, (str, np.dtype, type, KeyType)) or hasattr(choice, "dtype")
        if not named or (isinstance(choice, type) and _is_abstract(choice)):
            raise TypeError(f"[isdtype] expected a dtype, string or tuple, got kind={choice!r}.")
        try:
            other = as_dtype(choice)
        except TypeError:
            raise ValueError(
                f"[isdtype] expected one of {list(_KINDS)} or a dtype, got kind={choice!r}."
            ) from None
        if other == found:
            return True
    return False


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Return whether values of one dtype can be cast to another under NumPy's casting rule.

    Raises TypeError for Python scalars, whose answer would depend on the value.

    >>> can_cast(int32, float64), can_cast(float32, int32, casting="unsafe")
    (True, True)
    """
    if isinstance(from_, (int, float, complex)) and not isinstance(from_, (bool, np.generic)):
        raise TypeError(
            f"[can_cast] expected a dtype or an array, got the Python scalar {from_!r}.\n"
            "Give its type, for example can_cast('int32', to)."
        )
    rules = ("no", "equiv", "safe", "same_kind", "unsafe")
    if casting not in rules:
        raise (ValueError if isinstance(casting, str) else TypeError)(
            f"[can_cast] expected casting to be one of {', '.join(map(repr, rules))}, "
            f"got {casting!r}."
        )
    if isinstance(to, np.ndarray):
        _no_array("can_cast", to)
    lower, upper = as_dtype(from_), as_dtype(to)
    if isinstance(lower, KeyType) or isinstance(upper, KeyType):
        return lower == upper
    return bool(np.can_cast(lower, upper, casting=casting))  # type: ignore[arg-type]


# --- dtypes that users ask for --------------------------------------------------------------------


def _no_array(what: str, dtype: Any) -> None:
    """UnhashableArgumentError for arrays: what has a dtype is not one."""
    if isinstance(dtype, np.ndarray) or hasattr(dtype, "aval"):
        raise UnhashableArgumentError(
            f"[{what}] expected a dtype, got an array of dtype {dtype.dtype}. Give its dtype: "
            "dtype=x.dtype."
        )


def check_user_dtype_supported(dtype: Any, fun_name: str) -> DType:
    """Return the dtype that arrays get for a requested one, with a warning if it is narrower.

    Python's `int`, `float` and `complex` name the default width and never warn. Raises TypeError
    for dtypes that arrays cannot have (strings, objects, dates, long doubles); ValueError in place
    of the warning where the setting `explicit_x64_dtypes` is 'error'.

    >>> check_user_dtype_supported("float32", "zeros")
    dtype('float32')
    """
    _no_array(fun_name, dtype)
    found = as_dtype(dtype)
    if found not in KIND:
        if isinstance(found, KeyType):
            return found
        kind = UnhashableArgumentError if isinstance(dtype, list | dict) else TypeError
        raise kind(unsupported(fun_name, dtype))
    if settings().enable_x64 or found not in NARROW:
        return found
    narrow = NARROW[found]
    if dtype is not int and dtype is not float and dtype is not complex and dtype is not None:
        remedy = (
            "To enable more dtypes, set the enable_x64 option: "
            "primal.config.update('enable_x64', True), or PRIMAL_ENABLE_X64=1 in the environment."
        )
        asked = f"Explicitly requested dtype {found.name} requested in {fun_name} is not available"
        if settings().explicit_x64_dtypes == "error":
            raise ValueError(f"[{fun_name}] expected a dtype of at most 32 bits: {asked}. {remedy}")
        warnings.warn(
            f"{asked}, and will be truncated to dtype {narrow.name}. {remedy}",
            UserWarning,
            stacklevel=source.user_stacklevel(),
        )
    return narrow


# --- promotion ------------------------------------------------------------------------------------


def promote_types(a: Any, b: Any) -> DType:
    """Return the least upper bound of two dtypes; 64 bits where one has them, or by the switch.

    Python's `int`, `float` and `complex` are weak. Raises TypePromotionError where there is none.

    >>> promote_types("int8", "uint8"), promote_types("bfloat16", "float16")
    (dtype('int16'), dtype('float32'))
    """
    for d in (a, b):
        if isinstance(d, np.ndarray):
            _no_array("promote_types", d)
    now = settings()
    first = as_dtype(a), a is int or a is float or a is complex
    second = as_dtype(b), b is int or b is float or b is complex
    return wide_bound(first, second, now.enable_x64, now.numpy_dtype_promotion == "strict")


def _operand(arg: Any) -> tuple[DType, bool]:
    if arg is int or arg is float or arg is complex:
        return python_scalar_dtype(arg), True
    if arg is None or isinstance(arg, (np.dtype, KeyType, type, str)):
        return as_dtype(arg), False
    return _raw_dtype(arg), is_weak(arg)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype of an expression over arrays, scalars and dtypes.

    The least upper bound in the promotion lattice, canonical under the 64-bit switch; with
    `return_weak_type_flag` the pair (dtype, weak). Raises TypePromotionError where there is none.

    >>> result_type(np.int32(1), 2.5, return_weak_type_flag=True)
    (dtype('float32'), True)
    >>> result_type("float16", 1.0)
    dtype('float16')
    """
    dtype, weak = lattice_result([_operand(arg) for arg in args])
    return (dtype, weak) if return_weak_type_flag else dtype


def is_narrow_float(dtype: DType) -> bool:
    """Whether arithmetic in the dtype loses too much: floats of at most 16 bits."""
    return dtype in _NARROW_FLOATS


_NARROW_FLOATS = frozenset(t for t in KIND if KIND[t] == "f" and itemsize_bits(t) <= 16)


def sums_dtype(*given: DType) -> DType:
    """The dtype of NumPy that holds sums of products of those dtypes.

    Sums of whole numbers wrap, so that the widest holds them whatever its sign: NumPy's answer
    for uint64 and int64 is float64, which has not their bits.

    >>> sums_dtype(np.dtype("int16"), bfloat16), sums_dtype(int4, uint4)
    (dtype('float32'), dtype('int32'))
    """
    native = [
        np.dtype(
            np.float32 if is_narrow_float(d)
            else np.int32 if d.kind == "V" and KIND[d] in "iu"
            else d
        )
        for d in given
    ]  # fmt: skip
    if all(d.kind in "iu" for d in native):
        return max(native, key=lambda d: d.itemsize)
    return np.result_type(*native)


_SCALAR_ORDER: dict[type, int] = {bool: 0, int: 1, float: 2, complex: 3}


def scalar_fits_kind(scalar_type: type, dtype: DType) -> bool:
    """Whether a Python scalar keeps its kind in the dtype: no float in an integer, say."""
    if isinstance(dtype, KeyType):
        return False
    return _SCALAR_ORDER[scalar_type] <= "biufc".replace("u", "").find(
        kind_of(dtype).replace("u", "i")
    )
