"""Python functions called by programs: pure_callback, io_callback, effects_barrier."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.operands import name_of, operand
from primal.base import dtypes
from primal.base.config import settings
from primal.base.errors import CallbackError, api_boundary
from primal.base.pytree import flatten, unflatten
from primal.base.pytree.ops import tree_structure
from primal.base.source import without_internal_frames
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ops import host
from primal.runtime import devices
from primal.runtime.array import ArrayImpl, Placement
from primal.runtime.eager import root


class HostCallback:
    """A user's function as programs call it: NumPy arrays in, NumPy arrays of known types out.

    Equal when it is the same function called with the same structure, so that the same program is
    found again. The user's function gets arrays, and everything that is no array as it was given.
    """

    __slots__ = ("kind", "fun", "spec", "fixed", "key_types", "result_avals", "result_spec")

    def __init__(
        self,
        kind: str,
        fun: Callable[..., Any],
        spec: Any,
        fixed: tuple[tuple[int, Any], ...],
        key_types: tuple[Any, ...],
        result_avals: tuple[Aval, ...],
        result_spec: Any,
    ) -> None:
        self.kind = kind
        self.fun = fun
        self.spec = spec
        self.fixed = fixed
        self.key_types = key_types
        self.result_avals = result_avals
        self.result_spec = result_spec

    def resized(self, result_avals: tuple[Aval, ...]) -> HostCallback:
        """The same function, to return arrays of other shapes, as it does for many examples."""
        return HostCallback(
            self.kind,
            self.fun,
            self.spec,
            self.fixed,
            self.key_types,
            result_avals,
            self.result_spec,
        )

    def _same(self) -> tuple[Any, ...]:
        fixed = tuple([(i, id(x)) for i, x in self.fixed])
        return (
            self.kind, id(self.fun), self.spec, fixed, self.key_types, self.result_avals,
            self.result_spec,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostCallback) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def __repr__(self) -> str:
        return name_of(self.fun)

    def __call__(self, *arrays: Any) -> list[Any]:
        given = [_on_host(x, k) for x, k in zip(arrays, self.key_types, strict=True)]
        try:
            return self.results(self.call(given))
        except CallbackError:
            raise
        except Exception as error:
            raise _failure(self, error) from error

    def call(self, leaves: Sequence[Any]) -> Any:
        """The user's function on arrays, outside of every transformation."""
        whole = list(leaves)
        for i, value in self.fixed:
            whole.insert(i, value)
        args, kwargs = unflatten(self.spec, whole)
        outer = state.trace, state.axes, state.location, state.observer
        state.trace, state.axes, state.location, state.observer = root, (), None, None
        try:
            # Programs run with NumPy's warnings off, which is none of the user's choosing.
            with np.errstate(divide="warn", over="warn", invalid="warn"):
                return self.fun(*args, **kwargs)
        finally:
            state.trace, state.axes, state.location, state.observer = outer

    def results(self, result: Any) -> list[Any]:
        """What the function returned as arrays of the declared types; TypeError if it is not."""
        if self.result_spec is None:
            return []
        leaves, _ = flatten(result)
        # A list may stand for a tuple and None for (): functions for the host are often written
        # for other callers, too, and JAX has them return any containers of as many values.
        if len(leaves) != len(self.result_avals):
            expected = tree_structure(unflatten(self.result_spec, self.result_avals))
            raise TypeError(
                f"[{self.kind}] expected a result of the structure {expected}, as "
                f"result_shape_dtypes says, got {tree_structure(result)}."
            )
        pairs = zip(leaves, self.result_avals, strict=True)
        return [_as_declared(self.kind, x, a) for x, a in pairs]


def _on_host(x: Any, key_type: Any) -> ArrayImpl:
    aval = Aval(x.shape, x.dtype if key_type is None else key_type)
    value = np.asarray(x)
    if devices.default_is_host():
        return ArrayImpl(aval, value)
    return ArrayImpl(aval, None, value, Placement(devices.devices("cpu")[0], False))


def _as_declared(kind: str, x: Any, aval: Aval) -> Any:
    wanted = dtypes.physical_dtype(aval.dtype)
    if isinstance(x, ArrayImpl):
        value = x.numpy()
    else:
        value = np.asarray(x)
        if value.dtype != wanted and dtypes.canonicalize_dtype(value.dtype) == wanted:
            value = value.astype(wanted)
    if value.shape != aval.shape or value.dtype != wanted:
        raise TypeError(
            f"[{kind}] expected a result of type {aval.short()}, as result_shape_dtypes says, got "
            f"{value.dtype}{list(value.shape)}. Return the declared shape and dtype, or declare "
            "what the function returns."
        )
    return value


