"""What a minimization returns."""

from __future__ import annotations

from typing import Any, NamedTuple


class OptimizeResults(NamedTuple):
    """The point a minimization ended at and how it got there; a tree, so `jit` may return it.

    `x` is the point, `fun` the value and `jac` the gradient there, `hess_inv` the estimate of the
    Hessian's inverse (None for limited memory), `nfev`, `njev` and `nit` the numbers of values,
    gradients and iterations, `success` whether the gradient (or the progress, where that is asked
    for) fell below its tolerance, and `status` why the search ended: 0 for success, 1 for
    `maxiter` iterations, 3 for a line search that found no lower point, or steps that lowered
    neither value nor gradient, 5 for one that found no
    end of the descent. Limited memory has 2 and 3 for `maxfun` and `maxgrad` evaluations and 5
    for any failed line search.

    >>> from primal.scipy.optimize import minimize
    >>> out = minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method="BFGS")
    >>> out.x, bool(out.success)
    (Array([1., 1.], dtype=float32), True)
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any
