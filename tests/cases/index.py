"""Rows of gather, scatters, dynamic slices, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ops.elementwise import mul
from primal.ops.index.numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from primal.transforms.stage import stage
from tests.cases.case import (
    ALL,
    BOOL,
    C64,
    C128,
    F8,
    F32,
    I4,
    I8,
    I32,
    I64,
    REAL,
    U8,
    Case,
    Wrong,
    X,
)

MODES = GatherScatterMode
INSIDE, OUTSIDE = [[0], [2], [2]], [[-1], [2], [9]]


def starts(values: Any, dtype: Any = I32) -> X:
    return X(np.shape(values), values=values, dtype=dtype)


# name, operand, start vectors, offset dims, collapsed, start map, sizes, batching
READS = [
    ("rows", (4, 3), INSIDE, (1,), (0,), (0,), (1, 3), ((), ())),
    ("windows", (4, 5), [[0, 1], [2, 2]], (1, 2), (), (0, 1), (2, 3), ((), ())),
    ("columns", (3, 4), [[3], [0]], (0,), (1,), (1,), (3, 1), ((), ())),
    ("points", (4, 5), [[[0, 1], [3, 4]], [[2, 2], [1, 0]]], (), (0, 1), (0, 1), (1, 1), ((), ())),
    ("swapped starts", (4, 5), [[4, 0], [1, 3]], (), (0, 1), (1, 0), (1, 1), ((), ())),
    ("batched", (2, 4, 3), [[[0], [3]], [[1], [1]]], (2,), (1,), (1,), (1, 1, 3), ((0,), (0,))),
    ("once", (4, 3), [2], (0,), (0,), (0,), (1, 3), ((), ())),
    ("nothing", (4, 3), np.zeros((0, 1)), (1,), (0,), (0,), (1, 3), ((), ())),
    ("window in front", (4, 3), INSIDE, (0,), (0,), (0,), (1, 3), ((), ())),
]


def _read_params(row: Any, mode: Any, fill: Any = None) -> dict[str, Any]:
    _, _, _, offset, collapsed, mapped, sizes, batching = row
    return {
        "dimension_numbers": GatherDimensionNumbers(offset, collapsed, mapped, *batching),
        "slice_sizes": sizes,
        "indices_are_sorted": False,
        "unique_indices": False,
        "mode": mode,
        "fill_value": fill,
    }


def _write_params(row: Any, mode: Any, unique: bool = False) -> dict[str, Any]:
    _, _, _, offset, collapsed, mapped, _, batching = row
    return {
        "dimension_numbers": ScatterDimensionNumbers(offset, collapsed, mapped, *batching),
        "indices_are_sorted": False,
        "unique_indices": unique,
        "mode": mode,
    }


def _written(row: Any) -> tuple[int, ...]:
    """The shape of the result of the gather, which is that of a scatter's updates."""
    _, shape, at, offset, collapsed, mapped, sizes, (batching, _) = row
    windows = [n for d, n in enumerate(sizes) if d not in collapsed and d not in batching]
    lead = list(np.shape(at)[:-1])
    rank = len(windows) + len(lead)
    out: list[int] = []
    for d in range(rank):
        out.append(windows.pop(0) if d in offset else lead.pop(0))
    return tuple(out)


def _with_starts(row: Any, at: Any) -> Any:
    return (row[0], row[1], at, *row[3:])


ROW = READS[0]
DISTINCT = _with_starts(ROW, [[3], [0], [2]])
ADDED = {"ulps": 4, "near": 4.0, "cause": "sums in another order"}


def _applied(dtype: Any) -> Any:
    return stage(lambda x: [mul(x, x)], [Aval((), dtype)], "square")


