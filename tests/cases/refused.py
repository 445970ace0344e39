"""What ops refuse whose rows are made in groups: operands, the class of the error, its words."""

from __future__ import annotations

from typing import Any

from tests.cases.case import BOOL, C64, F32, I32, Wrong, X, shaped

FLOATING = "expected a floating dtype"


def _of_dtype(count: int) -> tuple[Wrong, ...]:
    return (Wrong(shaped(*[(2,)] * count), TypeError, FLOATING, dtype=I32),)


def _of_shapes(*dtyped: Wrong) -> tuple[Wrong, ...]:
    return (*dtyped, Wrong(shaped((2,), (3,)), TypeError, "shapes that broadcast"))


AT = X((3, 1), dtype=I32, values=[0, 1, 2])
WRITES = (
    Wrong((X((4, 3)), AT, X((7, 7))), TypeError, "expected updates of shape"),
    Wrong((X((4, 3)), X((3, 1), dtype=F32), X((3, 3))), ValueError, "integer indices"),
)
WINDOWS = (Wrong((X((4, 5)), X((4, 5))), TypeError, "integer or floating", dtype=C64),)
WORDS = (Wrong((X((2,), dtype=I32),), TypeError, "array of keys"),)

TWICE, NUMBER = "distinct axes", "number dtype"
BITS = Wrong(shaped((2, 2)), ValueError, TWICE, {"axes": (0, 0)}, I32)
OVER = Wrong(shaped((2, 2)), ValueError, TWICE, {"axes": (0, 0)})
WINDOWED = (
    *[Wrong(shaped((3, 4)), TypeError, "positive integers", {name: (0, 1)})
      for name in ("window_dimensions", "window_strides", "base_dilation")],
    Wrong(shaped((3, 4)), TypeError, "one per windowed dimension", {"padding": ((0, 0),)}),
    Wrong(shaped((3, 4)), TypeError, NUMBER, dtype=BOOL),
)  # fmt: skip

REFUSED: dict[str, tuple[Wrong, ...]] = {
    **dict.fromkeys(
        ("bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma", "polynomial"),
        _of_dtype(1),
    ),
    **dict.fromkeys(
        ("igamma_derivative", "polygamma", "zeta", "zeta_derivative"), _of_shapes(*_of_dtype(2))
    ),
    **dict.fromkeys(("regularized_incomplete_beta", "betainc_derivative"), _of_dtype(3)),
    "eig": (
        Wrong(shaped((2, 3)), ValueError, "square matrix"),
        Wrong(shaped((2, 2)), TypeError, "no factorisations", dtype=I32),
    ),
    "geqrf": (
        Wrong(shaped((2,)), TypeError, "expected a matrix"),
        Wrong(shaped((2, 2)), TypeError, "no factorisations", dtype=I32),
    ),
    **dict.fromkeys(("scatter-apply", "scatter-max", "scatter-mul", "scatter-sub"), WRITES),
    "select_and_gather_add": (
        *WINDOWS, Wrong((X((9, 9)), X((4, 5))), TypeError, "tangents like the operand"),
    ),
    "select_and_scatter_add": (
        *WINDOWS, Wrong((X((9, 9)), X((4, 5))), TypeError, "one source per window"),
    ),
    **dict.fromkeys(("random_unwrap", "random_clone", "random_split"), WORDS),
    **dict.fromkeys(
        ("custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "linear_call", "remat2",
         "recomputed", "custom_linear_solve"),
        (Wrong(shaped((7,), (7,)), TypeError, "operand 0"),),
    ),
    "check": (Wrong(shaped((7,)), TypeError, "int32 scalar"),),
    **dict.fromkeys(("reduce_and", "reduce_or", "reduce_xor"), (BITS,)),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_prod"), (OVER,)),
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin"),
        (Wrong(shaped((2, 3)), TypeError, NUMBER, dtype=BOOL),),
    ),
    "cumlogsumexp": _of_dtype(1),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), WINDOWED),
    "rev": (Wrong(shaped((2, 3)), ValueError, TWICE, {"dimensions": (0, 0)}),),
    "reshape": (Wrong(shaped((2, 3)), TypeError, "non-negative", {"shape": (-1, 6)}),),
    "iota": (Wrong((), TypeError, "non-negative", {"shape": (-2,)}),),
    "reduce_precision": (
        Wrong(shaped((2,)), ValueError, "exponent_bits >= 1", {"exponent_bits": 0}),
    ),
}  # fmt: skip
# How an error names the op, where that is not the name of its record.
SAYS: dict[str, Any] = {
    "custom_jvp_call": "custom derivative",
    "custom_vjp_call": "custom derivative",
    "custom_vmap_call": "custom_vmap",
    "remat2": "checkpoint",
    "recomputed": "checkpoint",
}
