"""Rows of dot_general."""

from typing import Any

from primal.ops.precision import DotAlgorithmPreset, Precision
from tests.cases.case import (
    BF16,
    C64,
    C128,
    F8,
    F16,
    F32,
    F64,
    I8,
    I32,
    U8,
    Case,
    Wrong,
    X,
    shaped,
)


def dot(
    name: str, lhs: Any, rhs: Any, contract: Any, batch: Any = ((), ()), **options: Any
) -> Case:
    preferred, precision = options.pop("preferred", None), options.pop("precision", None)
    return Case(
        op="dot_general",
        name=name,
        operands=shaped(lhs, rhs),
        params={
            "dimension_numbers": (contract, batch),
            "precision": precision,
            "preferred_element_type": preferred,
        },
        **{
            "dtypes": (F32,),
            "ulps": 8,
            "near": 8.0,
            "cause": "sums in another order",
            **options,
        },
    )


FEW = ((1,), (0,))
ROWS = [
    dot(
        "matrices",
        (2, 3),
        (3, 4),
        FEW,
        dtypes=(F32, BF16, F16, C64, F64, C128, I32, U8, F8),
        also=(
            shaped((0, 3), (3, 4)),
            shaped((2, 0), (0, 4)),
            shaped((1, 1), (1, 1)),
            shaped((2, 3), (3,)),
        ),
        special=True,
        errors=(
            Wrong(shaped((2, 3), (4, 3)), TypeError, "equal sizes"),
            Wrong((X((2, 3)), X((3, 2), dtype=I32)), TypeError, "one dtype"),
            Wrong(
                shaped((2, 3), (3, 2)),
                TypeError,
                "as many contracting",
                {"dimension_numbers": (((0, 1), (0,)), ((), ()))},
            ),
            Wrong(
                shaped((2, 3), (3, 2)),
                TypeError,
                "contracting dimensions of",
                {"dimension_numbers": (((2,), (0,)), ((), ()))},
            ),
            Wrong(
                shaped((2, 2), (2, 2)),
                TypeError,
                "at most once",
                {"dimension_numbers": (((1,), (0,)), ((1,), (0,)))},
            ),
        ),
    ),
    dot("inner", (3,), (3,), ((0,), (0,))),
    dot("outer", (2,), (3,), ((), ())),
    dot("scalars", (), (), ((), ())),
    dot("transposed", (3, 2), (4, 3), ((0,), (1,))),
    dot("batched", (5, 2, 3), (5, 3, 4), ((2,), (1,)), ((0,), (0,))),
    dot("batched inside", (2, 5, 3), (3, 4, 5), ((2,), (0,)), ((1,), (2,))),
    dot("two batches", (2, 5, 3), (5, 3, 2), ((), ()), ((0, 1), (2, 0))),
    dot("two contracted, crossed", (2, 3, 4), (4, 5, 3), ((1, 2), (2, 0))),
    dot("all contracted", (2, 3), (2, 3), ((0, 1), (0, 1))),
    *[
        dot(f"in {what}", (5, 2, 3), (5, 3, 4), ((2,), (1,)), ((0,), (0,)), precision=precision)
        for what, precision in (
            ("highest precision", (Precision.HIGHEST, Precision.HIGHEST)),
            ("precisions of two kinds", (Precision.DEFAULT, Precision.HIGH)),
            ("float32 by name", DotAlgorithmPreset.F32_F32_F32),
        )
    ],
    dot("narrow to wide", (2, 3), (3, 4), FEW, dtypes=(BF16, F16), preferred=F32, order=0 + 1),
    dot("integers to wide", (2, 3), (3, 4), FEW, dtypes=(I8, U8), preferred=I32),
]
