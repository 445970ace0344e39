"""checkify: functions that also return the first error that happened in them.

`checkify(f)` computes f and an `Error`, a value like any other, so that it works under jit, vmap,
grad and in loops; `error.throw()` raises it on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.api.checks.rewrite import run
from primal.api.checks.state import State
from primal.api.control.bodies import staged_in
from primal.api.operands import abstract, check_operands, flat_function, name_of
from primal.api.vectorize import vmap
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, flatten_args, unflatten
from primal.base.pytree.nodes import register_pytree_node
from primal.base.wrapping import wraps
from primal.control.check import (
    CATEGORIES,
    FINE,
    INT32,
    JaxRuntimeError,
    Signature,
    Site,
    code_of,
    message,
    site_of,
)
from primal.control.check import (
    check as _check_op,
)
from primal.ir.trace import Array, Tracer, literal
from primal.ops.elementwise import select_n
from primal.runtime.array import from_literal
from primal.transforms.stage import stage


class ErrorCategory(JaxRuntimeError):
    """The errors that `checkify` finds, by what is wrong."""


class NaNError(ErrorCategory):
    """An operation gave a NaN."""


class OOBError(ErrorCategory):
    """An index is out of bounds."""


class DivisionByZeroError(ErrorCategory):
    """A division by zero."""


class FailedCheckError(ErrorCategory):
    """A predicate of `check` does not hold."""


_CLASSES = {
    "nan": NaNError, "index": OOBError, "div": DivisionByZeroError, "user": FailedCheckError
}  # fmt: skip
_NAMES = {cls: name for name, cls in _CLASSES.items()}

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """The first error of a checkified function, or none. A pytree of arrays.

    >>> err, _ = checkify(lambda x: x / 0.0, div_checks)(1.0)
    >>> err.get()
    'division by zero'
    """

    __slots__ = ("_code", "_values", "_signatures")

    def __init__(
        self, _code: Any, _values: tuple[Any, ...] = (), _signatures: tuple[Signature, ...] = ()
    ) -> None:
        self._code = _code
        self._values = _values
        self._signatures = _signatures

    def _found(self) -> list[tuple[tuple[int, ...], int, list[Any]]]:
        """(place in the batch, code, values) of every error."""
        if isinstance(self._code, Tracer):
            bool(self._code)  # the error that says so
        codes = np.asarray(self._code)
        return [
            (place, int(codes[place]), [v[place] if place else v for v in self._values])
            for place in np.ndindex(codes.shape)
            if codes[place] >= 0
        ]

    def get(self) -> str | None:
        """The message, or None; after vmap, one line for each example with an error."""
        lines = []
        for place, code, values in self._found():
            where = f"at mapped index {', '.join(map(str, place))}: " if place else ""
            lines.append(where + message(code, self._signatures, values))
        return "\n".join(lines) if lines else None

    def get_exception(self) -> ErrorCategory | None:
        """The (first) error as an exception, or None."""
        for _, code, values in self._found():
            return _CLASSES[site_of(code).category](message(code, self._signatures, values))
        return None

    def throw(self) -> None:
        """Raise the error as a JaxRuntimeError, if there is one; inside jit, as a `check`."""
        check_error(self)

    def __repr__(self) -> str:
        if isinstance(self._code, Tracer):
            return f"Error({self._code!r})"
        text = self.get()
        return f"Error({text!r})" if text else "Error()"


register_pytree_node(
    Error,
    lambda e: ((e._code, *e._values), e._signatures),
    lambda signatures, leaves: Error(leaves[0], tuple(leaves[1:]), signatures),
)
init_error = Error(np.int32(FINE))


@api_boundary
def checkify(
    f: Callable[..., Any], errors: frozenset[type[ErrorCategory]] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """The function (error, f(x)), where the error is the first of the wanted kinds, if any.

    `errors` is a union of `user_checks` (the default), `nan_checks`, `index_checks`, `div_checks`,
    or `float_checks`, `automatic_checks`, `all_checks`. Checks of f are found wherever they are: in
    loops, branches, jitted and vmapped functions. The result has no side effects, and may itself be
    transformed. TypeError for what is no function, ValueError for unknown errors.

    >>> import primal
    >>> def f(x, i):
    ...     check(x[0] >= 0, "expected x[0] >= 0, got {v}", v=x[0])
    ...     return x[i]
    >>> err, y = primal.jit(checkify(f, all_checks))(primal.numpy.arange(3.0), 5)
    >>> print(err.get())
    out-of-bounds indexing for array of shape (3,): index 5 is out of bounds for axis 0 with size 3.
    """
    if not callable(f):
        raise TypeError(f"[checkify] expected a function, got {f!r}.")
    unknown = [e for e in errors if e not in _NAMES] if np.iterable(errors) else [errors]
    if unknown:
        raise ValueError(
            "[checkify] expected sets of checks, such as checkify.all_checks, got "
            f"{unknown}. Unite sets with |."
        )
    wanted = frozenset(_NAMES[e] for e in errors)

    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, spec = flatten_args(args, kwargs)
        avals = check_operands("checkify", (args, kwargs), leaves)
        out: list[Any] = []
        closed = stage(flat_function(f, spec, unflatten, out), avals, name_of(f))
        found = State()
        results = run(closed.jaxpr, closed.consts, leaves, found, wanted)
        signatures = found.signatures
        code, *values = [from_literal(x) for x in found.flatten(signatures)]
        return Error(code, tuple(values), signatures), unflatten(
            out[0], [from_literal(x) for x in results]
        )

    return checked


@api_boundary
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Say that a boolean scalar must hold, else `msg`, formatted with arrays, is the error.

    In a function under `checkify` it becomes part of the returned error; outside it raises at once
    (JaxRuntimeError) where the value is known, and ValueError where it is traced. TypeError where
    it is none, or where an argument of the format is no array.

    >>> checkify(lambda x: check(x > 0, "expected x > 0, got {x}", x=x))(-1.0)[0].get()
    'expected x > 0, got -1.0 (`check` failed)'
    """
    try:
        aval = abstract(pred)
    except TypeError:
        aval = None
    if aval is None or aval.shape or aval.dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    leaves, spec = flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, Array | np.ndarray):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{x!r} of type {type(x)}."
            )
    avals = tuple([abstract(x).strong() for x in leaves])
    code = code_of(Site("user", msg, avals, (), spec))
    found = select_n(pred, literal(code, INT32, False), literal(FINE, INT32, False))
    _check_op(found, *leaves, signatures=(avals,) if avals else (), debug=debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that does nothing where the function is not under `checkify`.

    >>> debug_check(False, "never seen")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Raise an error, if there is one; under another `checkify` it becomes part of its error.

    JaxRuntimeError for an error that holds, TypeError for what is no Error.

    >>> check_error(checkify(lambda x: x)(1.0)[0])
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    if not staged_in() and not any(isinstance(x, Tracer) for x in (error._code, *error._values)):
        exception = error.get_exception()
        if exception is not None:
            raise JaxRuntimeError(str(exception))
        return
    if error._code.ndim:
        # Errors of several examples or steps: the check of each, of which the last failed counts.
        vmap(check_error)(error)
        return
    _check_op(error._code, *error._values, signatures=error._signatures, debug=False)


__all__ = [
    "CATEGORIES",
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
