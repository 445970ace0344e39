"""Krylov methods for A·x = b where A is known by its products, on trees of arrays.

Saad, Iterative Methods for Sparse Linear Systems (2nd ed.): algorithms 9.1 (conjugate gradients),
6.9 with Givens rotations (GMRES); van der Vorst 1992 (BiCGSTAB). Derivatives are those of the
solution, by `custom_linear_solve`: they never look inside the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_linear_solve, fori_loop, while_loop
from primal.flatten_util import ravel_pytree
from primal.lax import linalg as factors
from primal.runtime.refusals import in_words
from primal.scipy.operands import in_floats
from primal.tree_util import tree_leaves, tree_map, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]
Product = Callable[[Any], Any]


def _dot(a: Any, b: Any) -> Any:
    return sum(jnp.vdot(x, y) for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True))


def _square(a: Any) -> Any:
    return jnp.real(_dot(a, a))


def _plus(a: Any, scale: Any, b: Any) -> Any:
    """a + scale·b, in a's dtypes."""
    return tree_map(lambda x, y: (x + scale * y).astype(x.dtype), a, b)


def _operator(name: str, a: Any) -> Product:
    if callable(a):
        return a
    if not hasattr(a, "shape") or isinstance(a, np.generic):
        raise TypeError(f"[{name}] expected a function or an array as linear operator, got {a!r}.")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"[{name}] expected a square matrix, got shape {a.shape}.")
    return lambda x: jnp.matmul(a, x)


def _solved(
    name: str, a: Any, b: Any, x0: Any, m: Any, method: Callable[..., Any], symmetric: bool
) -> Any:
    """`method(A, b, x0, M)` with operands checked, as a solution that can be differentiated."""
    product = _operator(name, a)
    precondition = (lambda x: x) if m is None else _operator(name, m)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else x0
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(
            f"[{name}] expected x0 and b of one tree structure, got {tree_structure(x0)} and "
            f"{tree_structure(b)}."
        )
    shapes = [jnp.shape(x) for x in tree_leaves(x0)], [jnp.shape(x) for x in tree_leaves(b)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"[{name}] expected x0 and b of the same shapes, got {shapes[0]} and {shapes[1]}."
        )
    b = tree_map(in_floats, b)
    x0 = tree_map(lambda x, like: in_floats(x).astype(jnp.result_type(x, like)), x0, b)
    b = tree_map(lambda like, x: like.astype(x.dtype), b, x0)

    def checked(x: Any) -> Any:
        out = product(x)
        got = [jnp.shape(y) for y in tree_leaves(out)]
        if got != shapes[1]:
            raise ValueError(
                f"[{name}] expected the operator to give the shapes of b, {shapes[1]}, got {got}."
            )
        return out

    def solve(product: Product, rhs: Any) -> Any:
        return method(product, rhs, x0, precondition)

    def transposed(product: Product, rhs: Any) -> Any:
        # The guess belongs to A. M is taken for the inverse of the transpose too: cheap, and any
        # invertible M leads to the same solution.
        start = x0 if symmetric else tree_map(jnp.zeros_like, rhs)
        return method(product, rhs, start, precondition)

    return custom_linear_solve(checked, b, solve, transposed, symmetric=symmetric)


def _threshold(b: Any, tol: Any, atol: Any) -> Any:
    """The square of the norm a residual must reach."""
    return jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))


def _limit(b: Any, maxiter: Any) -> Any:
    return 10 * sum(x.size for x in tree_leaves(b)) if maxiter is None else maxiter


def _goes_on(k: Any, limit: Any, square: Any, threshold: Any) -> Any:
    # A residual that is no number ends the search after it has reached x.
    return (k < limit) & ~(square <= threshold) & ((k == 0) | ~jnp.isnan(square))


