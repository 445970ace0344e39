"""Choices between functions of trees: cond, switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

import numpy as np

from primal.api.control.bodies import (
    Body,
    Names,
    check_callable,
    check_leaves,
    concrete,
    described,
    difference,
    staged_in,
    trace_body,
)
from primal.api.control.with_refs import closing_over_refs, taking_all, union
from primal.api.operands import abstract, check_outputs, name_of
from primal.api.operands import operand as as_operand
from primal.api.tangents import is_float0
from primal.base import dtypes, errors
from primal.base.config import settings
from primal.base.pytree import flatten, unflatten
from primal.base.structures import replaced
from primal.control.cond import cond as cond_op
from primal.control.programs import same_type
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Var
from primal.ir.trace import Array, Arrays, aval_of
from primal.ops.choose import clamp, convert_element_type
from primal.ops.elementwise import ne
from primal.ops.types import iterates
from primal.runtime import watch
from primal.runtime.program_refs import settle_refs, values_of

Tree = Any
INT32 = np.dtype(np.int32)
# The role of a branch, the function, and the tree and types of its results.
Side = tuple[str, Callable[..., Tree], Any, Sequence[Aval]]
# What a function raises that works on values, but not on all values of a type at once.
_UNTRACEABLE = (
    errors.ConcretizationTypeError,
    errors.TracerArrayConversionError,
    errors.TracerIntegerConversionError,
    errors.NonConcreteBooleanIndexError,
    RecursionError,
)


class _NotGiven:
    def __repr__(self) -> str:
        return "<not given>"


_not_given = _NotGiven()
Operands = TypeVarTuple("Operands")
X = TypeVar("X")
Y = TypeVar("Y")
R = TypeVar("R")


@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Operands], Arrays],
    false_fun: Callable[[*Operands], Arrays],
    *operands: *Operands,
) -> Arrays: ...
@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Operands], float | Array],
    false_fun: Callable[[*Operands], float | Array],
    *operands: *Operands,
) -> Array: ...
@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Operands], R],
    false_fun: Callable[[*Operands], R],
    *operands: *Operands,
) -> R: ...
@overload
def cond(
    pred: Any, true_fun: Callable[[X], Any], false_fun: Callable[[X], Any], *, operand: X
) -> Any: ...
@overload
def cond(
    pred: Any,
    true_operand: X,
    true_fun: Callable[[X], Any],
    false_operand: Y,
    false_fun: Callable[[Y], Any],
    /,
) -> Any: ...
@errors.api_boundary  # type: ignore[misc]  # mypy: an implementation has no word for Operands
def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any,
    *operands: Any,
    operand: Any = _not_given,
) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands).

    Both functions must return the same tree of shapes and dtypes. In a traced program both are
    traced and one runs. Where `pred` is concrete and nothing is being traced, the chosen function
    is simply called, and the other traced once to compare the types of its results. Under vmap
    with a predicate per example both run, and values are selected.
    `operand=x` is an older spelling of a single operand.

    TypeError for a predicate that is no scalar number, and, naming the leaf, where the functions
    return different types.

    >>> cond(False, lambda x: x**2.0, lambda x: x**3.0, np.float32([2.0]))
    Array([8.], dtype=float32)
    """
    if not (callable(true_fun) and callable(false_fun)):
        # cond(pred, true_operand, true_fun, false_operand, false_fun), the oldest spelling.
        if callable(false_fun) and len(operands) == 2 and callable(operands[1]):
            of_true, of_false, true_, false_ = true_fun, operands[0], false_fun, operands[1]
            return cond(pred, lambda a, b: true_(a), lambda a, b: false_(b), of_true, of_false)
        check_callable("cond", true_fun=true_fun, false_fun=false_fun)
    operands = _operands("cond", operands, operand)
    aval = _scalar("cond", "predicate", pred)
    real = dtypes.issubdtype(aval.dtype, np.number) and aval.dtype.kind != "c"
    if aval.dtype != np.bool_ and not real:
        raise TypeError(
            f"[cond] expected a boolean or a real number as predicate, got {aval.str_short()}: "
            f"{_NUMBER['predicate']}."
        )
    value = concrete(pred)
    # By number; they are written, and so traced, the other way round.
    names = ("false_fun", "true_fun")
    functions, operands = closing_over_refs("cond", (false_fun, true_fun), operands)
    if value is not None and not staged_in():
        return _at_once("cond", int(bool(value)), names, functions, operands, order=-1)
    if aval.dtype != np.bool_:
        zero = np.zeros((), aval.dtype)[()]
        pred = ne(pred, zero) if value is None else bool(value)
    index = convert_element_type(pred, new_dtype=INT32, weak_type=False)
    return _staged("cond", index, names, functions, operands, order=-1)


