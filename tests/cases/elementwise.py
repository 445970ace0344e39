"""Rows of the elementwise room."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.dtypes import itemsize_bits
from primal.ir.op import registry
from primal.ops.elementwise import RoundingMethod
from primal.ops.elementwise.accuracy import AccuracyMode, Tolerance
from tests.cases.case import (
    ALL,
    BF16,
    BOOL,
    C64,
    C128,
    COMPLEX,
    F8,
    F16,
    F32,
    F64,
    FLOATS,
    I4,
    I8,
    I32,
    I64,
    INEXACT,
    INTEGERS,
    NUMBERS,
    REAL,
    SIGNED,
    U4,
    U8,
    U32,
    Case,
    Wrong,
    X,
    shaped,
)

WIDTH = {d: itemsize_bits(d) for d in (F32, I32, U8, F16, BF16, U4, I4, I8)}
MIXES = "operands of one dtype"
SHAPES = "shapes that broadcast"
RANKS = "equal rank"


def unary(
    op: str,
    dtypes: Any,
    low: float = -2.0,
    high: float = 2.0,
    refuses: Any = None,
    special: bool | None = None,
    **options: Any,
) -> Case:
    """A row for one operand: a matrix, nothing, one element, a scalar."""
    draw = {"low": low, "high": high}
    errors = options.pop("errors", ())
    if refuses is not None:
        errors = (*errors, Wrong(shaped((2,)), TypeError, "dtype", dtype=refuses))
    return Case(
        op=op,
        operands=shaped((2, 3), **draw),
        also=(shaped((0, 3), **draw), shaped((1, 1), **draw), shaped((), **draw)),
        dtypes=dtypes,
        special=F32 in dtypes if special is None else special,
        errors=errors,
        **options,
    )


def binary(
    op: str,
    dtypes: Any,
    low: float = -2.0,
    high: float = 2.0,
    refuses: Any = None,
    second: tuple[float, float] | None = None,
    mixes: bool = True,
    special: bool | None = None,
    **options: Any,
) -> Case:
    """A row for two operands: equal shapes, scalars, sizes of 1, nothing."""
    low2, high2 = second or (low, high)

    def pair(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[X, X]:
        return X(a, low, high), X(b, low2, high2)

    good = dtypes[0]
    errors = [
        Wrong(shaped((2, 3), (4, 3)), TypeError, SHAPES, dtype=good),
        Wrong(shaped((2, 3), (3,)), TypeError, RANKS, dtype=good),
    ]
    if mixes:
        other = I32 if good != I32 else U8
        errors.append(Wrong((X((2,), dtype=good), X((2,), dtype=other)), TypeError, MIXES))
    if refuses is not None:
        errors.append(Wrong(shaped((2,), (2,)), TypeError, "dtype", dtype=refuses))
    return Case(
        op=op,
        operands=pair((2, 3), (2, 3)),
        also=(
            pair((), (2, 3)),
            pair((2, 3), ()),
            pair((2, 1), (1, 3)),
            pair((0, 3), (1, 3)),
            pair((), ()),
        ),
        dtypes=dtypes,
        special=F32 in dtypes if special is None else special,
        errors=tuple(errors),
        **options,
    )


# XLA expands these from exp, log and rational approximations of its own; NumPy asks libm or its
# SIMD loops. Each is within a few units of the exact value, on either side of it.
APPROX: dict[str, Any] = {"ulps": 8, "cause": "two approximations of one function"}
# The result passes through 0, where what is left of a sum of order 1 cancels.
CROSSING: dict[str, Any] = {**APPROX, "near": 1.0}

ROWS = [
    unary("neg", (*NUMBERS, F8, I4), refuses=BOOL),
    binary("add", (*NUMBERS, F8, I4, U4), refuses=BOOL),
    binary("add_any", NUMBERS, refuses=BOOL),
    binary("sub", (*NUMBERS, F8), refuses=BOOL),
    # Complex products: XLA contracts a·b - c·d into a fused multiply-add.
    binary("mul", (*NUMBERS, F8), refuses=BOOL, ulps=2, near=4.0, cause="fused multiply-add"),
    binary("div", INEXACT, second=(0.5, 2), refuses=BOOL, ulps=4, cause="complex quotients"),
    Case(
        op="div",
        name="integers",
        operands=(X((9,), -9, 9), X((9,), 1, 4)),
        also=((X((3,), values=[7, 1, 0]), X((3,), values=[0, 0, 0])),),
        dtypes=(*INTEGERS, I4),
    ),
    *[binary(op, (*ALL, I4), order=2) for op in ("eq", "ne")],
    *[binary(op, REAL, refuses=C64) for op in ("lt", "le", "gt", "ge")],
    *[
        unary(
            "integer_pow",
            NUMBERS if y >= 0 else INEXACT,
            0.5,
            2,
            refuses=BOOL,
            name=f"to {y}",
            params={"y": y},
            ulps=8 if abs(y) > 2 else 4,
            cause="products in another order",
            errors=() if y >= 0 else (Wrong((X((2,)),), TypeError, "non-negative", dtype=I32),),
        )
        for y in (0, 1, 2, 3, 7, -1, -3)
    ],
    unary("square", NUMBERS, refuses=BOOL, ulps=2, near=4.0, cause="fused multiply-add"),
    unary("sign", (*FLOATS, *INTEGERS), refuses=BOOL),
    # Its derivative is zero by definition here, as in JAX, though x/|x| turns with x.
    unary(
        "sign",
        COMPLEX,
        name="complex",
        order=1,
        tol=np.inf,
        ulps=4,
        cause="square roots",
        special=False,
    ),
    *[binary(op, (*INTEGERS, BOOL, I4), refuses=F32) for op in ("and", "or", "xor")],
    unary("not", (*INTEGERS, BOOL, U4), -9, 9, refuses=F32),
    *[
        binary(op, (*INTEGERS, I4), -9, 9, second=(0, 3), refuses=F32)
        for op in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    ],
    *[
        Case(
            op=op,
            name="beyond the width",
            operands=(X((3,), -9, 9), X((3,), values=[8, 33, 70])),
            dtypes=(I8, I32, U32, I64),
        )
        for op in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    ],
    *[unary(op, (*INTEGERS, U4), -99, 99, refuses=F32) for op in ("population_count", "clz")],
    *[binary(op, (*REAL, F8, I4)) for op in ("max", "min")],
    # Of complex numbers the real parts decide.
    *[
        Case(op=op, name="complex", operands=shaped((2, 3), (2, 3)), dtypes=COMPLEX)
        for op in ("max", "min")
    ],
    Case(
        op="clamp",
        name="complex",
        operands=(X((2, 3), -1, -0.5), X(), X((2, 3), 0.5, 1)),
        also=((X((), -1, -0.5), X(), X((), 0.5, 1)), (X((2, 3), distinct=True), X(), X())),
        dtypes=COMPLEX,
    ),
    *[unary(op, COMPLEX, refuses=F32, special=False) for op in ("real", "imag")],
    binary("complex", (F32, F64), refuses=I32, special=False),
    unary("conj", (F32, F64, *COMPLEX), refuses=I32, special=False),
    unary("abs", (*INEXACT, *SIGNED), refuses=U8, ulps=4, cause="hypot of complex parts"),
    *[unary(op, FLOATS, refuses=I32) for op in ("floor", "ceil", "is_finite")],
    binary(
        "rem", (*FLOATS, *INTEGERS), second=(0.5, 3), refuses=C64, ulps=2, near=2.0, cause="fmod"
    ),
    Case(
        op="rem",
        name="integers",
        operands=(X((9,), -9, 9), X((9,), 1, 4)),
        also=((X((3,), values=[7, 1, 0]), X((3,), values=[0, 0, 0])),),
        dtypes=(*INTEGERS, I4),
    ),
    *[
        unary("round", FLOATS, -3, 3, refuses=I32, name=m.name, params={"rounding_method": m})
        for m in RoundingMethod
    ],
    Case(
        op="round",
        name="halves",
        operands=(X((6,), values=[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]),),
        params={"rounding_method": RoundingMethod.AWAY_FROM_ZERO},
        order=1,
        tol=np.inf,
    ),
    binary("nextafter", (F32, F64, F16, BF16), refuses=I32, order=0),
    *[
        Case(
            op="reduce_precision",
            name=f"to {exponent} and {mantissa} bits",
            params={"exponent_bits": exponent, "mantissa_bits": mantissa},
            dtypes=FLOATS,
            special=True,
            order=1,
            tol=np.inf,
            exact=0.1,
        )
        for exponent, mantissa in ((5, 10), (8, 7), (11, 52), (3, 4))
    ],
    unary(
        "reduce_precision",
        FLOATS,
        refuses=I32,
        params={"exponent_bits": 4, "mantissa_bits": 3},
        # Tangents are rounded too, so it is linear up to rounding only.
        order=1,
        tol=np.inf,
        exact=0.1,
    ),
    unary("exp", INEXACT, refuses=I32, **APPROX),
    unary("exp2", INEXACT, refuses=I32, **APPROX),
    unary("log", FLOATS, 0.1, 3, refuses=I32, **CROSSING),
    unary("log", COMPLEX, 0.1, 3, name="complex", special=False, **CROSSING),
    unary("expm1", INEXACT, refuses=I32, **CROSSING),
    unary("log1p", INEXACT, -0.5, 2, refuses=I32, **CROSSING),
    unary("logistic", INEXACT, refuses=I32, **APPROX),
    unary("sqrt", INEXACT, 0.1, 3, refuses=I32, **APPROX),
    unary("rsqrt", INEXACT, 0.1, 3, refuses=I32, **APPROX),
    unary("cbrt", FLOATS, 0.1, 3, refuses=C64, **APPROX),
    *[unary(op, INEXACT, refuses=I32, **CROSSING) for op in ("sin", "cos")],
    unary("tan", INEXACT, -1, 1, refuses=I32, **CROSSING),
    *[
        unary(
            "accurate",
            FLOATS,
            0.1,
            1,
            refuses=I32,
            name=fun,
            says=fun,
            params={"fun": registry[fun], "accuracy": accuracy},
            **CROSSING,
        )
        for fun, accuracy in (
            *[(f, AccuracyMode.HIGHEST) for f in ("exp", "exp2", "log", "tan", "logistic", "tanh")],
            *[(f, Tolerance(rtol=1e-6)) for f in ("expm1", "log1p", "sqrt", "rsqrt", "cbrt")],
            ("sin", Tolerance(atol=1e-3, rtol=1e-5, ulps=2)),
            ("cos", AccuracyMode.DEFAULT),
        )
    ],
    *[unary(op, INEXACT, -0.9, 0.9, refuses=I32, **CROSSING) for op in ("asin", "acos", "atanh")],
    unary("atan", INEXACT, -0.9, 0.9, refuses=I32, **CROSSING),
    binary("atan2", FLOATS, 0.2, 2, refuses=I32, **CROSSING),
    Case(
        op="atan2", name="complex", operands=shaped((2, 3), (2, 3), low=0.4), dtypes=COMPLEX,
        **CROSSING,
    ),
    Case(
        op="accurate",
        name="complex",
        params={"fun": registry["exp"], "accuracy": AccuracyMode.HIGHEST},
        dtypes=COMPLEX,
        **CROSSING,
    ),
    *[unary(op, INEXACT, refuses=I32, **CROSSING) for op in ("sinh", "cosh")],
    unary("tanh", INEXACT, -1, 1, refuses=I32, **CROSSING),
    unary("asinh", INEXACT, -0.9, 0.9, refuses=I32, **CROSSING),
    unary("acosh", INEXACT, 1.2, 3, refuses=I32, **CROSSING),
    binary("pow", INEXACT, 0.3, 2, second=(-2, 2), refuses=I32, mixes=False, **APPROX),
    Case(
        op="pow",
        name="integer exponent",
        operands=(X((2, 3), -2, 2), X((2, 3), -3, 3, dtype=I32)),
        also=((X((2,)), X((2,), values=[0, 0], dtype=I32)), (X((2, 3), 1, 2), X((), dtype=I32))),
        dtypes=(F32, F64, C64, C128),
        **{**CROSSING, "ulps": 16},
    ),
    # Several dtypes at once.
    Case(
        op="select_n",
        operands=(X((2, 3), dtype=BOOL), X(), X()),
        also=(
            (X((), dtype=BOOL), X(), X()),
            (X((), dtype=BOOL), X(()), X(())),
            (X((2, 3), dtype=BOOL), X(()), X((1, 3))),
            (X((0,), dtype=BOOL), X((0,)), X((0,))),
            (X((2, 3), dtype=BOOL), X()),
        ),
        dtypes=(*ALL, I4),
        errors=(
            Wrong((X(dtype=F32), X(), X()), TypeError, "`which`"),
            Wrong((X(dtype=BOOL), X(), X(), X()), TypeError, "at most 2"),
            Wrong((X(dtype=BOOL), X(dtype=I32), X()), TypeError, "one dtype"),
            Wrong((X((3,), dtype=BOOL), X((2,)), X((2,))), TypeError, "broadcast"),
            Wrong((X(dtype=BOOL),), TypeError, "at least one case"),
        ),
    ),
    Case(
        op="select_n",
        name="of three",
        operands=(X((2, 3), -1, 4, dtype=I32), X(), X(), X()),
        also=((X((), 2, 2, dtype=I32), X(), X(), X()),),
        dtypes=(F32, C64, I32),
    ),
    Case(
        op="clamp",
        operands=(X((2, 3), -1, -0.5), X(), X((2, 3), 0.5, 1)),
        also=(
            (X((), -1, -0.5), X(), X((), 0.5, 1)),
            (X((2, 3), -1, -0.5), X(), X((), 0.5, 1)),
            (X((), -1, -1), X((0,)), X((), 1, 1)),
            (X((), -1, -1), X(()), X((), 1, 1)),
            (X(), X(), X()),
        ),
        dtypes=(*FLOATS, *SIGNED),
        special=True,
        errors=(Wrong((X((), dtype=I32), X(), X(())), TypeError, "one dtype"),),
    ),
    *[
        Case(
            op="convert_element_type",
            name=f"to {to.name}",
            operands=(X(),),
            also=((X((0,)),), (X(()),)),
            params={"new_dtype": to, "weak_type": False},
            dtypes=tuple(d for d in (F32, BF16, C64, I32, U8, BOOL, F16, F8, I4) if to != d),
            order=1,
            # Differences of rounded results say nothing.
            tol=np.inf,
            exact=0.1,
        )
        for to in (F32, BF16, F16, C64, I32, U8, U32, BOOL, F8, I4, I8)
    ],
    Case(
        op="convert_element_type",
        name="saturates",
        operands=(X((5,), values=[np.nan, np.inf, -np.inf, 1e30, -1e30]),),
        params={"new_dtype": I32, "weak_type": False},
        dtypes=(F32,),
    ),
    Case(
        op="convert_element_type",
        name="weakly",
        params={"new_dtype": F32, "weak_type": True},
        dtypes=(F32, I32, BF16),
        order=1,
        tol=np.inf,
        exact=0.1,
    ),
    Case(
        op="convert_element_type",
        name="to float64",
        params={"new_dtype": F64, "weak_type": False},
        dtypes=(F64, I64, C128),
    ),
    unary("copy", (*ALL, F8, I4)),
    # Its derivative is zero by its meaning, which differences do not know.
    unary("stop_gradient", (*ALL, F8, I4), order=1, tol=np.inf),
    *[
        Case(
            op="bitcast_convert_type",
            name=f"{a.name} to {b.name}",
            operands=(X((3, WIDTH[b] // WIDTH[a]) if WIDTH[b] > WIDTH[a] else (2, 3)),),
            params={"new_dtype": b},
            dtypes=(a,),
            order=1,
            tol=np.inf,
            errors=()
            if a != F32 or b != I32
            else (
                Wrong((X(),), TypeError, "integer or floating", dtype=C64),
                Wrong((X((3,)),), ValueError, "last dimension", {"new_dtype": F64}),
            ),
        )
        for a, b in [(F32, I32), (I32, F32), (F32, U8), (U8, F32), (F16, BF16), (U8, U4), (I4, I8)]
    ],
]