def _failure(callback: HostCallback, error: BaseException) -> CallbackError:
    tb = error.__traceback__
    if settings().traceback_filtering != "off":
        tb = without_internal_frames(tb)
    text = "".join(traceback.format_exception(type(error), error, tb)).rstrip()
    made = CallbackError(
        f"[{callback.kind}] expected {callback!r} to return, got {type(error).__name__}: {error}\n"
        f"The callback's own traceback:\n{text}"
    )
    return made


def make_callback(
    kind: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result_avals: tuple[Aval, ...] = (),
    result_spec: Any = None,
    allow_fixed: bool = False,
) -> tuple[HostCallback, list[Any]]:
    """The callback and its operands; with `allow_fixed`, leaves that are no arrays stay outside."""
    if not callable(fun):
        raise TypeError(f"[{kind}] expected a function, got {fun!r}.")
    leaves, spec = flatten((args, kwargs))
    operands: list[Any] = []
    fixed: list[tuple[int, Any]] = []
    for i, x in enumerate(leaves):
        try:
            operands.append(operand(x))
        except TypeError:
            if not allow_fixed:
                raise
            fixed.append((i, x))
    key_types = tuple([
        x.aval.dtype if isinstance(x.aval.dtype, dtypes.KeyType) else None for x in operands
    ])
    made = HostCallback(kind, fun, spec, tuple(fixed), key_types, result_avals, result_spec)
    return made, operands


def _declared(kind: str, tree: Any) -> tuple[tuple[Aval, ...], Any]:
    leaves, spec = flatten(tree)
    avals = []
    for x in leaves:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise TypeError(
                f"[{kind}] expected result_shape_dtypes to be a tree of values with shape and "
                f"dtype, such as primal.ShapeDtypeStruct, got {x!r}."
            )
        if dtypes.canonicalize_dtype(x.dtype) != x.dtype:
            raise ValueError(
                f"[{kind}] expected 32-bit dtypes in result_shape_dtypes, got {x.dtype}: "
                "result_shape_dtypes cannot specify 64-bit types when enable_x64 is disabled."
            )
        avals.append(Aval(tuple(x.shape), dtypes.as_dtype(x.dtype)))
    return tuple(avals), spec


@api_boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects, with arrays, from inside a traced program.

    pure_callback(f, s, x) = f(x), where s tells shapes and dtypes of the result, as a tree of
    values with `shape` and `dtype`. f may be called more than once, or not at all if nobody uses
    the result. Under vmap, `vmap_method` says how: 'sequential' calls f per example; with
    'expand_dims' and 'broadcast_all' f takes a leading axis, which arguments that are the same for
    all examples have with size 1, or full size. What f raises arrives as a JaxRuntimeError with
    the exception as its cause. ValueError when differentiated: give it a `custom_jvp`.

    >>> import numpy as np, primal
    >>> x = primal.numpy.arange(3.0)
    >>> primal.jit(lambda x: pure_callback(np.cumsum, x, x))(x)
    Array([0., 1., 3.], dtype=float32)
    """
    if vmap_method not in host.VMAP_METHODS:
        raise ValueError(
            "[pure_callback] expected vmap_method to be one of "
            f"{', '.join(map(repr, host.VMAP_METHODS))}, got {vmap_method!r}."
        )
    avals, spec = _declared("pure_callback", result_shape_dtypes)
    made, operands = make_callback("pure_callback", callback, args, kwargs, avals, spec)
    outs = host.pure_callback(
        *operands, callback=made, result_avals=avals, sharding=sharding, vmap_method=vmap_method
    )
    return unflatten(spec, outs)


@api_boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function that has side effects, from inside a traced program.

    As `pure_callback`, but f runs exactly once each time the program comes to it, whether its
    result is used or not; with `ordered`, in the order of the program. ValueError when
    differentiated, and for ordered callbacks under vmap.

    >>> import primal
    >>> seen = []
    >>> f = primal.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x, ordered=True))
    >>> f(1), f(2), seen
    (None, None, [1, 2])
    """
    avals, spec = _declared("io_callback", result_shape_dtypes)
    made, operands = make_callback("io_callback", callback, args, kwargs, avals, spec)
    outs = host.io_callback(
        *operands, callback=made, result_avals=avals, sharding=sharding, ordered=ordered
    )
    return unflatten(spec, outs)


def effects_barrier() -> None:
    """Wait until the effects of all programs that were started have happened.

    On the CPU they have when the call returns; other devices work through their programs in order,
    so that a small one that is done tells that all before it are.

    >>> effects_barrier()
    """
    for platform, found in list(devices.started().items()):
        if platform != "cpu":
            for device in found:
                _finish(device)


def _finish(device: Any) -> None:
    place = Placement(device, True)
    aval = Aval((), np.dtype(np.int32))
    one = ArrayImpl(aval, None, devices.put_on(np.ones((), np.int32), device), place)
    total: Any = one
    total = total + one
    total.block_until_ready()


__all__ = ["HostCallback", "effects_barrier", "io_callback", "pure_callback"]
