"""Loops over trees: scan, map, while_loop, fori_loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from primal.api.control.bodies import (
    Body,
    Names,
    Words,
    check_callable,
    check_carry,
    check_leaves,
    concrete,
    promoted,
    trace_body,
)
from primal.api.control.with_refs import Loop, while_with_refs
from primal.api.differentiable import differentiated
from primal.api.operands import abstract, check_outputs, name_of, operand
from primal.api.vectorize import vmap
from primal.base import dtypes, errors
from primal.base.config import settings
from primal.base.pytree import PyTreeDef, flatten, flatten_with_path, keystr, unflatten
from primal.control.custom import TOUCHES_REFS
from primal.control.scan import scan as scan_op
from primal.control.while_ import while_ as while_op
from primal.ir.avals import Aval
from primal.ir.trace import Array, Arrays, aval_of, concrete_or_error
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import add, lt
from primal.ops.shape import concatenate, reshape
from primal.ops.shape import slice as slice_op
from primal.runtime.program_refs import check_no_refs
from primal.runtime.refs import Ref, RowRef

Tree = Any
# Their types, as far as a checker can know them: of functions that take numbers as well as arrays
# (`fori_loop`, `cond`) it would refuse calls that are right.
Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")
BOOL = np.dtype(np.bool_)


# scan


@errors.api_boundary
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """(carry_n, [y_0 … y_{n-1}]) of the recurrence carry_{i+1}, y_i = f(carry_i, x_i).

    The x_i are slices along the leading axis of the leaves of `xs`, the y_i are stacked; with
    `reverse`, i runs from n-1 to 0. `f` is traced once and the program holds one copy of it
    (`unroll` copies per trip of the compiled loop; True: all). `length` is needed where `xs` has
    no leaves. Differentiable in both modes. `_split_transpose` is accepted and changes nothing.

    TypeError where the carry that f returns differs in structure, shape or dtype from the one it
    takes, which names the leaf; ValueError where leading axes or `length` disagree.

    >>> carry, ys = scan(lambda c, x: (c + x, c * x), 0.0, np.float32([1, 2, 3]))
    >>> carry, ys
    (Array(6., dtype=float32), Array([0., 2., 9.], dtype=float32))
    """
    check_callable("scan", f=f)
    return _scan(Words("scan", f), f, init, xs, length, reverse, unroll)


def _scan(
    words: Words,
    f: Callable[[Tree, Tree], tuple[Tree, Tree]],
    init: Tree,
    xs: Tree,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Tree, Tree]:
    init_leaves, init_spec = flatten(init)
    x_leaves, x_spec = flatten(xs)
    check_no_refs(words.name, init, init_leaves)
    given = x_leaves
    x_refs = [(i, x) for i, x in enumerate(x_leaves) if isinstance(x, Ref)]
    if x_refs:
        x_leaves = [x[...] if isinstance(x, Ref) else x for x in x_leaves]
        xs = unflatten(x_spec, x_leaves)
    init_avals = check_leaves(words.name, init, init_leaves)
    x_avals = check_leaves(words.name, xs, x_leaves)
    n = _scan_length(xs, x_avals, length)
    per_trip = _unroll_of("scan", unroll, n)
    if settings().disable_jit and n:
        return _scan_in_python(f, init, given, x_spec, n, reverse)
    step_avals = [Aval(a.shape[1:], a.dtype, a.weak_type) for a in x_avals]
    names = Names(("carry", "x"), (init, xs))
    ref_args = tuple([len(init_leaves) + i for i, _ in x_refs])
    origin = words.fun, words.name

    def traced(carry_avals: Sequence[Aval]) -> tuple[Body, Any, Any, int]:
        avals = [*carry_avals, *step_avals]
        body = trace_body(f, (init_spec, x_spec), avals, names, origin, ref_args)
        carry_spec, y_spec = _pair_of(body)
        return body, carry_spec, y_spec, PyTreeDef(carry_spec).num_leaves

    body, carry_spec, y_spec, count = traced(init_avals)
    if carry_spec == init_spec:
        moved = promoted(init_leaves, init_avals, body.out_avals[:count])
        if moved is not None:
            init_leaves, init_avals = moved, [aval_of(x) for x in moved]
            body, carry_spec, y_spec, count = traced(init_avals)
    check_carry(words, init_spec, init_avals, carry_spec, body.out_avals[:count])
    if n and TOUCHES_REFS in body.program.effects and differentiated():
        # What such a rule writes, and where, is known step by step only.
        init = unflatten(init_spec, init_leaves)
        return _scan_in_python(f, init, given, x_spec, n, reverse)
    loop = Loop(body.program, body.consts, init_leaves, body.refs, count, len(x_leaves))
    results = scan_op(
        *loop.consts,
        *loop.init,
        *x_leaves,
        jaxpr=loop.program,
        length=n,
        num_consts=len(loop.consts),
        num_carry=len(loop.init),
        reverse=bool(reverse),
        unroll=per_trip,
    )
    if body.refs or x_refs:
        results = loop.settled(results)
        for (_, ref), value in zip(x_refs, results[len(results) - len(x_refs) :], strict=True):
            ref[...] = value
    else:
        jaxpr = loop.program.jaxpr
        given, ys = jaxpr.invars[len(loop.consts) :], jaxpr.outvars[count:]
        rows: dict[Any, Any] = dict(zip(given[count:], x_leaves, strict=True))
        stays = _kept(jaxpr.outvars, given[:count], loop.init, results[:count])
        stacked = [_own(rows.get(y), r) for y, r in zip(ys, results[count:], strict=True)]
        results = [*stays, *stacked]
    y_leaves = results[count : len(results) - len(x_refs)]
    return unflatten(carry_spec, results[:count]), unflatten(y_spec, y_leaves)


def _kept(
    outvars: Sequence[Any], invars: Sequence[Any], init: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """The carry after a loop: where no step changes it, the array that it was before.

    So nothing is copied, and what is one value for all examples of a vmap is seen to be one, also
    by a loop or a choice around this one.
    """
    parts = zip(outvars[: len(invars)], invars, init, results, strict=True)
    return [_own(x if new is old else None, r) for new, old, x, r in parts]


def _own(x: Any, result: Any) -> Any:
    """x where it is an array of ours; NumPy's, which may change, were copied to the result."""
    return x if isinstance(x, Array) else result


