"""Rows of the reductions beside the sum."""

import numpy as np

from tests.cases.case import (
    BOOL,
    C64,
    COMPLEX,
    F32,
    FLOATS,
    I4,
    I8,
    I32,
    INTEGERS,
    NUMBERS,
    REAL,
    Case,
    Wrong,
    X,
    shaped,
)

WHERE = ((1,), (0, 2), (0, 1, 2), ())
ROWS = [
    *[
        Case(
            op=op,
            name=f"over {axes}",
            operands=(X((2, 3, 4), distinct=True),),
            also=(shaped((2, 0, 1)), shaped((1, 1, 1))),
            params={"axes": axes},
            dtypes=(*REAL, I4) if axes == (1,) else (F32,),
            special=axes == (1,),
            # Of nothing the extremum is infinite, which has no differences.
            tol=1e-6,
            errors=(Wrong(shaped((2,)), ValueError, "out of bounds"),) if axes == (1,) else (),
        )
        for op in ("reduce_max", "reduce_min")
        for axes in WHERE
    ],
    *[
        Case(
            op="reduce_prod",
            name=f"over {axes}",
            operands=(X((2, 3, 4), 0.5, 1.5),),
            also=(shaped((2, 0, 1)), shaped((1, 1, 1)), shaped((1, 5, 1))),
            params={"axes": axes},
            dtypes=NUMBERS if axes == (1,) else (F32,),
            ulps=16,
            near=1.0,
            cause="products in another order",
            special=axes == (1,),
            errors=(Wrong(shaped((2, 2)), TypeError, "dtype", dtype=BOOL),) if axes == (1,) else (),
        )
        for axes in WHERE
    ],
    *[
        Case(op=op, name="complex", operands=shaped((3, 4)), params={"axes": (1,)}, dtypes=COMPLEX)
        for op in ("reduce_max", "reduce_min")
    ],
    Case(
        op="reduce_prod",
        name="with zeros",
        operands=(X((2, 4), values=[[0, 1, 2, 3], [0, 2, 0, 4]]),),
        params={"axes": (1,)},
    ),
    *[
        Case(
            op=op,
            name=f"over {axes}",
            operands=(X((2, 3, 4), -9, 9),),
            also=(shaped((2, 0, 1)),),
            params={"axes": axes},
            dtypes=(*INTEGERS, BOOL, I4) if axes == (1,) else (I32, BOOL),
            errors=(Wrong(shaped((2, 2)), TypeError, "dtype", dtype=F32),) if axes == (1,) else (),
        )
        for op in ("reduce_and", "reduce_or", "reduce_xor")
        for axes in WHERE
    ],
    *[
        Case(
            op=op,
            name=f"over {axis}",
            operands=(X((2, 3, 4)),),
            params={"axes": (axis,), "index_dtype": to},
            dtypes=REAL if axis == 1 else (F32, I32),
            special=True,
            errors=()
            if axis != 1
            else (
                Wrong(shaped((2, 0)), ValueError, "something along the axis"),
                Wrong(shaped((2,)), ValueError, "out of bounds"),
                Wrong(shaped((2, 3)), TypeError, "dtype", dtype=C64),
                Wrong(shaped((2, 3)), TypeError, "index_dtype", {"index_dtype": F32}),
            ),
        )
        for op in ("argmax", "argmin")
        for axis, to in ((1, I32), (0, I8), (2, np.dtype(np.uint8)))
    ],
]
assert FLOATS and COMPLEX