WRITES = [f"scatter{how}" for how in ("", "-add", "-sub", "-mul", "-min", "-max", "-apply")]
SORTED = {"is_stable": True, "num_keys": 1}
ROWS = [
    *[
        Case(
            op="gather",
            name=row[0],
            operands=(X(row[1]), starts(row[2])),
            params=_read_params(row, MODES.CLIP),
            dtypes=(*ALL, F8, I4) if row is ROW else (F32,),
        )
        for row in READS
    ],
    *[
        Case(
            op="gather",
            name=f"outside, {mode.name}, {dtype.name}",
            operands=(X(ROW[1]), starts(OUTSIDE if dtype != U8 else [[1], [2], [9]], dtype)),
            params=_read_params(ROW, mode, fill),
            dtypes=(F32, I32, C64) if fill is None else (F32,),
            # Filled with nan, which has no differences.
            tol=1e-6 if mode is not MODES.FILL_OR_DROP or fill is not None else np.inf,
            order=2 if mode is not MODES.FILL_OR_DROP or fill is not None else 1,
        )
        for mode, dtype, fill in [
            (MODES.CLIP, I32, None),
            (MODES.CLIP, U8, None),
            (MODES.FILL_OR_DROP, I32, None),
            (MODES.FILL_OR_DROP, I8, 7),
            (MODES.FILL_OR_DROP, I64, 7),
            (MODES.ONE_HOT, I32, None),
        ]
    ],
    Case(
        op="gather",
        name="refused",
        operands=(X(ROW[1]), starts(INSIDE)),
        params=_read_params(ROW, MODES.CLIP),
        errors=(
            Wrong((X((4, 3)), X((3, 1))), ValueError, "integer"),
            Wrong((X((4,)), starts(INSIDE)), TypeError, "expected"),
            Wrong((X((4, 3)), starts(INSIDE)), TypeError, "sizes", {"slice_sizes": (2, 3)}),
            Wrong((X((4, 3)), starts(INSIDE)), TypeError, "sizes", {"slice_sizes": (1, 9)}),
            Wrong((X((4, 3)), starts(INSIDE)), TypeError, "slice size per", {"slice_sizes": (1,)}),
        ),
    ),
    *[
        Case(
            op=op,
            name=row[0],
            operands=(X(row[1]), starts(row[2]), X(_written(row))),
            params=_write_params(row, MODES.FILL_OR_DROP),
            dtypes=(F32, C64, I32) if row is ROW else (F32,),
            **ADDED,
        )
        for op in ("scatter-add", "scatter-sub")
        for row in READS
    ],
    *[
        Case(
            op="scatter",
            name=row[0],
            operands=(X(row[1]), starts(row[2]), X(_written(row))),
            params=_write_params(row, MODES.FILL_OR_DROP, unique=row not in (ROW, READS[5])),
            dtypes=(*ALL, F8, I4) if row is ROW else (F32,),
        )
        for row in (ROW, DISTINCT, *READS[1:4], *READS[5:8])
        if row is not DISTINCT
    ],
    *[
        Case(
            op=op,
            name=f"outside, {mode.name}",
            operands=(X(ROW[1]), starts([[-1], [2], [9]]), X((3, 3))),
            params=_write_params(ROW, mode),
            **ADDED,
        )
        for op in ("scatter-add", "scatter")
        for mode in (MODES.CLIP, MODES.FILL_OR_DROP)
    ],
    Case(
        op="scatter-mul",
        operands=(X(ROW[1]), starts(DISTINCT[2]), X((3, 3), 0.5, 2)),
        params=_write_params(ROW, MODES.FILL_OR_DROP, unique=True),
        dtypes=(F32, C64, I32),
        ulps=4,
        near=4.0,
        cause="fused multiply-add",
    ),
    Case(
        op="scatter-mul",
        name="meeting",
        operands=(X(ROW[1]), starts(INSIDE), X((3, 3), 0.5, 2)),
        params=_write_params(ROW, MODES.FILL_OR_DROP),
        wide=(0,),
        ulps=4,
        near=4.0,
        cause="products in another order",
    ),
    *[
        Case(
            op=op,
            operands=(X(ROW[1], distinct=True), starts(INSIDE), X((3, 3), -1.9, 1.9)),
            params=_write_params(ROW, MODES.FILL_OR_DROP),
            dtypes=(*REAL, I4),
        )
        for op in ("scatter-min", "scatter-max")
    ],
    *[
        Case(
            op=op,
            name=row[0],
            operands=(X(row[1], distinct=True), starts(row[2]), X(_written(row), 0.5, 1.9)),
            params=_write_params(row, MODES.FILL_OR_DROP),
            # The derivative by factors that meet is a quotient, which scatter-mul does not have.
            wide=(0,) if op == "scatter-mul" else None,
            **ADDED,
        )
        for op in ("scatter-mul", "scatter-min", "scatter-max")
        for row in READS[1:]
    ],
    *[
        Case(
            op=op,
            name=f"{name}, {mode.name}",
            operands=(X(ROW[1], distinct=True), starts(at), X((3, 3), 0.5, 1.9)),
            params=lambda dtype, op=op, mode=mode, ordered=ordered: {
                **_write_params(ROW, mode, unique=ordered),
                "indices_are_sorted": ordered,
                **({"jaxpr": _applied(dtype)} if op == "scatter-apply" else {}),
            },
            wide=(0,) if op == "scatter-mul" and not ordered else None,
            order=0 if op == "scatter-apply" else 2,
            **ADDED,
        )
        for op in WRITES
        for name, at, mode, ordered in (
            ("beyond", [[-1], [2], [9]], MODES.CLIP, False),
            ("beyond", [[-1], [2], [9]], MODES.ONE_HOT, False),
            ("in order", [[0], [2], [3]], MODES.PROMISE_IN_BOUNDS, True),
        )
    ],
    Case(
        op="scatter-apply",
        name="windows",
        operands=(X(READS[1][1]), starts([[0, 0], [2, 2]]), X(_written(READS[1]))),
        params=lambda dtype: {
            **_write_params(READS[1], MODES.FILL_OR_DROP), "jaxpr": _applied(dtype)
        },
        order=0,
    ),
    *[
        Case(
            op=op,
            name="complex",
            operands=(X(ROW[1]), starts(DISTINCT[2]), X((3, 3))),
            params=_write_params(ROW, MODES.FILL_OR_DROP, unique=True),
            dtypes=(C64, C128),
        )
        for op in ("scatter-min", "scatter-max")
    ],
    Case(
        op="gather",
        name="in order",
        operands=(X(ROW[1]), starts([[0], [2], [3]])),
        params={
            **_read_params(ROW, MODES.PROMISE_IN_BOUNDS),
            "indices_are_sorted": True,
            "unique_indices": True,
        },
    ),
    Case(
        op="scatter-apply",
        operands=(X(ROW[1]), starts(INSIDE), X((3, 3))),
        params=lambda dtype: {
            **_write_params(ROW, MODES.FILL_OR_DROP),
            "jaxpr": _applied(dtype),
        },
        dtypes=(F32, I32),
        order=0,
    ),
    *[
        Case(
            op=op,
            name="refused",
            says=op.replace("-", "_"),
            operands=(X(ROW[1]), starts(DISTINCT[2]), X((3, 3))),
            params=_write_params(ROW, MODES.FILL_OR_DROP, unique=True),
            dtypes=(F32,),
            errors=(
                Wrong((X((4, 3)), starts(INSIDE), X((3, 3), dtype=I32)), TypeError, "one dtype"),
                Wrong((X((4, 3)), X((3, 1)), X((3, 3))), ValueError, "integer"),
                Wrong((X((4, 3)), starts(INSIDE), X((3,))), TypeError, "updates of 2 dimensions"),
                Wrong((X((4, 3)), starts(INSIDE), X((2, 3))), TypeError, "updates of shape"),
                Wrong((X((4, 3)), starts(INSIDE), X((3, 5))), TypeError, "windows that fit"),
            ),
        )
        for op in ("scatter", "scatter-add", "scatter-min")
    ],
    Case(
        op="dynamic_slice",
        operands=(X((4, 5)), X((), 1, 1, dtype=I32), X((), 2, 2, dtype=I32)),
        also=(
            (X((4, 5)), X((), 9, 9, dtype=I32), X((), -3, -3, dtype=I32)),
            (X((2, 3)), X((), 0, 0, dtype=I32), X((), 0, 0, dtype=I32)),
        ),
        params={"slice_sizes": (2, 3)},
        dtypes=(*ALL, F8, I4),
        errors=(
            Wrong((X((4, 5)), X((), 1, 1, dtype=I32)), ValueError, "one start and size"),
            Wrong((X((4, 2)), *[X((), dtype=I32)] * 2), TypeError, "window that fits"),
            Wrong((X((4, 5)), *[X((1,), dtype=I32)] * 2), TypeError, "scalar starts"),
            Wrong((X((4, 5)), *[X((), dtype=F32)] * 2), TypeError, "integers"),
        ),
    ),
    Case(
        op="dynamic_slice",
        name="unsigned start",
        operands=(X((200,)), X((), 198, 198, dtype=U8)),
        params={"slice_sizes": (3,)},
    ),
    Case(
        op="dynamic_update_slice",
        operands=(X((4, 5)), X((2, 3)), X((), 1, 1, dtype=I32), X((), 2, 2, dtype=I32)),
        also=(
            (X((4, 5)), X((2, 3)), X((), 9, 9, dtype=I32), X((), -3, -3, dtype=I32)),
            (X((4, 5)), X((0, 3)), X((), 0, 0, dtype=I32), X((), 0, 0, dtype=I32)),
            (X(()), X(())),
        ),
        dtypes=(*ALL, F8, I4),
        errors=(
            Wrong((X((4,)), X((2,), dtype=I32), X((), dtype=I32)), TypeError, "one dtype"),
            Wrong((X((4,)), X((2, 1)), X((), dtype=I32)), TypeError, "the rank"),
            Wrong((X((4,)), X((5,)), X((), dtype=I32)), TypeError, "window that fits"),
        ),
    ),
    Case(
        op="sort",
        operands=(X((2, 5), distinct=True),),
        also=((X((2, 0)),), (X((1, 1)),)),
        params={"dimension": 1, **SORTED},
        dtypes=(*ALL, I4),
        special=True,
        errors=(
            Wrong((), TypeError, "at least one"),
            Wrong((X((2, 3)), X((2, 4))), TypeError, "equal shapes"),
            Wrong((X((3,)),), ValueError, "out of bounds"),
            Wrong((X((2, 3)),), ValueError, "num_keys", {"num_keys": 2}),
        ),
    ),
    Case(
        op="sort",
        name="in any order",
        operands=(X((2, 5), distinct=True), X((2, 5))),
        params={"dimension": 1, "is_stable": False, "num_keys": 1},
    ),
    Case(
        op="sort",
        name="with companions",
        operands=(X((6, 2), 0, 2, dtype=I32), X((6, 2)), X((6, 2))),
        params={"dimension": 0, **SORTED},
        dtypes=(F32, C64),
    ),
    Case(
        op="sort",
        name="by two keys",
        operands=(X((7,), 0, 2, dtype=I32), X((7,), distinct=True), X((7,))),
        params={"dimension": 0, "is_stable": True, "num_keys": 2},
        dtypes=(F32, BOOL),
    ),
    *[
        Case(
            op="top_k",
            name=f"{k} along {axis}",
            operands=(X((3, 6), distinct=True),),
            params={"k": k, "axis": axis},
            dtypes=(*REAL, I4) if k == 2 else (F32,),
            special=True,
            errors=()
            if k != 2
            else (
                Wrong((X((2, 1)),), ValueError, "k="),
                Wrong((X((3,)),), ValueError, "out of bounds"),
                Wrong((X((2, 3)),), ValueError, "order", dtype=C64),
            ),
        )
        for k, axis in ((2, 1), (3, 0), (0, 1), (6, 1))
    ],
]