@overload
def switch(
    index: Any, branches: Sequence[Callable[[*Operands], Arrays]], *operands: *Operands
) -> Arrays: ...
@overload
def switch(
    index: Any, branches: Sequence[Callable[[*Operands], float | Array]], *operands: *Operands
) -> Array: ...
@overload
def switch(index: Any, branches: Sequence[Callable[[*Operands], R]], *operands: *Operands) -> R: ...
@overload
def switch(index: Any, branches: Sequence[Callable[..., Any]], *, operand: Any) -> Any: ...
@errors.api_boundary  # type: ignore[misc]
def switch(
    index: Any, branches: Sequence[Any], *operands: Any, operand: Any = _not_given
) -> Any:
    """branches[index](*operands), with index clamped into 0 … len(branches)-1.

    As `cond`, for any number of branches. TypeError for an index that is no integer scalar;
    ValueError without branches.

    >>> switch(7, [lambda x: x + 1, lambda x: x * 10], 3.0)
    Array(30., dtype=float32, weak_type=True)
    """
    if not isinstance(branches, Sequence):
        branches = list(branches) if iterates(branches) else branches
    if not isinstance(branches, Sequence) or not all(callable(f) for f in branches):
        raise TypeError(f"[switch] expected a sequence of functions as branches, got {branches!r}.")
    if not branches:
        raise ValueError(
            "[switch] expected at least one branch, got an empty sequence: Empty branch sequence."
        )
    branches, operands = closing_over_refs(
        "switch", branches, _operands("switch", operands, operand)
    )
    aval = _scalar("switch", "index", index)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"[switch] expected an integer as index, got {aval.str_short()}: {_NUMBER['index']}."
        )
    value = concrete(index)
    last = len(branches) - 1
    names = [f"branch {i}" for i in range(len(branches))]
    if last == 0:
        return _chosen("switch", 0, names, branches, operands)
    if value is not None:
        index = np.int32(min(max(int(value), 0), last))
        if not staged_in():
            return _at_once("switch", int(index), names, branches, operands)
    else:
        index = convert_element_type(index, new_dtype=INT32, weak_type=False)
        index = clamp(np.int32(0), index, np.int32(last))
    return _staged("switch", index, names, branches, operands)


