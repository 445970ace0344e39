"""Derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api import jvp, linearize, vjp
from primal.base import dtypes
from primal.ir.trace import aval_of
from primal.tree_util import tree_leaves, tree_map

TOLERANCE = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5}
TOLERANCE |= {"complex64": 2e-3, "complex128": 1e-5}


def _wide(x: Any) -> np.ndarray[Any, Any]:
    host = np.asarray(x)
    return host.astype(np.complex128 if host.dtype.kind == "c" else np.float64)


def _rand_like(rng: np.random.RandomState, x: Any) -> Any:
    aval = aval_of(x)
    shape, dtype = aval.shape, aval.dtype
    if dtypes.kind_of(dtype) not in "fc":
        return np.zeros(shape, dtypes.float0)
    drawn = np.asarray(rng.randn(*shape))
    if dtypes.kind_of(dtype) == "c":
        drawn = drawn + 1j * rng.randn(*shape)
    return drawn.astype(dtype)


def _plus(x: Any, t: Any, scale: float) -> Any:
    if getattr(t, "dtype", None) == dtypes.float0:
        return x
    host = np.asarray(x)
    return (_wide(host) + scale * _wide(t)).astype(host.dtype)


def numerical_jvp(f: Callable[..., Any], primals: Any, tangents: Any, eps: float) -> Any:
    """(f(x + ε·t) - f(x - ε·t)) / 2ε, leaf by leaf, in 64 bits where f's results are rounded."""
    above = f(*tree_map(lambda x, t: _plus(x, t, eps), primals, tangents))
    below = f(*tree_map(lambda x, t: _plus(x, t, -eps), primals, tangents))
    return tree_map(lambda a, b: _difference(_wide(a), _wide(b)) / (2 * eps), above, below)


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """a - b, and 0 where they are equal infinities: there f does not change."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def _tolerance(given: Any, dtype: Any) -> float:
    if given is None:
        return TOLERANCE.get(dtype.name, 0.0)
    if isinstance(given, dict):
        by_name = {np.dtype(k).name: v for k, v in given.items()}
        return float(by_name.get(dtype.name, TOLERANCE.get(dtype.name, 0.0)))
    return float(given)


def _check_close(found: Any, expected: Any, atol: Any, rtol: Any, err_msg: str) -> None:
    for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        host = np.asarray(a)
        if host.dtype == dtypes.float0:
            continue
        np.testing.assert_allclose(
            _wide(host),
            _wide(b),
            # Of every number by the size of the array, as jax.test_util counts: what passes
            # there passes here.
            atol=_tolerance(atol, host.dtype) * host.size,
            rtol=_tolerance(rtol, host.dtype) * host.size,
            err_msg=err_msg,
        )


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check f_jvp(args, tangents) against finite differences of f along random tangents.

    AssertionError where values or tangents differ. Tolerances are numbers, or dicts by dtype.

    >>> from primal.test_util import check_jvp
    >>> check_jvp(jnp.sin, lambda p, t: primal.jvp(jnp.sin, p, t), (np.float32(0.5),), eps=1e-2)
    """
    args = tuple(args)
    rng = np.random.RandomState(0)
    tangents = tree_map(lambda x: _rand_like(rng, x), args)
    out, moved = f_jvp(args, tangents)
    _check_close(out, f(*args), atol, rtol, f"{err_msg} value of the jvp")
    _check_close(moved, numerical_jvp(f, args, tangents, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check f_vjp(*args) = (value, pullback) against finite differences of f.

    Re⟨t, pullback(c̄)*⟩ must be Re⟨df·t, c⟩ for random t and c. AssertionError where it is not.

    >>> from primal.test_util import check_vjp
    >>> check_vjp(jnp.sin, lambda x: primal.vjp(jnp.sin, x), (np.float32(0.5),), eps=1e-2)
    """
    args = tuple(args)
    rng = np.random.RandomState(0)
    value, pullback = f_vjp(*args)
    _check_close(value, f(*args), atol, rtol, f"{err_msg} value of the vjp")
    tangents = tree_map(lambda x: _rand_like(rng, x), args)
    moved = numerical_jvp(f, args, tangents, eps)
    cotangents = tree_map(lambda x: _rand_like(rng, x), value)
    back = pullback(tree_map(_conjugated, cotangents))
    mixed = [np.asarray(x).dtype for x in (*tree_leaves(tangents), *tree_leaves(cotangents))]
    continuous = [d for d in mixed if d != dtypes.float0]
    np.testing.assert_allclose(
        _inner(tangents, tree_map(_conjugated, back)),
        _inner(moved, cotangents),
        atol=max([_tolerance(atol, d) for d in continuous], default=0.0),
        rtol=max([_tolerance(rtol, d) for d in continuous], default=0.0),
        err_msg=f"{err_msg} cotangent projection",
    )


def _conjugated(x: Any) -> Any:
    return x if getattr(x, "dtype", None) == dtypes.float0 else np.conj(np.asarray(x))


def _inner(xs: Any, ys: Any) -> float:
    """Re Σ x̄·y over all leaves: the one pairing under which a pullback is the adjoint of the
    derivative also where f takes real numbers to complex ones or back, and is only real-linear."""
    total = 0.0
    for x, y in zip(tree_leaves(xs), tree_leaves(ys), strict=True):
        if dtypes.float0 not in (getattr(x, "dtype", None), getattr(y, "dtype", None)):
            total += float(np.sum(np.conj(_wide(x)) * _wide(y)).real)
    return total


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Check derivatives of f at args, up to an order and in the modes, by finite differences.

    Modes are "fwd" (`jvp`), "rev" (`vjp`) and "lin" (`linearize`). Each order is that of the
    derivatives of the order below. Tolerances are numbers, or dicts by dtype; those of a number
    grow with the size of its array. AssertionError where one differs.

    >>> from primal.test_util import check_grads
    >>> check_grads(lambda x: x**3, (np.float32(0.5),), order=2)
    """
    args = tuple(args)
    if eps is None:
        eps = 1e-4

    def check(f: Callable[..., Any], args: tuple[Any, ...], left: int, name: str) -> None:
        if "fwd" in modes:
            check_jvp(f, lambda p, t: jvp(f, p, t), args, atol, rtol, eps, f"{name}: JVP")
            if left > 1:
                check(lambda *xs: jvp(f, xs, _fixed(xs))[1], args, left - 1, f"{name} (jvp)")
        if "rev" in modes:
            check_vjp(f, lambda *xs: vjp(f, *xs), args, atol, rtol, eps, f"{name}: VJP")
            if left > 1:

                def pulled(*xs: Any) -> Any:
                    value, pullback = vjp(f, *xs)
                    return pullback(_fixed(value))

                check(pulled, args, left - 1, f"{name} (vjp)")
        if "lin" in modes:

            def linear(primals: Any, tangents: Any) -> Any:
                value, move = linearize(f, *primals)
                return value, move(*tangents)

            check_jvp(f, linear, args, atol, rtol, eps, f"{name}: linearized")
            if left > 1:
                check(lambda *xs: linear(xs, _fixed(xs))[1], args, left - 1, f"{name} (lin)")

    check(f, args, order, getattr(f, "__name__", "f"))


def _fixed(tree: Any) -> Any:
    rng = np.random.RandomState(1)
    return tree_map(lambda x: _rand_like(rng, x), tree)
