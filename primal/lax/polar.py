"""qdwh: the polar decomposition by Halley's iteration with dynamical weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.api.control.custom import custom_jvp
from primal.base import dtypes
from primal.ir.trace import aval_of
from primal.lax.control import while_loop
from primal.ops.choose import as_dtype
from primal.ops.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_or,
    convert_element_type,
    div,
    eq,
    gt,
    lt,
    max,
    mul,
    pow,
    reduce_precision,
    select_n,
    sqrt,
    square,
    sub,
)
from primal.ops.linalg.common import (
    adjoint,
    check_dtype,
    columns_of,
    identity,
    matmul,
    real_of,
    rows_of,
)
from primal.ops.linalg.eigh import eigh
from primal.ops.linalg.qr import qr
from primal.ops.linalg.triangular import triangular_solve
from primal.ops.reduce import part, reduce_max
from primal.ops.shape import concatenate, pad
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.ops.types import static_flag, static_int
from primal.runtime.refusals import in_words


def _norm(x: Any) -> Any:
    return sqrt(reduce_sum(square(abs(x)), axes=(0, 1)))


def _weights(low: Any) -> tuple[Any, Any, Any]:
    """(a, b, c) that make x (a + b x²) / (1 + c x²) nearest to 1 on [low, 1]."""
    square_ = square(low)
    d = div(pow(mul(sub(1.0, square_), 4.0), 1 / 3), pow(square_, 2 / 3))
    root = sqrt(add(d, 1.0))
    inner = div(mul(sub(2.0, square_), 8.0), mul(square_, root))
    a = add(root, mul(sqrt(add(sub(8.0, mul(d, 4.0)), inner)), 0.5))
    b = mul(square(sub(a, 1.0)), 0.25)
    return a, b, sub(add(a, b), 1.0)


@in_words
def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """(u, h, iterations, converged) with x = u h, orthonormal columns of u, Hermitian h >= 0.

    x is (m, n) with m >= n and of full rank, of which (m', n') count with dynamic_shape=(m', n').
    The iteration ends where |xₖ - xₖ₋₁| < (4 eps)^(1/3), or after `max_iterations` (10 by
    default). ValueError if m < n or x is not inexact. Nakatsukasa, Bai and Gygi, 2010.

    >>> u, h, _, converged = lax.linalg.qdwh(jnp.array([[0., -2.], [3., 0.]]))
    >>> u.round(3) + 0., bool(converged)
    (Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float32), True)
    """
    aval = aval_of(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(
            f"[qdwh] expected a matrix with at least as many rows as columns, got {aval.shape}: "
            "The input matrix of shape M x N must have M >= N."
        )
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        raise ValueError(f"[qdwh] expected an inexact dtype, got {aval.dtype.name}.")
    check_dtype("qdwh", aval)
    (m, n), dtype = aval.shape, aval.dtype
    if dynamic_shape is not None:
        rows, columns = dynamic_shape
        inside = pad(
            broadcast_in_dim(np.True_, shape=(rows, columns), broadcast_dimensions=()),
            np.False_,
            padding_config=((0, m - rows, 0), (0, n - columns, 0)),
        )
        none = broadcast_in_dim(np.zeros((), dtype), shape=(m, n), broadcast_dimensions=())
        x = select_n(inside, none, x)
    small = float(np.finfo(real_of(dtype)).eps) if eps is None else float(eps)
    most = 10 if max_iterations is None else static_int("qdwh max_iterations", max_iterations)
    static_flag("qdwh is_hermitian", is_hermitian)
    unitary, scaled, count, converged = _iterated(x, small, most)
    count = convert_element_type(count, new_dtype=np.dtype(np.int32), weak_type=True)
    return unitary, scaled, count, converged


def _iterated_of(x: Any, small: float, most: int) -> tuple[Any, Any, Any, Any]:
    (m, n), dtype = aval_of(x).shape, aval_of(x).dtype
    parts = real_of(dtype)
    near, unit = (4 * small) ** (1 / 3), identity((n, n), dtype)

    def wide(v: Any) -> Any:
        v = v if dtype == parts else convert_element_type(v, new_dtype=dtype, weak_type=False)
        return broadcast_in_dim(v, shape=(m, n), broadcast_dimensions=())

    def step(state: Any) -> Any:
        u, _, low, count = state
        a, b, c = _weights(low)
        # u (a + b uᴴu) (1 + c uᴴu)⁻¹ through the Q of [√c u; 1], which squares no condition.
        q, _ = qr(concatenate(mul(u, wide(sqrt(c))), unit, dimension=0),
                  pivoting=False, full_matrices=False)  # fmt: skip
        inverse = matmul(part(q, 0, m, 0), adjoint(part(q, m, m + n, 0)))
        share = div(b, c)
        new = add(mul(u, wide(share)), mul(inverse, wide(div(sub(a, share), sqrt(c)))))
        square_ = square(low)
        low = div(mul(low, add(a, mul(b, square_))), add(mul(c, square_), 1.0))
        # A first step on a wide interval hardly moves values near 1: the interval must be narrow.
        # Absolute: relative to |new| a few values that rounding put below `low` may still be far
        # from 1 among the many that are there (128 x 128 of rank 124 ended with some at 0.005).
        moving = bitwise_or(gt(_norm(sub(new, u)), near), lt(low, 1 - near))
        # Below 1 by a few roundings the weights are those of Halley's own iteration.
        return new, moving, select_n(lt(low, 1 - 8 * small), np.ones((), parts), low), add(count, 1)

    def going(state: Any) -> Any:
        _, moving, _, count = state
        return bitwise_and(moving, lt(count, most))

    tiny = np.asarray(np.finfo(parts).tiny, parts)
    # By a power of two first, which rounds nothing: squares far from 1 overflow, or are 0.
    info = np.finfo(parts)
    half = mul(reduce_max(abs(x), axes=(0, 1)), 0.5)
    power = reduce_precision(half, exponent_bits=info.nexp, mantissa_bits=0)
    start = div(x, wide(max(power, tiny)))
    start = div(start, wide(max(_norm(start), tiny)))
    # |R⁻¹| bounds what the smallest singular value is not below.
    _, r = qr(start, pivoting=False, full_matrices=False)
    inverse = triangular_solve(
        r, unit, left_side=True, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )  # fmt: skip
    bound = div(1.0, _norm(inverse))
    least = np.asarray(1e-3 * np.finfo(parts).eps, parts)
    low = select_n(gt(bound, least), least, bound)
    u, moving, _, count = while_loop(going, step, (start, np.True_, low, np.int32(0)))
    # A step of Newton and Schulz takes what rounding left: u (3 - uᴴ u) / 2.
    u = sub(mul(u, 1.5), mul(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = mul(matmul(adjoint(u), x), 0.5)
    h = add(h, adjoint(h))
    return u, h, count, select_n(moving, np.True_, np.False_)


_iterated = custom_jvp(_iterated_of, nondiff_argnums=(1, 2))


@_iterated.defjvp
def _iterated_jvp(small: float, most: int, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """du = u W + (1 - u uᴴ) dx h⁻¹ where W h + h W = uᴴ dx - dxᴴ u, W being anti-Hermitian.

    So derivatives of every order exist, in reverse too, whatever the iteration did.
    """
    (x,), (t,) = primals, tangents
    u, h, count, converged = _iterated(x, small, most)
    shape, dtype = aval_of(h).shape, aval_of(h).dtype
    v, w = eigh(h, lower=True, compute_eigenvectors=True)
    back = adjoint(v)
    along = matmul(adjoint(u), t)
    sums = add(rows_of(w, shape), columns_of(w, shape))
    turn = _over(matmul(back, matmul(sub(along, adjoint(along)), v)), sums, dtype)
    turn = matmul(v, matmul(turn, back))
    outside = matmul(sub(t, matmul(u, along)), v)
    outside = matmul(_over(outside, rows_of(w, aval_of(outside).shape), dtype), back)
    du = add(matmul(u, turn), outside)
    dh = add(matmul(adjoint(du), x), along)
    dh = mul(add(dh, adjoint(dh)), 0.5)
    nothing = [np.zeros((), dtypes.float0)] * 2
    return (u, h, count, converged), (du, dh, *nothing)


def _over(x: Any, y: Any, dtype: Any) -> Any:
    """x / y; 0 where y is, as for the rows and columns that do not count."""
    none = eq(y, 0.0)
    one = broadcast_in_dim(np.ones((), aval_of(y).dtype), shape=aval_of(y).shape,
                           broadcast_dimensions=())  # fmt: skip
    quotient = div(x, as_dtype(select_n(none, y, one), dtype))
    return select_n(none, quotient, mul(quotient, 0.0))
