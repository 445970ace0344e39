"""Solutions differentiated implicitly: custom_linear_solve, custom_root."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.api.control.bodies import check_callable, check_leaves, difference
from primal.api.control.custom import custom_jvp
from primal.api.control.custom_calls import where_to_bind
from primal.api.control.symbolic import SymbolicZero
from primal.api.operands import check_outputs, evaluated, name_of, operand
from primal.base import dtypes, errors
from primal.base.pytree import PyTreeDef, flatten, unflatten
from primal.control.linear_solve import custom_linear_solve as solve_op
from primal.control.programs import same_type
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Var, hoist_consts
from primal.ir.trace import aval_of
from primal.ops.elementwise import neg
from primal.runtime.program_refs import only_reading
from primal.transforms.jvp import jvp_jaxpr
from primal.transforms.stage import stage
from primal.transforms.transpose import transpose_jaxpr

Tree = Any
Flat = Callable[..., list[Any]]


def custom_linear_solve(
    matvec: Callable[[Tree], Tree],
    b: Tree,
    solve: Callable[[Callable[[Tree], Tree], Tree], Tree],
    transpose_solve: Callable[[Callable[[Tree], Tree], Tree], Tree] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Tree:
    """x = solve(matvec, b), differentiated as the solution of matvec(x) = b.

    `matvec` is linear; `solve(matvec, b)` may be any program, an iteration included: derivatives
    solve A·dx = db - dA·x and Aᵀ·λ = ct, and never look inside. Reverse mode needs
    `transpose_solve(vecmat, b)`, which solves with the transposed matvec, or `symmetric=True`.
    With `has_aux` both solvers return (x, aux), aux being not differentiated.

    ValueError where results have other shapes than b, TypeError where they have other types.

    >>> a = np.float32([[2, 1], [0, 4]])
    >>> custom_linear_solve(lambda x: a @ x, np.float32([3, 4]),
    ...                     lambda matvec, b: jnp.linalg.solve(a, b))
    Array([1., 1.], dtype=float32)
    """
    check_callable("custom_linear_solve", matvec=matvec, solve=solve)
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    leaves, spec = flatten(b)
    avals = check_leaves("custom_linear_solve", b, leaves)
    matrix = only_reading(_flat(matvec, spec, "matvec", avals))
    product = stage(matrix, avals, name_of(matvec))
    num_product = len(product.consts)
    hoisted = ClosedJaxpr(hoist_consts(product))
    found: list[Any] = []
    forward = _stage_solver("solve", solve, hoisted, product.consts, spec, avals, has_aux, found)
    linear = (*[False] * num_product, *[True] * len(avals))
    # Without a transposed solver nobody asks for the transpose, and matvec may be anything.
    one_way = symmetric or transpose_solve is None
    transposed = hoisted if one_way else transpose_jaxpr(hoisted, linear, (True,) * len(avals))
    backward = None
    if transpose_solve is not None:
        backward = _stage_solver(
            "transpose_solve", transpose_solve, transposed, product.consts, spec, avals, has_aux, []
        )
    # One list of consts for all programs: matvec's, then what each solver closes over.
    extra = [*forward.consts, *(backward.consts if backward is not None else [])]
    middle = [aval_of(c) for c in extra]
    first = len(forward.consts)
    results = solve_op(
        *product.consts,
        *extra,
        *leaves,
        matvec=_with_middle(hoisted, num_product, middle),
        vecmat=_with_middle(transposed, num_product, middle),
        solve=_reordered(forward, num_product, middle[first:], after=True),
        transpose_solve=(
            None
            if backward is None
            else _reordered(backward, num_product, middle[:first], after=False)
        ),
        num_consts=num_product + len(extra),
        num_aux=len(forward.out_avals) - len(leaves),
    )
    x = unflatten(spec, results[: len(leaves)])
    return (x, unflatten(found[0], results[len(leaves) :])) if has_aux else x


def _flat(fun: Callable[[Tree], Tree], spec: Any, role: str, avals: Sequence[Aval]) -> Flat:
    """A function of one tree, with results of the same type, on flat lists."""

    def flat(*args: Any) -> list[Any]:
        outs, out_spec = flatten(fun(unflatten(spec, args)))
        _check_like_b(role, spec, avals, out_spec, outs)
        return outs

    return flat


def _check_like_b(
    role: str, spec: Any, avals: Sequence[Aval], out_spec: Any, outs: Sequence[Any]
) -> None:
    out_avals = [aval_of(o) for o in outs]
    if spec == out_spec and all(same_type(a, o) for a, o in zip(avals, out_avals, strict=True)):
        return
    first, table = difference("b", ("b", spec, avals), (f"{role} output", out_spec, out_avals))
    alike = [o.shape for o in out_avals] == [a.shape for a in avals]
    raise (TypeError if alike else ValueError)(
        f"[custom_linear_solve] expected {role} to return the structure and types of b, got "
        f"others: {first}: {role}() output {'pytree structure' if alike else 'shapes'} must match "
        f"b.\n{table}"
    )


def _pair(name: str, role: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ValueError(
            f"[{name}] expected a pair (x, aux) from {role} because has_aux=True, got "
            f"{PyTreeDef(flatten(result)[1])}."
        )
    return tuple(result)


def _stage_solver(
    role: str,
    solve: Callable[..., Any],
    product: ClosedJaxpr,
    product_consts: Sequence[Any],
    spec: Any,
    avals: Sequence[Aval],
    has_aux: bool,
    found: list[Any],
) -> ClosedJaxpr:
    """(consts of matvec, b) -> (x, aux), its own consts still bound."""
    count = len(product_consts)

    def run(*args: Any) -> list[Any]:
        def matvec(x: Tree) -> Tree:
            operands, got = flatten(x)
            if got != spec:
                raise TypeError(
                    "[custom_linear_solve] expected matvec to be called with the structure of b, "
                    f"{PyTreeDef(spec)}, got {PyTreeDef(got)}."
                )
            operands = [operand(o) for o in operands]
            return unflatten(spec, evaluated(product, *args[:count], *operands))

        result = solve(matvec, unflatten(spec, args[count:]))
        x, aux = _pair("custom_linear_solve", role, result) if has_aux else (result, None)
        outs, out_spec = flatten(x)
        _check_like_b(role, spec, avals, out_spec, outs)
        aux_leaves, aux_spec = flatten(aux)
        found.append(aux_spec)
        return [*outs, *aux_leaves]

    in_avals = [*[aval_of(c) for c in product_consts], *avals]
    return stage(only_reading(run), in_avals, name_of(solve))


def _with_middle(program: ClosedJaxpr, at: int, middle: Sequence[Aval]) -> ClosedJaxpr:
    """The program with further inputs, which it does not read, after its first `at`."""
    jaxpr = program.jaxpr
    spare = [Var(a) for a in middle]
    return ClosedJaxpr(
        jaxpr.replace(invars=[*jaxpr.invars[:at], *spare, *jaxpr.invars[at:]]), program.consts
    )


def _reordered(
    solver: ClosedJaxpr, at: int, others: Sequence[Aval], *, after: bool
) -> ClosedJaxpr:
    """A solver taking (consts of matvec, its own and the other's consts, b)."""
    jaxpr = solver.jaxpr
    spare = [Var(a) for a in others]
    own = jaxpr.constvars
    middle = [*own, *spare] if after else [*spare, *own]
    return ClosedJaxpr(
        jaxpr.replace(
            constvars=[], invars=[*jaxpr.invars[:at], *middle, *jaxpr.invars[at:]]
        )
    )


def _stage_residual(f: Callable[[Tree], Tree], spec: Any, avals: Sequence[Aval]) -> ClosedJaxpr:
    """f of custom_root as a program on leaves, checked to return what it takes."""

    def flat(*args: Any) -> list[Any]:
        outs, out_spec = flatten(f(unflatten(spec, args)))
        out_avals = [aval_of(o) for o in outs]
        if out_spec != spec or not all(map(same_type, out_avals, avals)):
            first, table = difference(
                "x", ("initial guess", spec, avals), ("output of f", out_spec, out_avals)
            )
            raise TypeError(
                "[custom_root] expected f to return the structure and types of the initial "
                f"guess, got others: {first}: f() output pytree structure must match initial_guess."
                f"\n{table}"
            )
        return outs

    return stage(only_reading(flat), avals, name_of(f))


class _Staged(NamedTuple):
    """The solvers of a root as programs of what they close over and their arguments."""

    solver: ClosedJaxpr
    out_spec: Any  # the structure of its results
    tangent_solver: ClosedJaxpr
    num_closed_over: int  # by the solver; what is left of the list is the tangents' solver's


class _Root:
    """A root of the program `f(consts, x)`: what the solver says, and its derivatives."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        spec: Any,
        solve: Callable[..., Tree],
        tangent_solve: Callable[..., Tree],
        has_aux: bool,
    ) -> None:
        self.f = ClosedJaxpr(hoist_consts(closed))
        self.num_consts = len(closed.consts)
        self.count = len(closed.out_avals)
        self.spec = spec
        self.solve = solve
        self.tangent_solve = tangent_solve
        self.has_aux = has_aux
        self.discrete = [
            a.dtype.name for a in closed.out_avals if not dtypes.issubdtype(a.dtype, np.inexact)
        ]
        self.staged: _Staged | None = None

    @property
    def of(self) -> custom_jvp[..., Any]:
        """The root as a function of constants; made anew, as one that is kept would be a circle."""
        made: custom_jvp[..., Any] = custom_jvp(self.value)
        made.defjvp(self.rule, symbolic_zeros=True)
        return made

    def stage_solvers(self, consts: Sequence[Any], avals: Sequence[Aval]) -> list[Any]:
        """Make both solvers programs, and return what they close over."""
        found: list[Any] = []
        theta = [aval_of(c) for c in consts]

        def run(*args: Any) -> list[Any]:
            result = self.value(list(args[: self.num_consts]), list(args[self.num_consts :]), [])
            outs, out_spec = flatten(result)
            found.append(out_spec)
            return outs

        def run_tangent(*args: Any) -> list[Any]:
            if self.discrete:  # has no tangents, and `rule` refuses it
                return []
            at, x = self.num_consts, self.num_consts + self.count
            y = list(args[x:])
            tangent = self.tangent(list(args[:at]), list(args[at:x]), y, [])
            return [operand(t) for t in flatten(tangent)[0]]

        solver = stage(only_reading(run), [*theta, *avals], name_of(self.solve))
        tangent = stage(
            only_reading(run_tangent), [*theta, *avals, *avals], name_of(self.tangent_solve)
        )
        self.staged = _Staged(
            ClosedJaxpr(hoist_consts(solver)),
            found[0],
            ClosedJaxpr(hoist_consts(tangent)),
            len(solver.consts),
        )
        # Programs last, and what the functions close over is of this trace.
        del self.solve, self.tangent_solve
        return [*solver.consts, *tangent.consts]

    def value(self, consts: list[Any], guess: list[Any], closed_over: list[Any]) -> Tree:
        """What the solver returns."""
        if self.staged is not None:
            given = closed_over[: self.staged.num_closed_over]
            results = evaluated(self.staged.solver, *given, *consts, *guess)
            return unflatten(self.staged.out_spec, results)

        def of_x(x: Tree) -> Tree:
            operands, _ = flatten(x)
            return unflatten(self.spec, evaluated(self.f, *consts, *map(operand, operands)))

        result = self.solve(of_x, unflatten(self.spec, guess))
        root = _pair("custom_root", "solve", result)[0] if self.has_aux else result
        self._check_structure("solve", flatten(root)[1])
        leaves, out_spec = flatten(result)
        check_outputs("custom_root", result, leaves)
        return unflatten(out_spec, [operand(x) for x in leaves])

    def rule(self, primals: Any, tangents: Any) -> Any:
        """The answer, and x' of ∂f/∂x·x' = -∂f/∂consts·consts'."""
        if self.discrete:
            raise TypeError(
                "[custom_root] expected a floating or complex guess where derivatives are taken, "
                f"got {', '.join(self.discrete)} in it."
            )
        (consts, guess, closed_over), (t_consts, _, _) = primals, tangents
        # Through the rule again, so that higher derivatives do not look into the solver either.
        out = self.of(consts, guess, closed_over)
        x, _ = flatten(out[0] if self.has_aux else out)
        still, moving = [False] * self.count, [True] * self.count
        given = [t for t in t_consts if not isinstance(t, SymbolicZero)]
        mask = (*[not isinstance(t, SymbolicZero) for t in t_consts], *still)
        pushed, _ = jvp_jaxpr(self.f, mask, tuple(moving))
        changes = evaluated(pushed, *consts, *x, *given)[self.count :]
        tangent = self.tangent(consts, x, [neg(c) for c in changes], closed_over)
        if not self.has_aux:
            return out, tangent
        aux, aux_spec = flatten(out[1])
        zeros = [SymbolicZero.from_primal_value(operand(a)) for a in aux]
        return out, (tangent, unflatten(aux_spec, zeros))

    def tangent(
        self, consts: list[Any], x: list[Any], y: list[Any], closed_over: list[Any]
    ) -> Tree:
        """What the tangents' solver returns for ∂f/∂x·v = y."""
        if self.staged is not None:
            given = closed_over[self.staged.num_closed_over :]
            results = evaluated(self.staged.tangent_solver, *given, *consts, *x, *y)
            return unflatten(self.spec, results)
        moving = [True] * self.count
        along, _ = jvp_jaxpr(self.f, (*[False] * self.num_consts, *moving), tuple(moving))

        def slope(v: Tree) -> Tree:
            operands, _ = flatten(v)
            results = evaluated(along, *consts, *x, *map(operand, operands))
            return unflatten(self.spec, results[self.count :])

        tangent = self.tangent_solve(slope, unflatten(self.spec, y))
        self._check_structure("tangent_solve", flatten(tangent)[1])
        return tangent

    def _check_structure(self, role: str, got: Any) -> None:
        if got != self.spec:
            raise TypeError(
                f"[custom_root] expected {role} to return the structure of the initial guess, "
                f"{PyTreeDef(self.spec)}, got {PyTreeDef(got)}: {role}() output pytree structure "
                "must match initial_guess."
            )


def custom_root(
    f: Callable[[Tree], Tree],
    initial_guess: Tree,
    solve: Callable[[Callable[[Tree], Tree], Tree], Tree],
    tangent_solve: Callable[[Callable[[Tree], Tree], Tree], Tree],
    has_aux: bool = False,
) -> Tree:
    """x = solve(f, initial_guess) with f(x) = 0, differentiated by the implicit function theorem.

    dx solves ∂f/∂x·dx = -∂f/∂θ·dθ for what f closes over, by `tangent_solve(g, y)`, which returns x
    with g(x) = y for a linear g; for scalars `lambda g, y: y / g(1.0)`. With `has_aux`, solve
    returns (x, aux), aux being not differentiated. The guess has no influence on derivatives.
    TypeError where f or solve return another structure than the guess has; ValueError where there
    is no aux.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 20, lambda i, x: x - f(x) / primal.grad(f)(x), x)
    >>> root = lambda a: custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> primal.grad(root)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    check_callable("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    leaves, spec = flatten(initial_guess)
    avals = check_leaves("custom_root", initial_guess, leaves)
    closed = _stage_residual(f, spec, avals)
    root = _Root(closed, spec, solve, tangent_solve, has_aux)
    given = [operand(x) for x in leaves]
    if where_to_bind([*closed.consts, *given]) != "stage":
        with contextlib.suppress(errors.UnexpectedTracerError):
            return root.of(closed.consts, given, [])
    # In programs, and where a solver closes over what is being differentiated: such values are
    # operands of the whole, whose derivatives do not count, and reach it without their tangents.
    return root.of(closed.consts, given, root.stage_solvers(closed.consts, avals))
