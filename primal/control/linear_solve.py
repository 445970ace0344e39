"""custom_linear_solve: x with A·x = b by a program of the user's, differentiated implicitly.

A is given by programs for A·v and Aᵀ·v. From A·x = b follows A·dx = db - dA·x, another solution
with the same A; and the transpose of b -> x is the solution with Aᵀ. So derivatives of any order
need the user's solvers and never look into them. All programs take (consts, a vector).
"""

from __future__ import annotations

from typing import Any

from primal.control.programs import Mask, check_operands, pick, split
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import CONTROL, HigherOrder, Never, Op, Splice, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.elementwise import sub
from primal.ops.shape import moveaxis
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr, materialize
from primal.transforms.jvp import instantiate, jvp_jaxpr


def _solve_type(*avals: Aval, solve: ClosedJaxpr, **params: Any) -> tuple[Aval, ...]:
    check_operands("custom_linear_solve", "operand", avals, solve.in_avals)
    return tuple(solve.out_avals)


def _solve_impl(*args: Any, solve: ClosedJaxpr, **params: Any) -> list[Any]:
    return run_numpy(solve.jaxpr, solve.consts, args)


def _solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    matvec, num_consts, num_aux = params["matvec"], params["num_consts"], params["num_aux"]
    consts, b = split(primals, num_consts)
    t_consts, t_b = split(tangents, num_consts)
    outs = custom_linear_solve(*primals, **params)
    x = outs[: len(b)]
    right = list(t_b)
    moving = tuple([t is not ZERO for t in t_consts])
    if any(moving):
        pushed, mask = jvp_jaxpr(matvec, (*moving, *[False] * len(b)))
        results = eval_closed(pushed, *consts, *x, *pick(t_consts, moving))
        changes = iter(results[len(b) :])
        right = [_minus(t, next(changes)) if m else t for t, m in zip(right, mask, strict=True)]
    if all(t is ZERO for t in right):
        return outs, [ZERO] * len(outs)
    right = [instantiate(t, aval_of(v)) for t, v in zip(right, b, strict=True)]
    touts = custom_linear_solve(*consts, *right, **params)
    return outs, [*touts[: len(b)], *[ZERO] * num_aux]


def _minus(t: Any, change: Any) -> Any:
    if t is ZERO:
        t = instantiate(t, aval_of(change))
    return sub(t, change)


def _solve_linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
    # Tangents are on the tape, which is ambient; values go on to the parent.
    return _solve_jvp(primals, tangents, **params)


NO_TRANSPOSE = (
    "[custom_linear_solve] expected `transpose_solve` (or symmetric=True) for reverse-mode "
    "differentiation, got neither: its derivative solves the transposed system."
)


def _solve_transpose(cts: Any, *args: Any, **params: Any) -> list[Any]:
    num_consts, num_aux = params["num_consts"], params["num_aux"]
    consts, b = split(args, num_consts)
    if any(is_linear(c) for c in consts):
        raise TypeError(
            "[custom_linear_solve] expected an operation linear in b alone, got a matvec that "
            "depends on values to be transposed."
        )
    if params["transpose_solve"] is None:
        raise TypeError(NO_TRANSPOSE)
    right = [
        instantiate(c, a.aval) for c, a in zip(cts[: len(b)], b, strict=True)
    ]
    found = custom_linear_solve(
        *consts,
        *right,
        matvec=params["vecmat"],
        vecmat=params["matvec"],
        solve=params["transpose_solve"],
        transpose_solve=params["solve"],
        num_consts=num_consts,
        num_aux=num_aux,
    )
    return [*[None] * num_consts, *found[: len(b)]]


def _solve_batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    num_consts, num_aux = params["num_consts"], params["num_aux"]
    b_consts = tuple([d is not None for d in dims[:num_consts]])
    size = len(args) - num_consts
    flags = (*b_consts, *[True] * size)
    moved = [
        materialize(a, axis, d, 0)
        if i >= num_consts
        else a
        if d is None
        else moveaxis(a, d, 0)
        for i, (a, d) in enumerate(zip(args, dims, strict=True))
    ]

    def over(program: ClosedJaxpr | None) -> ClosedJaxpr | None:
        if program is None:
            return None
        force: Mask = (True,) * len(program.out_avals)
        return batch_jaxpr(program, axis, flags, force)[0]

    programs = {
        k: over(params[k]) for k in ("matvec", "vecmat", "solve", "transpose_solve")
    }
    outs = custom_linear_solve(*moved, **programs, num_consts=num_consts, num_aux=num_aux)
    return outs, [0] * len(outs)


def _solve_show(params: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if k != "vecmat"}


def _effects(params: dict[str, Any]) -> Any:
    return params["solve"].effects


custom_linear_solve = Op(
    name="custom_linear_solve",
    kind=CONTROL,
    type=_solve_type,
    impl=_solve_impl,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    shard=by_kind,
    hlo=Splice("solve"),
    kernel=Splice("solve"),
    higher=HigherOrder(
        linearize=_solve_linearize,
        dce=Never("[custom_linear_solve] expected all parts of the solution."),
    ),
    multiple=True,
    effects=_effects,
    show=_solve_show,
)
