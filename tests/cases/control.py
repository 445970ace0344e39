"""Rows of the ops that carry programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.state import ambient, state
from primal.ir.trace import ZERO, aval_of
from primal.ops.elementwise import add, cos, div, lt, mul, sin
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.transforms.linearize import LinearTracer, Tape
from primal.transforms.stage import stage
from tests.cases.case import ALL, C64, F8, F32, F64, I4, I32, Case, Wrong, X

NEAR: dict[str, Any] = {"ulps": 16, "near": 4.0, "cause": "fused multiply-add and sines"}
DTYPES = (F32, F64)


def program(f: Any, *shapes: Any, dtype: Any) -> ClosedJaxpr:
    avals = [s if isinstance(s, Aval) else Aval(s, dtype) for s in shapes]
    return stage(f, avals, "carried")


SCALAR = Aval((), np.dtype(np.int32))


def _jit(dtype: Any) -> dict[str, Any]:
    def f(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y), reduce_sum(mul(x, x), axes=(0,)), y]

    return {"jaxpr": program(f, (3,), (3,), dtype=dtype), "name": "f", "inline": False}


def _cond(dtype: Any) -> dict[str, Any]:
    def first(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y), x]

    def second(x: Any, y: Any) -> list[Any]:
        return [add(x, y), mul(y, y)]

    def third(x: Any, y: Any) -> list[Any]:
        return [y, y]

    return {
        "branches": tuple([program(f, (3,), (3,), dtype=dtype) for f in (first, second, third)])
    }


def _scan(reverse: bool = False, unroll: int = 1, length: int = 4) -> Any:
    def params(dtype: Any) -> dict[str, Any]:
        def body(w: Any, c: Any, x: Any) -> list[Any]:
            new = add(mul(c, w), sin(x))
            return [new, mul(new, c)]

        return {
            "jaxpr": program(body, (2,), (2,), (2,), dtype=dtype),
            "length": length,
            "num_consts": 1,
            "num_carry": 1,
            "reverse": reverse,
            "unroll": unroll,
        }

    return params


def _while(dtype: Any) -> dict[str, Any]:
    def cond(limit: Any, i: Any, x: Any) -> list[Any]:
        return [lt(i, limit)]

    def body(w: Any, i: Any, x: Any) -> list[Any]:
        return [add(i, 1), mul(w, sin(x))]

    return {
        "cond_jaxpr": program(cond, SCALAR, SCALAR, (2,), dtype=dtype),
        "body_jaxpr": program(body, (2,), SCALAR, (2,), dtype=dtype),
        "cond_nconsts": 1,
        "body_nconsts": 1,
    }


def _custom_jvp(dtype: Any) -> dict[str, Any]:
    def f(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y)]

    def jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (t, u) = primals, tangents
        total: Any = ZERO
        for part in (
            ZERO if t is ZERO else mul(mul(cos(x), y), t),
            ZERO if u is ZERO else mul(sin(x), u),
        ):
            total = part if total is ZERO else total if part is ZERO else add(total, part)
        return f(x, y), [total]

    return {
        "call": program(f, (3,), (3,), dtype=dtype),
        "jvp": jvp,
        "name": "f",
        "num_consts": 0,
        "symbolic_zeros": False,
    }


def _custom_vjp(dtype: Any) -> dict[str, Any]:
    def f(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y)]

    def fwd(primals: Any, active: Any) -> Any:
        x, y = primals
        return f(x, y), [x, y]

    def bwd(residuals: Any, cts: Any) -> Any:
        (x, y), (ct,) = residuals, cts
        return [mul(mul(cos(x), y), ct), mul(sin(x), ct)]

    return {
        "call": program(f, (3,), (3,), dtype=dtype),
        "fwd": fwd,
        "bwd": bwd,
        "name": "f",
        "num_consts": 0,
        "symbolic_zeros": False,
    }


def _remat(differentiated: bool, policy: Any) -> Any:
    def params(dtype: Any) -> dict[str, Any]:
        def f(x: Any, y: Any) -> list[Any]:
            z = sin(mul(x, y))
            return [mul(sin(z), y), reduce_sum(mul(z, x), axes=(0,))]

        return {
            "jaxpr": program(f, (3,), (3,), dtype=dtype),
            "prevent_cse": True,
            "differentiated": differentiated,
            "policy": policy,
        }

    return params


def _recomputed(dtype: Any) -> dict[str, Any]:
    return {"jaxpr": _remat(True, None)(dtype)["jaxpr"]}


def _custom_vmap(dtype: Any) -> dict[str, Any]:
    def f(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y)]

    def rule(axis_size: int, in_batched: Any, args: Any) -> Any:
        x, y = [
            a if b else broadcast_in_dim(a, shape=(axis_size, 3), broadcast_dimensions=(1,))
            for a, b in zip(args, in_batched, strict=True)
        ]
        return f(x, y), [True]

    return {
        "call": program(f, (3,), (3,), dtype=dtype),
        "rule": rule,
        "num_consts": 0,
        "name": "f",
    }


def _linear_call(dtype: Any) -> dict[str, Any]:
    def f(r: Any, x: Any) -> list[Any]:
        return [mul(sin(r), x)]

    return {
        "callee": program(f, (3,), (3,), dtype=dtype),
        "transposed": lambda residuals, cts: [mul(sin(residuals[0]), cts[0])],
        "num_consts": 0,
        "num_res": 1,
    }


def _custom_lin(dtype: Any) -> dict[str, Any]:
    return {
        "bwd": lambda residuals, cts: [mul(residuals[0], cts[0])],
        "active": (True,),
        "num_residuals": 1,
        "out_avals": (Aval((3,), dtype),),
        "differentiable": (True,),
        "name": "f",
    }


def _backwards(f: Any) -> Any:
    """A linear map that is known by its transpose only, run backwards."""

    def transposed(residual: Any, ct: Any) -> list[Any]:
        tape = Tape(state.trace)
        x = LinearTracer(tape, aval_of(ct))
        with ambient(tape):
            outs = f(residual, x)
        return tape.backward([x], outs, [ct])

    return transposed


def _linear_solve(dtype: Any) -> dict[str, Any]:
    """w·x = b by a quotient; of the matrix the programs say only what they do."""
    times = program(lambda w, v: [mul(w, v)], (3,), (3,), dtype=dtype)
    quotient = program(lambda w, b: [div(b, w)], (3,), (3,), dtype=dtype)
    return {
        "matvec": times,
        "vecmat": times,
        "solve": quotient,
        "transpose_solve": quotient,
        "num_consts": 1,
        "num_aux": 0,
    }


THREE, TWO = X((3,)), X((2,))
ROWS = [
    Case(op="jit", operands=(THREE, THREE), params=_jit, dtypes=(F32, F64, C64), **NEAR),
    *[
        Case(
            op="cond",
            name=f"branch {i}",
            operands=(X((), i, i, dtype=I32), THREE, THREE),
            params=_cond,
            dtypes=DTYPES,
            errors=(
                Wrong((X((), dtype=F32), THREE, THREE), TypeError, "int32 scalar"),
                Wrong((X((), dtype=I32), THREE, X((4,))), TypeError, "branch 0"),
            )
            if not i
            else (),
            **NEAR,
        )
        for i in (0, 1, 2, 7)
    ],
    *[
        Case(
            op="scan",
            name=name,
            operands=(TWO, TWO, X((length, 2))),
            params=_scan(reverse, unroll, length),
            dtypes=DTYPES,
            errors=(
                Wrong((TWO, TWO, X((3, 2))), TypeError, "operand"),
                Wrong((TWO, X((3,)), X((4, 2))), TypeError, "operand"),
            )
            if name == "forward"
            else (),
            **NEAR,
        )
        for name, reverse, unroll, length in (
            ("forward", False, 1, 4),
            ("reversed", True, 1, 4),
            ("unrolled", False, 3, 4),
            ("of nothing", False, 1, 0),
            ("of one", False, 1, 1),
        )
    ],
    Case(
        op="while",
        operands=(X((), 3, 3, dtype=I32), TWO, X((), 0, 0, dtype=I32), TWO),
        also=((X((), 0, 0, dtype=I32), TWO, X((), 0, 0, dtype=I32), TWO),),
        params=_while,
        dtypes=DTYPES,
        reverse=False,
        order=1,
        errors=(
            Wrong((X((), dtype=I32), X((3,)), X((), dtype=I32), TWO), TypeError, "body's operand"),
        ),
        **NEAR,
    ),
    Case(op="custom_jvp_call", operands=(THREE, THREE), params=_custom_jvp, dtypes=DTYPES, **NEAR),
    Case(
        op="custom_vjp_call",
        operands=(THREE, THREE),
        params=_custom_vjp,
        dtypes=DTYPES,
        order=0,
        **NEAR,
    ),
    *[
        Case(
            op="remat2",
            name=name,
            operands=(THREE, THREE),
            params=_remat(differentiated, policy),
            dtypes=DTYPES,
            **NEAR,
        )
        for name, differentiated, policy in (
            ("plain", False, None),
            ("differentiated", True, None),
            ("saving", False, lambda op, *avals, **params: op.name == "sin"),
        )
    ],
    Case(op="recomputed", operands=(THREE, THREE), params=_recomputed, dtypes=DTYPES, **NEAR),
    Case(
        op="custom_vmap_call",
        operands=(THREE, THREE),
        params=_custom_vmap,
        dtypes=DTYPES,
        **NEAR,
    ),
    Case(op="linear_call", operands=(THREE, THREE), params=_linear_call, dtypes=DTYPES, **NEAR),
    Case(op="optimization_barrier", operands=(THREE, X((2, 2))), dtypes=(*ALL, F8, I4)),
    Case(op="name", params={"name": "a"}, dtypes=(*ALL, F8, I4)),
    Case(
        op="custom_linear_solve",
        operands=(X((3,), 0.5, 2), THREE),
        params=_linear_solve,
        dtypes=DTYPES,
        **NEAR,
    ),
    Case(
        op="custom_lin",
        operands=(THREE, THREE),
        params=_custom_lin,
        around=_backwards,
        dtypes=DTYPES,
        **NEAR,
    ),
]