def _pair_of(body: Body) -> tuple[Any, Any]:
    spec = body.spec
    if spec.type not in (tuple, list) or spec.num_children != 2:
        got = unflatten(spec, [a.str_short() for a in body.out_avals])
        raise TypeError(
            f"[scan] expected f to return a pair (carry, y), got {got}: scan body output must be a "
            "pair."
        )
    return tuple(spec.children())


def _scan_length(xs: Tree, avals: Sequence[Aval], length: Any) -> int:
    """The number of steps, of which every leaf of xs and `length` say the same."""
    sizes: dict[int, str] = {}
    if avals:
        paths = [path for path, _ in flatten_with_path(xs)[0]]
        for path, a in zip(paths, avals, strict=True):
            if not a.shape:
                raise ValueError(
                    "[scan] expected xs of arrays with a leading axis to scan over, got the "
                    f"scalar {a} at xs{keystr(path)}: scan got value with no leading axis to scan "
                    "over. Values that are the same in every step are closed over, or carried."
                )
            sizes.setdefault(a.shape[0], f"xs{keystr(path)} has {a.shape[0]}")
    if len(sizes) > 1:
        raise ValueError(
            "[scan] expected leaves of xs with one leading size, got different leading axis "
            f"sizes: {', '.join(sizes.values())}."
        )
    if length is None:
        if not sizes:
            raise ValueError(
                "[scan] expected xs or `length`, got no values to scan over and no length."
            )
        return next(iter(sizes))
    # A quotient such as T / dt counts as the whole number below it.
    whole = int(length) if isinstance(length, float | np.floating) else length
    n = _static_int("scan", "length", whole)
    if n < 0:
        raise ValueError(f"[scan] expected a length of at least 0, got {n}.")
    if sizes and n not in sizes:
        raise ValueError(
            f"[scan] expected a length that agrees with xs, got length={n} where "
            f"{', '.join(sizes.values())}: scan got `length` argument of {n} which disagrees with "
            f"leading axis sizes {list(sizes)}."
        )
    return n


