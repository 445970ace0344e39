"""Rows of cumulative ops, convolutions and pooling."""

from __future__ import annotations

from typing import Any

from primal.ops.precision import Precision
from primal.ops.window.convolution import ConvDimensionNumbers
from tests.cases.case import (
    BF16,
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    FLOATS,
    I8,
    I32,
    INTEGERS,
    NUMBERS,
    Case,
    Wrong,
    X,
    shaped,
)

SUMMED = {"ulps": 16, "near": 8.0, "cause": "sums in another order"}
ORDER = {"cumsum": NUMBERS, "cumprod": NUMBERS, "cumlogsumexp": FLOATS}


def cumulative(op: str, axis: int, reverse: bool) -> Case:
    first = axis == 1 and not reverse
    dtypes = ORDER.get(op, (*FLOATS, *INTEGERS))
    return Case(
        op=op,
        name=f"along {axis}{', reversed' if reverse else ''}",
        operands=(X((3, 5), 0.5, 1.5, distinct=op in ("cummax", "cummin")),),
        also=(shaped((2, 0)), shaped((1, 1))) if first else (),
        params={"axis": axis, "reverse": reverse},
        dtypes=dtypes if first else (F32,),
        errors=(Wrong(shaped((3,)), ValueError, "out of bounds"),) if first else (),
        **SUMMED,
    )


def conv(name: str, lhs: Any, rhs: Any, **changes: Any) -> Case:
    rank = len(lhs) - 2
    same = tuple(range(len(lhs)))
    options = {k: changes.pop(k) for k in ("dtypes", "errors", "also", "order") if k in changes}
    params = {
        "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "dimension_numbers": ConvDimensionNumbers(same, same, same),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        **changes,
    }
    return Case(
        op="conv_general_dilated",
        name=name,
        operands=shaped(lhs, rhs),
        params=params,
        **{"dtypes": (F32,), **SUMMED, "near": 16.0, **options},
    )


def window(rank: int, **changes: Any) -> dict[str, Any]:
    return {
        "window_dimensions": (2,) * rank,
        "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "base_dilation": (1,) * rank,
        "window_dilation": (1,) * rank,
        **changes,
    }


WINDOWS = [
    ("plain", (4, 5), window(2)),
    ("strided", (5, 6), window(2, window_strides=(2, 3), padding=((1, 0), (0, 2)))),
    ("dilated", (4, 5), window(2, window_dilation=(2, 1), padding=((1, 1), (1, 0)))),
    ("spread", (3, 4), window(2, base_dilation=(2, 1), padding=((0, 1), (0, 0)))),
    ("whole", (3, 4), window(2, window_dimensions=(3, 4))),
    ("nothing", (1, 4), window(2)),
]
SIZES = {"plain": (3, 4), "strided": (3, 3), "dilated": (4, 5), "whole": (1, 1)}
ROWS = [
    *[
        cumulative(op, axis, reverse)
        for op in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for axis, reverse in ((1, False), (0, True), (1, True))
    ],
    *[
        Case(
            op="linear_recurrence",
            name=f"along {axis}{', reversed' if reverse else ''}{', late' if late else ''}",
            operands=(X((4, 5), -1.0, 1.0), X((4, 5))),
            also=(shaped((2, 0), (2, 0)), shaped((1, 1), (1, 1))) if axis == 1 else (),
            params={"axis": axis, "reverse": reverse, "late": late},
            dtypes=(*FLOATS, C64, C128),
            errors=(Wrong(shaped((3,), (3,)), ValueError, "expected an axis"),) if axis else (),
            **SUMMED,
        )
        for axis, reverse, late in ((1, False, False), (0, True, False), (1, True, True))
    ],
    Case(
        op="linear_recurrence", name="of bools", dtypes=(*FLOATS, C64, C128), **SUMMED,
        operands=(X((4, 5), dtype=BOOL), X((4, 5))),
        params={"axis": 1, "reverse": False, "late": False},
    ),
    *[
        Case(
            op=op, name="complex", operands=shaped((3, 5)), params={"axis": 1, "reverse": False},
            dtypes=(C64, C128),
        )
        for op in ("cummax", "cummin")
    ],
    *[
        Case(
            op=op, name="complex", operands=shaped((4, 5)), params=window(2), dtypes=(C64, C128),
            order=0,
        )
        for op in ("reduce_window_max", "reduce_window_min")
    ],
    conv(
        "one dimension",
        (2, 3, 6),
        (4, 3, 2),
        dtypes=(F32, BF16, F16, C64, F64, C128, I32),
        also=(shaped((0, 3, 6), (4, 3, 2)), shaped((1, 1, 2), (1, 1, 2))),
        errors=(
            Wrong(shaped((2, 3, 6), (4, 3)), ValueError, "equal rank"),
            Wrong(shaped((2, 3, 6), (4, 2, 2)), ValueError, "features"),
            Wrong((X((2, 3, 6)), X((4, 3, 2), dtype=I32)), TypeError, "one dtype"),
        ),
    ),
    conv("two dimensions", (2, 3, 5, 4), (2, 3, 2, 3), padding=((1, 1), (0, 2))),
    conv("strided", (1, 2, 7), (3, 2, 3), window_strides=(2,), padding=((1, 2),)),
    conv("dilated", (1, 2, 5), (3, 2, 2), lhs_dilation=(2,), rhs_dilation=(3,), padding=((2, 1),)),
    conv("feature groups", (1, 4, 5), (6, 2, 2), feature_group_count=2),
    conv("batch groups", (4, 2, 5), (6, 2, 2), batch_group_count=2),
    *[
        conv(f"in {what}", (2, 3, 6), (4, 3, 2), precision=(precision,) * 2)
        for what, precision in (("high", Precision.HIGH), ("highest", Precision.HIGHEST))
    ],
    conv("narrow to wide", (2, 3, 6), (4, 3, 2), preferred_element_type=F32, dtypes=(BF16, F16),
         order=1),
    conv("integers to wide", (2, 3, 6), (4, 3, 2), preferred_element_type=I32, dtypes=(I8,)),
    conv(
        "channels last",
        (2, 5, 3),
        (2, 3, 4),
        dimension_numbers=ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1)),
    ),
    *[
        Case(
            op=op,
            name=name,
            operands=(X(shape, distinct=op != "reduce_window_sum"),),
            params=params,
            dtypes=(*NUMBERS,)
            if name == "plain" and op == "reduce_window_sum"
            else (*FLOATS, *INTEGERS)
            if name == "plain"
            else (F32,),
            special=name == "plain",
            errors=(Wrong(shaped((4,)), (TypeError, ValueError), "expected"),)  # type: ignore[arg-type]
            if name == "plain"
            else (),
            **SUMMED,
        )
        for op in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
        for name, shape, params in WINDOWS
    ],
    *[
        Case(
            op="select_and_gather_add",
            name=f"{name}, {select}",
            operands=(X(shape), X(shape, distinct=True)),
            params={"select": select, **params},
            dtypes=(F32, F64, I32) if name == "plain" else (F32,),
        )
        for name, shape, params in WINDOWS
        for select in ("ge", "le")
    ],
    *[
        Case(
            op="select_and_scatter_add",
            name=f"{name}, {select}",
            operands=(X(SIZES[name]), X(shape, distinct=True)),
            params={"select": select, **params},
            dtypes=(F32, F64, I32) if name == "plain" else (F32,),
            **SUMMED,
        )
        for name, shape, params in WINDOWS
        for select in ("ge", "le")
        if name in SIZES
    ],
]
assert BOOL
