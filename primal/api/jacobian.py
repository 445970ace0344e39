"""Jacobians and Hessians of functions of trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.autodiff import jvp, vjp
from primal.api.differentiable import with_arguments
from primal.api.operands import name_of, operand
from primal.api.vectorize import vmap
from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, tree_map, unflatten
from primal.base.wrapping import P, Transformed, check_callable, wraps
from primal.ir.avals import Aval
from primal.ir.trace import aval_of
from primal.ops.shape import reshape, slice
from primal.ops.spread import zeros_like_aval
from primal.runtime.array import from_numpy
from primal.transforms.jvp import as_weak


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed[P, Any]:
    """The Jacobian by forward mode, one column at a time: best for few inputs.

    jacfwd(f)(x)[i, j] = ∂f_i/∂x_j; shape (*f(x).shape, *x.shape), a tree of trees for trees.
    TypeError for what is no function, and where inputs are no floats.

    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @wraps(fun, "Jacobian")
    @api_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, dynamic = _partial(fun, numbers, args, kwargs)
        xs, in_spec = flatten(dynamic)
        xs = [operand(x) for x in xs]
        _check_inputs("jacfwd", xs, holomorphic)
        found: list[Any] = []

        def push(*tangents: Any) -> Any:
            result = jvp(
                partial, tuple(unflatten(in_spec, xs)), unflatten(in_spec, tangents), has_aux
            )
            found.append(result[0])
            return result[1:]

        basis = standard_basis(xs)
        axes = (-1, None) if has_aux else (-1,)
        result = vmap(push, out_axes=axes)(*basis)
        _check_outputs("jacfwd", flatten(found[0])[0], holomorphic)
        jac = tree_map(
            lambda y, j: _columns(j, aval_of(y), xs, in_spec, argnums),
            found[0],
            result[0],
        )
        return (jac, result[1]) if has_aux else jac

    return jacobian


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Transformed[P, Any]:
    """The Jacobian by reverse mode, one row at a time: best for few outputs.

    jacrev(f)(x)[i, j] = ∂f_i/∂x_j; shape (*f(x).shape, *x.shape), a tree of trees for trees.
    TypeError for what is no function, and where inputs are no floats.

    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @wraps(fun, "Jacobian")
    @api_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, dynamic = _partial(fun, numbers, args, kwargs)
        xs, in_spec = flatten(dynamic)
        if not allow_int:
            _check_inputs("jacrev", [operand(x) for x in xs], holomorphic)
        y, pullback, *aux = vjp(partial, *dynamic, has_aux=has_aux)
        ys, out_spec = flatten(y)
        _check_outputs("jacrev", ys, holomorphic)
        basis = standard_basis(ys)
        rows = vmap(lambda *cts: pullback(unflatten(out_spec, cts)))(*basis)
        rows = tree_map(lambda row, x: _typed_as(row, aval_of(x)), rows, dynamic)
        # rows: per argument a tree of arrays (total outputs, *x.shape); cut by output leaf.
        shapes = [aval_of(o).shape for o in ys]
        cuts = np.cumsum([0, *[int(np.prod(s, dtype=int)) for s in shapes]])

        def part(i: int) -> Any:
            def cut(r: Any) -> Any:
                rest = aval_of(r).shape[1:]
                rows_i = slice(
                    r,
                    start_indices=(int(cuts[i]), *[0] * len(rest)),
                    limit_indices=(int(cuts[i + 1]), *rest),
                    strides=None,
                )
                return reshape(rows_i, shape=(*shapes[i], *rest))

            tree = tree_map(cut, rows)
            return tree[0] if isinstance(argnums, int) else tree

        jac = unflatten(out_spec, [part(i) for i in range(len(ys))])
        return (jac, aux[0]) if has_aux else jac

    return jacobian


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed[P, Any]:
    """The matrix of second derivatives, forward over reverse: hessian(f) = jacfwd(jacrev(f)).

    >>> hessian(lambda x: x[0] * x[1])(np.array([1.0, 2.0]))
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def standard_basis(xs: Sequence[Any]) -> list[Any]:
    """The unit vectors of the space of these arrays: per array, (total size, *shape)."""
    avals = [aval_of(x) for x in xs]
    sizes = [a.size for a in avals]
    total = sum(sizes)
    out: list[Any] = []
    start = 0
    for a, n in zip(avals, sizes, strict=True):
        if dtypes.to_tangent_dtype(a.dtype) == dtypes.float0:
            out.append(np.zeros((total, *a.shape), dtypes.float0))
        else:
            part = np.eye(total, n, -start, dtype=np.float32).astype(a.dtype)
            aval = Aval((total, *a.shape), a.dtype, a.weak_type)
            out.append(from_numpy(part.reshape(total, *a.shape), aval))
        start += n
    return out


def _typed_as(j: Any, aval: Aval) -> Any:
    """Derivatives weak where the value is; of integers zeros of its dtype, as JAX's, no float0."""
    if dtypes.to_tangent_dtype(aval.dtype) == dtypes.float0:
        j = zeros_like_aval(Aval(np.shape(j), aval.dtype, aval.weak_type))
    return as_weak(j, aval)


def _columns(j: Any, out: Aval, xs: Sequence[Any], in_spec: Any, argnums: Any) -> Any:
    """The tangents (*shape, total inputs) of one output as a tree like the inputs."""
    shape, last = out.shape, out.ndim
    j = _typed_as(j, out)
    parts = []
    start = 0
    for x in xs:
        aval = aval_of(x)
        piece = slice(
            j,
            start_indices=(*[0] * last, start),
            limit_indices=(*shape, start + aval.size),
            strides=None,
        )
        parts.append(reshape(piece, shape=(*shape, *aval.shape)))
        start += aval.size
    tree = unflatten(in_spec, parts)
    return tree[0] if isinstance(argnums, int) else tree


def _partial(
    fun: Callable[..., Any], numbers: Sequence[int], args: Any, kwargs: Any
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if not numbers:
        raise ValueError("[jacobian] expected at least one of argnums, got none.")
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(
                f"differentiating with respect to argnums={n} requires at least {n + 1} positional "
                f"arguments to be passed by the caller, but got only {len(args)} positional "
                "arguments."
            )
    positions = [n % len(args) for n in numbers]
    if len(set(positions)) != len(positions):
        raise TypeError(f"[jacobian] expected distinct argnums, got {tuple(numbers)}.")

    partial = with_arguments(fun, positions, args, kwargs)
    partial.__name__ = name_of(fun)
    return partial, tuple([args[i] for i in positions])


def _check_inputs(name: str, xs: Sequence[Any], holomorphic: bool) -> None:
    for x in xs:
        dtype = aval_of(x).dtype
        if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name}."
            )
        if not holomorphic and name == "jacfwd" and not dtypes.issubdtype(dtype, np.floating):
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of "
                f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
                "holomorphic=True. For differentiation of non-holomorphic functions involving "
                "complex inputs or integer inputs, use jvp directly."
            )
        if not holomorphic and not dtypes.issubdtype(dtype, np.inexact):
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {dtype.name}. Use vjp, or set allow_int to True."
            )


def _check_outputs(name: str, ys: Sequence[Any], holomorphic: bool) -> None:
    for y in ys:
        dtype = aval_of(y).dtype
        if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype.name}."
            )
        if not holomorphic and name == "jacrev" and not dtypes.issubdtype(dtype, np.floating):
            raise TypeError(
                f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
                f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
                "holomorphic=True. For differentiation of non-holomorphic functions involving "
                "complex outputs, use vjp directly."
            )


__all__ = ["hessian", "jacfwd", "jacrev"]