def _static_int(name: str, what: str, value: Any) -> int:
    found = concrete(value)
    if found is None:
        try:
            concrete_or_error(value, "int")
        except errors.ConcretizationTypeError as e:
            raise type(e)(
                f"[{name}] expected a concrete integer as `{what}`, got a traced one: the number "
                f"of steps of a {name} is part of the program. Use while_loop or fori_loop where "
                f"it is computed.\n{e}"
            ) from None
    try:
        return operator.index(found)
    except TypeError:
        raise TypeError(
            f"[{name}] expected an integer as `{what}`, got {value!r} of {type(value)}."
        ) from None


def _unroll_of(name: str, unroll: Any, length: int) -> int:
    if isinstance(unroll, bool | np.bool_):
        return max(length, 1) if unroll else 1
    n = _static_int(name, "unroll", unroll)
    if n < 0:
        raise ValueError(
            f"[{name}] expected `unroll` of at least 0 or a bool, got {n}: `unroll` must be a "
            "`bool` or a non-negative `int`."
        )
    return max(n, 1)


def _item(x: Any, i: int) -> Any:
    """x[i] along the leading axis."""
    if isinstance(x, Ref):
        return RowRef(x, i)
    shape = aval_of(x).shape
    rest = (0,) * (len(shape) - 1)
    row = slice_op(x, start_indices=(i, *rest), limit_indices=(i + 1, *shape[1:]), strides=None)
    return reshape(row, shape=shape[1:])


def _stack(xs: Sequence[Any]) -> Any:
    rows = [reshape(x, shape=(1, *x.shape)) for x in [operand(x) for x in xs]]
    return concatenate(*rows, dimension=0)


def _scan_in_python(
    f: Any, init: Tree, x_leaves: Sequence[Any], x_spec: Any, n: int, reverse: bool
) -> tuple[Tree, Tree]:
    """The loop in Python, as of `disable_jit`: f runs n times on values."""
    x_leaves = [x if isinstance(x, Ref) else operand(x) for x in x_leaves]
    leaves, carry_spec = flatten(init)
    carry, rows, spec = unflatten(carry_spec, [operand(x) for x in leaves]), [], None
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, unflatten(x_spec, [_item(x, i) for x in x_leaves]))
        leaves, spec = flatten(y)
        rows.append(leaves)
    if reverse:
        rows.reverse()
    ys = unflatten(spec, [_stack(column) for column in zip(*rows, strict=True)])
    leaves, carry_spec = flatten(carry)
    return unflatten(carry_spec, [operand(c) for c in leaves]), ys


# map