@in_words
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution of A·x = b by conjugate gradients, for A Hermitian and positive definite.

    `A` and the preconditioner `M` ≈ A⁻¹ are square matrices or linear functions; `b` and the guess
    `x0` are arrays or trees of them. Stops where ‖b - A·x‖ ≤ max(tol·‖b‖, atol), or after
    `maxiter` (10 times the unknowns) turns, and returns (x, None). TypeError for other operators,
    ValueError for shapes that do not fit. Derivatives solve with A again.

    >>> x, _ = cg(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    >>> x
    Array([1. , 0.5], dtype=float32)
    """

    def method(product: Product, b: Any, x: Any, precondition: Product) -> Any:
        limit, threshold = _limit(b, maxiter), _threshold(b, tol, atol)

        def turn(state: Any) -> Any:
            k, x, r, p, gamma = state
            q = product(p)
            alpha = gamma / _dot(p, q)
            x, r = _plus(x, alpha, p), _plus(r, -alpha, q)
            z = precondition(r)
            after = _dot(r, z)
            return k + 1, x, r, _plus(z, after / gamma, p), after.astype(gamma.dtype)

        r = _plus(b, -1, product(x))
        z = precondition(r)
        start = (0, x, r, z, _dot(r, z))
        return while_loop(lambda s: _goes_on(s[0], limit, _square(s[2]), threshold), turn, start)[1]

    return _solved("cg", A, b, x0, M, method, True), None


@in_words
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution of A·x = b by stabilized biconjugate gradients, for any invertible A.

    Operands, tolerances, result and errors are those of `cg`. Where the recurrence breaks down
    (two vectors it divides by the product of are orthogonal) the last x is given.

    >>> x, _ = bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    >>> jnp.round(x, 4)
    Array([1., 1.], dtype=float32)
    """

    def method(product: Product, b: Any, x: Any, precondition: Product) -> Any:
        limit, threshold = _limit(b, maxiter), _threshold(b, tol, atol)
        shadow = _plus(b, -1, product(x))

        def goes_on(state: Any) -> Any:
            return _goes_on(state[0], limit, _square(state[2]), threshold) & ~state[-1]

        def turn(state: Any) -> Any:
            k, x, r, p, v, rho, alpha, omega, _ = state
            after = _dot(shadow, r)
            beta = after / rho * (alpha / omega)
            p = _plus(r, beta, _plus(p, -omega, v))
            hat = precondition(p)
            v = product(hat)
            alpha = after / _dot(shadow, v)
            half = _plus(r, -alpha, v)
            early = _square(half) <= threshold
            half_hat = precondition(half)
            t = product(half_hat)
            size = _dot(t, t)
            omega = _dot(t, half) / jnp.where(size == 0, 1, size)
            omega = jnp.where(early, 0, omega).astype(after.dtype)
            x = _plus(_plus(x, alpha, hat), omega, half_hat)
            r = _plus(half, -omega, t)
            broken = ~early & ((omega == 0) | (after == 0))
            return k + 1, x, r, p, v, after, alpha, omega, broken

        zero = tree_map(jnp.zeros_like, b)
        one = jnp.ones_like(_dot(b, b))
        start = (0, x, shadow, zero, zero, one, one, one, jnp.asarray(False))
        return while_loop(goes_on, turn, start)[1]

    return _solved("bicgstab", A, b, x0, M, method, False), None


@in_words
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: Any = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """The solution of A·x = b with the least residual over growing Krylov spaces, restarted.

    Operands, tolerances and errors are those of `cg`, A any invertible operator. `restart` is the
    size of the spaces, `maxiter` how many of them (10 times the unknowns); 'incremental' ends a
    space as soon as its residual suffices, 'batched' builds all of it. Returns (x, info), info
    being 0, or -1 where x is not finite. ValueError for another `solve_method`.

    >>> x, info = gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    >>> jnp.round(x, 4), int(info)
    (Array([1., 1.], dtype=float32), 0)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"[gmres] expected the solve_method 'batched' or 'incremental', got {solve_method!r}."
        )
    if restart < 1:
        raise ValueError(f"[gmres] expected a restart of at least 1, got {restart}.")
    early = solve_method == "incremental"

    def method(product: Product, b: Any, x: Any, precondition: Product) -> Any:
        limit, threshold = _limit(b, maxiter), _threshold(b, tol, atol)
        flat, unravel = ravel_pytree(b)
        if not flat.size:
            return x

        def applied(v: Any) -> tuple[Any, Any]:
            hat = precondition(unravel(v))
            return hat, ravel_pytree(product(hat))[0].astype(flat.dtype)

        def residual(x: Any) -> Any:
            return ravel_pytree(_plus(b, -1, product(x)))[0]

        def turn(state: Any) -> Any:
            k, x, r = state
            step = _least(applied, r, min(restart, flat.size), threshold, early)
            x = _plus(x, 1, precondition(unravel(step)))
            return k + 1, x, residual(x)

        start = (0, x, residual(x))
        return while_loop(lambda s: _goes_on(s[0], limit, _square(s[2]), threshold), turn, start)[1]

    x = _solved("gmres", A, b, x0, M, method, False)
    missing = [jnp.any(~jnp.isfinite(leaf)) for leaf in tree_leaves(x)]
    return x, jnp.where(jnp.any(jnp.stack(missing)) if missing else False, -1, 0)


def _least(applied: Any, r: Any, m: int, threshold: Any, early: bool) -> Any:
    """The vector y of the m-th Krylov space for which ‖r - A·M·y‖ is least.

    Each column of the Hessenberg matrix is made triangular by Givens rotations as it comes; the
    rotated right-hand side then has the norm of the residual as its next element.
    """
    real = jnp.real(r).dtype
    beta = jnp.linalg.norm(r)
    basis = jnp.zeros((m + 1, r.size), r.dtype).at[0].set(r / jnp.where(beta == 0, 1, beta))
    triangle = jnp.zeros((m, m), r.dtype)
    rhs = jnp.zeros(m + 1, r.dtype).at[0].set(beta.astype(r.dtype))
    cosines, sines = jnp.zeros(m, real), jnp.zeros(m, r.dtype)

    def column(state: Any) -> Any:
        k, basis, triangle, rhs, cosines, sines = state
        _, w = applied(basis[k])
        size = jnp.linalg.norm(w)
        # Twice: once leaves parts along the basis that grow with the condition of the columns.
        first = jnp.conj(basis) @ w
        w = w - first @ basis
        second = jnp.conj(basis) @ w
        w = w - second @ basis
        h, rest = first + second, jnp.linalg.norm(w)
        ended = rest <= 10 * jnp.finfo(real).eps * size
        rest = jnp.where(ended, 0, rest)
        w = jnp.where(ended, 0, w / jnp.where(ended, 1, rest))

        def rotate(i: Any, h: Any) -> Any:
            a, b = h[i], h[i + 1]
            turned = cosines[i] * a + sines[i] * b, cosines[i] * b - jnp.conj(sines[i]) * a
            return jnp.where(i < k, h.at[i].set(turned[0]).at[i + 1].set(turned[1]), h)

        h = h.at[k + 1].set(0)
        h = fori_loop(0, m, rotate, h)
        a, length = h[k], jnp.hypot(abs(h[k]), rest)
        safe = jnp.where(length == 0, 1, length)
        phase = jnp.where(a == 0, 1, a / jnp.where(a == 0, 1, abs(a)))
        c = jnp.where(length == 0, 1, abs(a) / safe).astype(real)
        s = (phase * rest / safe).astype(r.dtype)
        column = jnp.where(jnp.arange(m) < k, h[:m], 0).at[k].set(phase * length)
        above = rhs[k]
        return (
            k + 1,
            basis.at[k + 1].set(w),
            triangle.at[:, k].set(column),
            rhs.at[k].set(c * above).at[k + 1].set(-jnp.conj(s) * above),
            cosines.at[k].set(c),
            sines.at[k].set(s),
        )

    def goes_on(state: Any) -> Any:
        k, rhs = state[0], state[3]
        return (k < m) & ~(jnp.square(abs(rhs[k])) <= threshold) if early else k < m

    start = (0, basis, triangle, rhs, cosines, sines)
    _, basis, triangle, rhs, *_ = while_loop(goes_on, column, start)
    # Columns after the end of the space are zero, and their unknowns with them.
    diagonal = jnp.diagonal(triangle)
    unused = (diagonal == 0) & ((jnp.arange(m) > 0) | (beta == 0))
    triangle = triangle + jnp.diag(unused.astype(r.dtype))
    rhs = jnp.where(unused, 0, rhs[:m])
    y = factors.triangular_solve(triangle, rhs[:, None], left_side=True, lower=False)[:, 0]
    return y @ basis[:m]