def _operands(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _not_given:
        return operands
    if operands:
        raise TypeError(
            f"[{name}] expected either operands or `operand=`, got both: {operand!r} and "
            f"{operands!r}."
        )
    return (operand,)


# What is asked for, in the words that programs look for in the texts of errors.
_SCALAR = {"predicate": "Pred must be a scalar", "index": "Branch index must be scalar"}
_NUMBER = {
    "predicate": "Pred type must be either boolean or number",
    "index": "Index type must be an integer",
}


def _scalar(name: str, what: str, value: Any) -> Aval:
    """The aval of a predicate or index; a TypeError unless it is a scalar."""
    if value is None:
        raise TypeError(f"[{name}] expected a scalar as {what}, got None: {name} {what} is None.")
    try:
        aval = abstract(value)
    except TypeError:
        raise TypeError(
            f"[{name}] expected a scalar as {what}, got {value!r} of type {type(value)}: "
            f"{_NUMBER[what]}."
        ) from None
    if aval.shape:
        raise TypeError(
            f"[{name}] expected a scalar as {what}, got an array of shape {aval.shape}: "
            f"{_SCALAR[what]}. Reduce it with any() or all(), choose elementwise with "
            "primal.numpy.where, or vmap."
        )
    return aval


def _at_once(
    name: str,
    which: int,
    roles: Sequence[str],
    functions: Sequence[Callable[..., Tree]],
    operands: tuple[Any, ...],
    order: int = 1,
) -> Tree:
    """`_chosen`; as one operation where bad values are looked for, which counts its results."""
    if watch.ever and watch.wanted(settings()) and not settings().disable_jit:
        try:
            return _staged(name, np.int32(which), roles, functions, operands, order)
        except _UNTRACEABLE:
            pass
    return _chosen(name, which, roles, functions, operands)


def _chosen(
    name: str,
    which: int,
    roles: Sequence[str],
    functions: Sequence[Callable[..., Tree]],
    operands: tuple[Any, ...],
) -> Tree:
    """functions[which] called at once on arrays, its results as arrays.

    The others are traced, once per types, for the types of their results alone: a program must not
    become wrong where its predicate changes. One that cannot be traced (it reads values, or calls
    itself) is taken at its word, and so are all under `disable_jit`.
    """
    leaves, spec = flatten(operands)
    avals = check_leaves(name, operands, leaves)
    fun = functions[which]
    result = fun(*unflatten(spec, [as_operand(x) for x in leaves]))
    outs, out_spec = flatten(result)
    check_outputs(name_of(fun), result, outs)
    outs = [as_operand(o) for o in outs]
    if len(functions) > 1 and not settings().disable_jit:
        sides: list[Side] = []
        for role, f in zip(roles, functions, strict=True):
            if f is fun:
                sides.append((role, f, out_spec, [aval_of(o) for o in outs]))
                continue
            try:
                body = _traced(f, operands, spec, avals)
            except _UNTRACEABLE:
                continue
            sides.append((role, f, body.spec, body.out_avals))
        _check_agreement(name, sides)
        # As in programs, the first decides whether results are weakly typed.
        for i, aval in enumerate(sides[0][3]):
            if aval_of(outs[i]).weak_type != aval.weak_type:
                outs[i] = convert_element_type(
                    outs[i], new_dtype=aval.dtype, weak_type=aval.weak_type
                )
    # Programs give NumPy's float0 too.
    return unflatten(
        out_spec, [np.zeros(o.shape, dtypes.float0) if is_float0(o) else o for o in outs]
    )


def _traced(
    f: Callable[..., Tree], operands: tuple[Any, ...], spec: Any, avals: Sequence[Aval]
) -> Body:
    def on_tuple(args: Any) -> Tree:
        return f(*args)

    on_tuple.__name__ = name_of(f)
    return trace_body(on_tuple, (spec,), avals, Names(("operands",), (operands,)), (f, "branch"))


def _staged(
    name: str,
    index: Any,
    roles: Sequence[str],
    functions: Sequence[Callable[..., Tree]],
    operands: tuple[Any, ...],
    order: int = 1,
) -> Tree:
    """One operation of all the functions, which are traced forwards or, with -1, backwards."""
    leaves, spec = flatten(operands)
    avals = check_leaves(name, operands, leaves)
    bodies = [_traced(f, operands, spec, avals) for f in functions[::order]][::order]
    _check_agreement(
        name,
        [(r, f, b.spec, b.out_avals) for r, f, b in zip(roles, functions, bodies, strict=True)],
    )
    refs = union(bodies)
    if refs:
        written = [(r, w) for r, w in refs if w]
        programs = [taking_all(b, len(leaves), refs, written) for b in bodies]
        bodies = [replaced(b, program=p) for b, p in zip(bodies, programs, strict=True)]
    consts, branch_programs = _with_common_consts(bodies)
    results = cond_op(index, *consts, *leaves, *values_of(refs), branches=branch_programs)
    count = len(bodies[0].out_avals)
    settle_refs(refs, results[count:])
    return unflatten(bodies[0].spec, results[:count])


def _check_agreement(name: str, sides: Sequence[Side]) -> None:
    first_role, first_fun, first_spec, first_avals = sides[0]
    for role, fun, spec, avals in sides[1:]:
        if spec == first_spec and all(
            same_type(a, b) for a, b in zip(first_avals, avals, strict=True)
        ):
            continue
        what = "pytree structure" if spec != first_spec else "types"
        said, table = difference(
            "output", (first_role, first_spec, first_avals), (role, spec, avals)
        )
        raise TypeError(
            f"[{name}] expected branches whose outputs have the same {what}, got others: {said}.\n"
            f"{table}\n{first_role} is {described(first_fun)}, {role} is {described(fun)}. Let "
            "both return the same tree of shapes and dtypes (x.astype(dtype) converts)."
        )


def _with_common_consts(bodies: Sequence[Body]) -> tuple[list[Any], tuple[ClosedJaxpr, ...]]:
    """The values that the branches close over, each once, and branches that take them all."""
    consts: dict[int, Any] = {}
    for body in bodies:
        for c in body.consts:
            consts.setdefault(id(c), c)
    programs = []
    for body in bodies:
        jaxpr = body.program.jaxpr
        n = len(body.consts)
        own = {id(c): v for c, v in zip(body.consts, jaxpr.invars[:n], strict=True)}
        shared = [own[key] if key in own else Var(aval_of(c)) for key, c in consts.items()]
        programs.append(ClosedJaxpr(jaxpr.replace(invars=[*shared, *jaxpr.invars[n:]])))
    return list(consts.values()), tuple(programs)
