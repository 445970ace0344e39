"""Rows of the ops that call Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from tests.cases.case import ALL, FLOATS, Case, X


class Numpy:
    """A callback as the ops take it: NumPy arrays in, a list of them out."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *arrays: Any) -> Any:
        return self.fun(*arrays)

    def resized(self, avals: tuple[Aval, ...]) -> Numpy:
        return self


FLIP = Numpy(lambda x: [x[..., ::-1]])
BOTH = Numpy(lambda x, y: [np.asarray(x + y), np.asarray(x[..., :1])])
IGNORE = Numpy(lambda *xs: ())


def _flip(**more: Any) -> Any:
    return lambda dtype: {
        "callback": FLIP, "result_avals": (Aval((2, 3), dtype),), "sharding": None, **more
    }  # fmt: skip


def _both(dtype: Any) -> dict[str, Any]:
    avals = (Aval((2, 3), dtype), Aval((2, 1), dtype))
    return {
        "callback": BOTH, "result_avals": avals, "sharding": None, "vmap_method": "broadcast_all"
    }  # fmt: skip


DEBUG = {"callback": IGNORE, "ordered": False, "partitioned": False}

ROWS = [
    Case(
        op="pure_callback", name=str(method), params=_flip(vmap_method=method), dtypes=dtypes,
        order=0, special=method == "sequential",
    )
    for method, dtypes in (
        ("sequential", ALL),
        ("sequential_unrolled", FLOATS),
        ("expand_dims", FLOATS),
        ("legacy_vectorized", FLOATS),
    )
]  # fmt: skip
ROWS += [
    Case(op="pure_callback", name="two", operands=(X(), X()), params=_both, order=0),
    Case(op="io_callback", params=_flip(ordered=False), order=0),
    Case(op="io_callback", name="ordered", params=_flip(ordered=True), order=0, vmap=False),
    Case(op="debug_callback", params=DEBUG, dtypes=ALL),
    Case(op="debug_callback", name="ordered", params={**DEBUG, "ordered": True}),
    Case(
        op="check", operands=(X((), dtype=np.int32, values=-1), X()), vmap=False,
        params=lambda dtype: {"signatures": ((Aval((2, 3), dtype),),), "debug": True},
    ),
    Case(op="debug_print", params={**DEBUG, "fmt": "{}"}),
]
