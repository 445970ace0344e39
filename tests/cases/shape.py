"""Rows of the ops that move elements."""

from typing import Any

from tests.cases.case import ALL, BF16, BOOL, C64, F8, F32, I4, I32, Case, Wrong, X, shaped

SOME = (*ALL, F8, I4)


def sliced(name: str, start: Any, limit: Any, strides: Any, **options: Any) -> Case:
    params = {"start_indices": start, "limit_indices": limit, "strides": strides}
    return Case(op="slice", name=name, operands=shaped((4, 5)), params=params, **options)


def padded(name: str, config: Any, shape: tuple[int, ...] = (2, 3), **options: Any) -> Case:
    options = {"dtypes": (F32, I32), **options}
    return Case(
        op="pad",
        name=name,
        operands=(X(shape), X(())),
        params={"padding_config": config},
        **options,
    )


ROWS = [
    Case(
        op="reshape",
        params={"shape": (3, 2)},
        also=(shaped((6,)), shaped((1, 6, 1))),
        dtypes=SOME,
        errors=(Wrong(shaped((5,)), TypeError, "cannot reshape"),),
    ),
    Case(op="reshape", name="scalar", operands=shaped((1, 1)), params={"shape": ()}),
    Case(op="reshape", name="nothing", operands=shaped((0, 3)), params={"shape": (3, 0, 2)}),
    Case(
        op="transpose",
        operands=shaped((2, 3, 4)),
        also=(shaped((1, 0, 2)),),
        params={"permutation": (2, 0, 1)},
        dtypes=SOME,
        errors=(
            Wrong(shaped((2, 3)), TypeError, "permutation"),
            Wrong(shaped((2,)), TypeError, "permutation", {"permutation": (1,)}),
        ),
    ),
    Case(op="transpose", name="scalar", operands=shaped(()), params={"permutation": ()}),
    Case(
        op="squeeze",
        operands=shaped((1, 3, 1)),
        also=(shaped((1, 0, 1)),),
        params={"dimensions": (0, 2)},
        dtypes=SOME,
        errors=(
            Wrong(shaped((1, 3, 2)), ValueError, "size 1"),
            Wrong(shaped((1,)), ValueError, "out of bounds"),
        ),
    ),
    Case(op="squeeze", name="one", operands=shaped((2, 1, 3)), params={"dimensions": (1,)}),
    sliced(
        "plain",
        (1, 0),
        (3, 5),
        None,
        dtypes=SOME,
        errors=(
            Wrong(shaped((4,)), ValueError, "one start and limit"),
            Wrong(shaped((2, 5)), TypeError, "start <= limit"),
            Wrong(shaped((4, 5)), TypeError, "positive strides", {"strides": (0, 1)}),
            Wrong(shaped((4, 5)), TypeError, "one stride per dimension", {"strides": (2,)}),
        ),
    ),
    sliced("strided", (1, 0), (4, 5), (2, 3)),
    sliced("nothing", (2, 0), (2, 5), (1, 2)),
    padded(
        "around",
        ((1, 2, 0), (0, 1, 0)),
        dtypes=SOME,
        errors=(
            Wrong((X((2, 3)), X((), dtype=I32)), TypeError, "scalar padding value"),
            Wrong((X((2, 3)), X((1,))), ValueError, "scalar padding value"),
            Wrong((X((2,)), X(())), ValueError, "for each dimension"),
            Wrong((X((2,)), X(())), ValueError, "negative", {"padding_config": ((-3, 0, 0),)}),
        ),
    ),
    padded("bools", ((-2, 1, 2), (-1, 1, 1)), dtypes=(BOOL,)),
    Case(
        op="pad",
        name="infinity",
        operands=(X((2, 3)), X((), values=[float("inf")])),
        params={"padding_config": ((1, 0, 1), (0, -1, 0))},
        dtypes=(F32, BF16),
        order=0,
    ),
    padded("inside", ((0, 0, 2), (1, 0, 1))),
    padded("negative", ((-1, 1, 0), (1, -2, 1))),
    padded("nothing", ((1, 1, 1), (0, 0, 0)), (0, 3)),
    padded("to nothing", ((-1, -1, 0), (0, 0, 0))),
    padded("one", ((1, 0, 3), (0, 0, 0)), (1, 1)),
    Case(
        op="concatenate",
        operands=shaped((2, 3), (2, 1), (2, 2)),
        also=(shaped((2, 3)), shaped((2, 0), (2, 3)), shaped((0, 3), (0, 2))),
        params={"dimension": 1},
        dtypes=SOME,
        errors=(
            Wrong((), ValueError, "at least one"),
            Wrong(shaped((2, 3), (3, 3)), TypeError, "but for dimension"),
            Wrong((X((2, 3)), X((2, 3), dtype=I32)), TypeError, "equal in dtype"),
            Wrong(shaped((2,)), TypeError, "a dimension of"),
        ),
    ),
    Case(op="concatenate", name="first", operands=shaped((2, 3), (1, 3)), params={"dimension": 0}),
    Case(
        op="rev",
        operands=shaped((2, 3, 4)),
        also=(shaped((0, 1, 2)),),
        params={"dimensions": (0, 2)},
        dtypes=SOME,
        errors=(Wrong(shaped((2,)), ValueError, "out of bounds"),),
    ),
    *[
        Case(op="rev", name=f"of {dims}", operands=shaped((2, 3, 4)), params={"dimensions": dims})
        for dims in ((), (1,), (0, 1, 2))
    ],
    *[
        Case(
            op="iota",
            name=f"of {shape} along {dimension}",
            operands=(),
            params={"shape": shape, "dtype": I32, "dimension": dimension},
            dtypes=(I32,),
            order=0,
            vmap=False,
        )
        for shape, dimension in (((5,), 0), ((2, 1, 3), 1), ((4, 2, 3), 0), ((0, 3), 0))
    ],
    *[
        Case(
            op="iota",
            name=f"of {dtype.name}",
            operands=(),
            params={"shape": (2, 3), "dtype": dtype, "dimension": 1},
            dtypes=(dtype,),
            order=0,
            vmap=False,
            errors=() if dtype != F32 else (Wrong((), ValueError, "dimension", {"dimension": 2}),),
        )
        for dtype in (F32, I32, BF16, C64)
    ],
]
assert BOOL in SOME