@overload
def map(f: Callable[[X], Arrays], xs: X, *, batch_size: int | None = None) -> Arrays: ...
@overload
def map(f: Callable[[X], float], xs: X, *, batch_size: int | None = None) -> Array: ...
@overload
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...
@errors.api_boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """[f(x_0), f(x_1), …] over the leading axis of the leaves of `xs`, one after the other.

    As vmap(f)(xs), but with the memory of one step. `batch_size` runs that many steps at once, by
    vmap, and the rest, if it does not divide the number of steps, in a smaller one.

    >>> map(lambda x: x + 1, np.float32([1, 2, 3]))
    Array([2., 3., 4.], dtype=float32)
    """
    check_callable("map", f=f)
    if batch_size is None:
        return _mapped(f, xs)
    size = _static_int("map", "batch_size", batch_size)
    if size < 1:
        raise ValueError(f"[map] expected a batch_size of at least 1, got {size}.")
    leaves, spec = flatten(xs)
    n = _scan_length(xs, check_leaves("map", xs, leaves), None)
    leaves = [operand(x) for x in leaves]
    whole = n // size * size
    parts = []
    if whole:
        blocks = [
            reshape(_rows(x, 0, whole), shape=(whole // size, size, *x.shape[1:])) for x in leaves
        ]
        ys = _mapped(vmap(f), unflatten(spec, blocks))
        outs, out_spec = flatten(ys)
        parts.append([reshape(y, shape=(whole, *y.shape[2:])) for y in outs])
    if whole < n or not n:
        rest = unflatten(spec, [_rows(x, whole, n) for x in leaves])
        outs, out_spec = flatten(vmap(f)(rest) if n else _mapped(f, xs))
        parts.append(outs)
    columns = [p[0] if len(p) == 1 else concatenate(*p, dimension=0) for p in zip(*parts)]  # noqa: B905
    return unflatten(out_spec, columns)


def _mapped(f: Callable[[Tree], Tree], xs: Tree) -> Tree:
    """The stacked f(x_i)."""
    g = _checked(f)

    def step(_: Any, x: Any) -> tuple[Any, Any]:
        return (), g(x)

    step.__name__ = name_of(f)
    return _scan(Words("map", f), step, (), xs)[1]


def _checked(f: Callable[..., Tree]) -> Callable[..., Tree]:
    """f, whose results that are no arrays are named as they lie in what it returns."""

    def run(*args: Any) -> Tree:
        result = f(*args)
        check_outputs(name_of(f), result, flatten(result)[0])
        return result

    return run


def _rows(x: Any, start: int, stop: int) -> Any:
    shape = x.shape
    if start == 0 and stop == shape[0]:
        return x
    rest = (0,) * (len(shape) - 1)
    return slice_op(x, start_indices=(start, *rest), limit_indices=(stop, *shape[1:]), strides=None)


# while_loop


@errors.api_boundary
def while_loop(
    cond_fun: Callable[[Carry], Any], body_fun: Callable[[Carry], Carry], init_val: Carry
) -> Carry:
    """The first of init, body(init), body(body(init)), … for which `cond_fun` does not hold.

    The value keeps its structure, shapes and dtypes; both functions are traced once. Forward mode
    differentiates it; reverse mode raises ValueError, as it would have to store an unknown number
    of steps: use scan, or fori_loop with bounds that are known while tracing.

    TypeError where the body returns another type of carry, or the condition no boolean scalar.

    >>> while_loop(lambda x: x < 10, lambda x: x * 2, 3)
    Array(12, dtype=int32, weak_type=True)
    """
    check_callable("while_loop", body_fun=body_fun, cond_fun=cond_fun)
    return _while_loop(Words("while_loop", body_fun), cond_fun, body_fun, init_val)


def _while_loop(
    words: Words, cond_fun: Callable[[Tree], Any], body_fun: Callable[[Tree], Tree], init_val: Tree
) -> Tree:
    leaves, spec = flatten(init_val)
    check_no_refs(words.name, init_val, leaves)
    avals = check_leaves(words.name, init_val, leaves)
    if settings().disable_jit:
        value = unflatten(spec, [operand(x) for x in leaves])
        try:
            while bool(cond_fun(value)):
                value = body_fun(value)
            outs, out_spec = flatten(value)
            return unflatten(out_spec, [operand(x) for x in outs])
        except errors.TracerBoolConversionError:
            pass  # The condition is known only while running (under vmap, say): trace the loop.
    names = Names(("carry",), (init_val,))
    origin = words.fun, words.name
    condition = trace_body(cond_fun, (spec,), avals, names)
    body = trace_body(body_fun, (spec,), avals, names, origin)
    if body.spec == spec:
        moved = promoted(leaves, avals, body.out_avals)
        if moved is not None:
            leaves, avals = moved, [aval_of(x) for x in moved]
            condition = trace_body(cond_fun, (spec,), avals, names)
            body = trace_body(body_fun, (spec,), avals, names, origin)
    _check_condition(condition)
    check_carry(words, spec, avals, body.spec, body.out_avals)
    if body.refs or condition.refs:
        return unflatten(spec, while_with_refs(condition, body, leaves))
    results = while_op(
        *condition.consts,
        *body.consts,
        *leaves,
        cond_jaxpr=condition.program,
        body_jaxpr=body.program,
        cond_nconsts=len(condition.consts),
        body_nconsts=len(body.consts),
    )
    jaxpr = body.program.jaxpr
    given = jaxpr.invars[len(body.consts) :]
    return unflatten(spec, _kept(jaxpr.outvars, given, leaves, results))


def _check_condition(condition: Body) -> None:
    if not condition.spec.is_leaf():
        raise TypeError(
            "[while_loop] expected cond_fun to return a boolean scalar, got a tree "
            f"{PyTreeDef(condition.spec)}."
        )
    aval = condition.out_avals[0]
    if aval.shape or aval.dtype != BOOL:
        raise TypeError(
            "[while_loop] expected cond_fun to return a boolean scalar, got "
            f"{aval.str_short()}. Compare, as in x > 0, or reduce with any() or all()."
        )


# fori_loop


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Array,
    *,
    unroll: int | bool | None = ...,
) -> Array: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Tree,
    *,
    unroll: int | bool | None = ...,
) -> Tree: ...
@errors.api_boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Tree], Tree],
    init_val: Tree,
    *,
    unroll: int | bool | None = None,
) -> Tree:
    """val after `for i in range(lower, upper): val = body_fun(i, val)`.

    With bounds known while tracing it is a scan whose i is a weak int32 (int64 with x64), as a
    Python integer, and differentiable in both modes; otherwise a while_loop, in forward mode
    only, whose i has the bounds' dtype. `unroll` is that of scan, and needs known bounds. They may
    be floats of one dtype: those that are not whole, which `range` refuses, make a while_loop.

    TypeError for bounds that are no real numbers or of two dtypes; ValueError for `unroll` with
    bounds that are computed.

    >>> fori_loop(0, 4, lambda i, x: x + i, 10)
    Array(16, dtype=int32, weak_type=True)
    """
    check_callable("fori_loop", body_fun=body_fun)
    low, high = _bounds(lower, upper)
    known = [concrete(b) for b in (low, high)]
    static = all(b is not None and float(b).is_integer() for b in known)
    if unroll is not None and not static:
        raise ValueError(
            "[fori_loop] expected bounds known while tracing because `unroll` is given, got "
            "computed ones. Pass Python integers, or leave `unroll` out."
        )
    check_leaves("fori_loop", init_val, flatten(init_val)[0])
    turn = _checked(body_fun)
    if static:
        start, stop = (int(b) for b in known)

        def step(carry: Any, _: None) -> tuple[Any, None]:
            i, value = carry
            return (add(i, 1), turn(i, value)), None

        step.__name__ = name_of(body_fun)
        (_, result), _ = _scan(
            Words("fori_loop", body_fun, 1), step, (start, init_val), None, max(stop - start, 0),
            unroll=1 if unroll is None else unroll,
        )  # fmt: skip
        return result

    def advance(carry: Any) -> Any:
        i, end, value = carry
        return add(i, 1), end, turn(i, value)

    advance.__name__ = name_of(body_fun)
    words = Words("fori_loop", body_fun, 2)
    return _while_loop(words, _below, advance, (low, high, init_val))[2]


