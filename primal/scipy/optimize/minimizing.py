"""The front of the minimizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import primal.numpy as jnp
from primal.numpy.promotion import check_arraylike
from primal.runtime.refusals import in_words
from primal.scipy.optimize.bfgs import minimize_bfgs, minimize_lbfgs
from primal.scipy.optimize.results import OptimizeResults

METHODS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": minimize_bfgs,
    "l-bfgs-experimental-do-not-rely-on-this": minimize_lbfgs,
}


@in_words
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of `fun(x, *args)`, searched from `x0`.

    Stops where ‖∇f(x)‖ < gtol. `x0` is a vector of floating dtype, `fun` gives a scalar. `method`
    is 'BFGS', whose `options` are maxiter, norm (that of the gradient, inf), gtol (1e-5) and
    line_search_maxiter (10), or 'l-bfgs-experimental-do-not-rely-on-this', with maxiter, norm,
    maxcor (steps remembered, 10), ftol, gtol, maxfun, maxgrad and maxls. `tol` sets gtol where
    `options` do not. Runs under `jit` and `vmap`, and has
    forward derivatives: for reverse ones differentiate the condition ∇f = 0, see `custom_root`.

    TypeError where `args` is no tuple or an option is unknown, ValueError for another method.
    Source: Nocedal and Wright, Numerical Optimization, algorithms 3.5, 3.6, 6.1 and 7.5.

    >>> result = minimize(lambda x, a: jnp.sum((x - a)**2), jnp.zeros(2), (3.0,), method="BFGS")
    >>> result.x.round(5), bool(result.success)
    (Array([3., 3.], dtype=float32), True)
    """
    if not isinstance(args, tuple):
        raise TypeError(
            f"[minimize] expected a tuple, got args={args!r}, which must be a tuple. Write "
            f"args=({args!r},)."
        )
    chosen = METHODS.get(method.lower())
    if chosen is None:
        known = " or ".join(map(repr, METHODS))
        raise ValueError(f"[minimize] expected the method {known}, got {method!r}.")
    check_arraylike("minimize", x0)
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(
            f"[minimize] expected x0 of one dimension, got shape {x0.shape}. Minimize a function "
            "of a vector, see flatten_util.ravel_pytree."
        )
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    return chosen(lambda x: fun(x, *args), x0, **given)
