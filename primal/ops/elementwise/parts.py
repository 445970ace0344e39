"""Complex numbers and their parts; absolute values.

`grad` follows the C-linear convention: derivatives and transposes are not conjugated, so that
d(f∘g) = df·dg holds as written and transposing is the plain matrix transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtype_table import COMPLEX as COMPLEX_OF
from primal.base.dtype_table import REAL as REAL_OF
from primal.ir.op import Op
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise.arithmetic import div, eq, ge, mul, neg
from primal.ops.elementwise.choice import select_n
from primal.ops.elementwise.make import binary, instead_of, keeps_dtype, unary
from primal.ops.spread import broadcast_to
from primal.ops.types import is_linear, shape_of
from primal.ops.words import linear, unbroadcast

COMPLEX = (np.complexfloating,)
PARTS = (np.float32, np.float64)
_WITHOUT_IMAGINARY = frozenset(COMPLEX_OF) - frozenset(REAL_OF)


def _real_dtype(dtype: Any) -> Any:
    return REAL_OF.get(dtype, dtype)


def _zero(x: Any) -> Any:
    return literal(0, aval_of(x).dtype, False)


# The parts: Re, Im, and their inverse `complex`.

real = unary(
    "real",
    COMPLEX,
    np.real,  # views: nobody writes to arrays
    linear,
    "real",
    transpose=lambda ct, x: (complex(ct, _zero(ct)),),
    out=_real_dtype,
)
imag = unary(
    "imag",
    COMPLEX,
    np.imag,
    linear,
    "imag",
    # Im(x) = Re(-i·x), so its transpose is ct -> -i·ct.
    transpose=lambda ct, x: (complex(_zero(ct), neg(ct)),),
    out=_real_dtype,
)


def _complex_impl(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), COMPLEX_OF[x.dtype])
    out.real = x
    out.imag = y
    return out


def _complex_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    out = complex(*primals)
    if all(t is ZERO for t in tangents):
        return out, ZERO
    zero = literal(0, REAL_OF[aval_of(out).dtype], False)
    t = complex(*[zero if t is ZERO else t for t in tangents])
    return out, broadcast_to(t, shape_of(out))


def _complex_transpose(ct: Any, x: Any, y: Any) -> Any:
    return (
        unbroadcast(real(ct), x.shape) if is_linear(x) else None,
        unbroadcast(imag(neg(ct)), y.shape) if is_linear(y) else None,
    )


complex: Op = binary(
    "complex",
    PARTS,
    _complex_impl,
    _complex_jvp,
    "complex",
    transpose=_complex_transpose,
    out=lambda dtype: COMPLEX_OF[dtype],
)


# conj: x̄, always complex. It is real-linear; of a real operand the derivative stays real.


def _conj_impl(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x.astype(COMPLEX_OF[x.dtype])


def _conj_hlo(b: Any, x: Any) -> Any:
    if x.dtype in _WITHOUT_IMAGINARY:
        return b.complex(x, b.full_like(x, 0))
    return b.complex(b.real(x), b.negate(b.imag(x)))


conj: Op = unary(
    "conj",
    (*PARTS, *COMPLEX),
    _conj_impl,
    linear,
    _conj_hlo,
    transpose=lambda ct, x: (conj(ct) if x.dtype.kind == "c" else real(ct),),
    out=lambda dtype: COMPLEX_OF[dtype],
)


# abs: of complex numbers the modulus. The derivative at 0 is taken from the right for reals (1),
# and is 0 for complex numbers.


def _abs_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (x,), (t,) = primals, tangents
    out = abs(x)
    if aval_of(x).dtype in REAL_OF:
        # d|x| = Re(dx·conj(x)/|x|); not by `sign`, whose own derivative is zero.
        size = select_n(eq(out, _zero(out)), out, literal(1, aval_of(out).dtype))
        return out, real(mul(t, div(conj(x), complex(size, _zero(size)))))
    return out, select_n(ge(x, literal(0, aval_of(x).dtype)), neg(t), t)


_abs_exact = keeps_dtype(np.abs)

abs = unary(
    "abs",
    (np.signedinteger, np.floating, np.complexfloating),
    instead_of(np.abs, lambda x: np.abs(x) if x.dtype.kind in "fc" else _abs_exact(x)),
    _abs_jvp,
    lambda b, x: b.abs(x),
    out=_real_dtype,
)