def _below(carry: Any) -> Any:
    """Whether the index of a fori_loop is below its end."""
    return lt(carry[0], carry[1])


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Both bounds in one dtype: a Python integer takes the other bound's, or stays weak."""
    avals = []
    for name, bound in (("lower", lower), ("upper", upper)):
        try:
            aval = abstract(bound)
        except TypeError:
            raise TypeError(
                f"[fori_loop] expected an integer scalar as `{name}`, got {bound!r}."
            ) from None
        is_real = any(dtypes.issubdtype(aval.dtype, kind) for kind in (np.integer, np.floating))
        if aval.shape or not is_real:
            raise TypeError(
                f"[fori_loop] expected an integer scalar as `{name}`, got {aval.str_short()}."
            )
        avals.append(aval)
    a, b = avals
    whole = all(dtypes.issubdtype(x.dtype, np.integer) for x in avals)
    if a.dtype != b.dtype and not (whole and (a.weak_type or b.weak_type)):
        raise TypeError(
            "[fori_loop] expected lower and upper of one dtype, got "
            f"{a.dtype.name} and {b.dtype.name}: lower and upper arguments to fori_loop must have "
            f"equal types, got {a.dtype.name} and {b.dtype.name}."
        )
    dtype = a.dtype if b.weak_type else b.dtype
    return _in_dtype(lower, a, dtype), _in_dtype(upper, b, dtype)


def _in_dtype(bound: Any, aval: Aval, dtype: Any) -> Any:
    if isinstance(bound, int):
        if int(np.asarray(bound).astype(dtype)) != bound:
            raise OverflowError(f"[fori_loop] expected bounds that fit {dtype.name}, got {bound}.")
        if aval.dtype != dtype:
            return np.asarray(bound).astype(dtype)[()]
    elif aval.dtype != dtype:
        return convert_element_type(bound, new_dtype=dtype, weak_type=False)
    return bound
