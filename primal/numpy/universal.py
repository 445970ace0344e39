"""Functions with the methods of NumPy's ufuncs: `jnp.add.reduce(x)`, `jnp.add.at(x, i, y)`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.api.control.loops import scan
from primal.base.dtypes import issubdtype, result_type
from primal.ir.trace import Array
from primal.numpy import choosing, composed, cumulative, direct, reductions, ufuncs
from primal.numpy.creation import asarray, full
from primal.numpy.joining import concatenate, stack
from primal.numpy.mapping import vectorize
from primal.numpy.promotion import array_operand, check_arraylike, with_rank
from primal.numpy.reductions import as_axes, check_out
from primal.numpy.remembered import remembered
from primal.numpy.shapes import broadcast_to, expand_dims, moveaxis
from primal.numpy.ufuncs import as_bool
from primal.ops.reduce import reduce_and, reduce_or, reduce_xor
from primal.ops.window.cumulative import cummax, cummin
from primal.runtime.refusals import in_words


class ufunc:
    """An elementwise function with NumPy's methods: reduce, accumulate, at, outer, reduceat.

    `func` takes `nin` scalars and returns `nout`; `identity` starts a reduction.

    >>> jnp.add.reduce(jnp.arange(4)), jnp.add.outer(jnp.arange(2), jnp.arange(2)).shape
    (Array(6, dtype=int32), (2, 2))
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        self._nin, self._nout = nin, nout
        self._nargs = nin if nargs is None else nargs
        self._identity = identity
        self.__name__ = name or getattr(func, "__name__", "ufunc")
        self.__doc__ = func.__doc__
        self.__wrapped__ = func
        self._func, self._given = func, call
        self._call = call or vectorize(func)
        self._reduce, self._accumulate, self._at = reduce, accumulate, at
        self._reduceat = reduceat

    @property
    def nin(self) -> int:
        """How many operands the function takes."""
        return self._nin

    @property
    def nout(self) -> int:
        """How many results it returns."""
        return self._nout

    @property
    def nargs(self) -> int:
        """How many arguments a call takes: its operands, as there is no `out`."""
        return self._nargs

    @property
    def identity(self) -> Any:
        """What a reduction starts from, or None."""
        return self._identity

    def _key(self) -> tuple[Any, ...]:
        return (
            self._func, self.__name__, self._nin, self._nout, self._nargs, self._identity,
            self._given, self._reduce, self._accumulate, self._at, self._reduceat,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        """Two ufuncs of one function are equal, so that jit's static arguments trace once."""
        return self is other or (isinstance(other, ufunc) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        """Those of the namespace are pickled by name."""
        name = str(self.__name__)
        return name if globals().get(name) is self else super().__reduce__()

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Array:
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        if len(args) != self.nin:
            raise TypeError(
                f"{self.__name__}() takes {self.nin} positional arguments but "
                f"{len(args)} were given"
            )
        return self._call(*args)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def _check_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"ufunc.{method} only supported for binary ufuncs returning one value")

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """The function folded over an axis: f(f(a[0], a[1]), a[2]) and so on."""
        self._check_binary("reduce")
        check_out(f"{self.__name__}.reduce", out)
        check_arraylike(f"{self.__name__}.reduce", a)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__} does not have an identity, so to use a where "
                "mask one has to specify 'initial'"
            )
        if self._reduce is not None:
            return self._reduce(
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        return self._fold(a, axis, dtype, keepdims, initial, where)

    def _fold(
        self, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
    ) -> Array:
        x = array_operand("reduce", a)
        x = x if dtype is None else x.astype(dtype)
        axes = as_axes("reduce", axis, x.ndim)
        rest = tuple([n for i, n in enumerate(x.shape) if i not in axes])

        def as_items(v: Any) -> Any:
            count = math.prod(v.shape[i] for i in axes)
            return moveaxis(v, axes, tuple(range(len(axes)))).reshape((count, *rest))

        items = as_items(x)
        keep = None if where is None else as_items(broadcast_to(as_bool(asarray(where)), x.shape))
        start = initial if initial is not None else self.identity
        if start is None:
            if not items.shape[0]:
                raise ValueError(
                    f"zero-size array to reduction operation {self.__name__} which has no identity"
                )
            carry, items = items[0], items[1:]
        else:
            carry = full(rest, 0, items.dtype)
        kind = result_type(self._call(carry, carry))
        if start is not None:
            carry = full(rest, start, kind)  # not in that of the items: -inf is no integer

        def step(c: Any, item: Any) -> Any:
            value, kept = item
            new = self._call(c, value).astype(kind)
            return (new if kept is None else choosing.where(kept, new, c)), None

        result = scan(step, carry.astype(kind), (items, keep))[0]
        return expand_dims(result, axes) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """The partial results of `reduce` along an axis."""
        self._check_binary("accumulate")
        check_out(f"{self.__name__}.accumulate", out)
        check_arraylike(f"{self.__name__}.accumulate", a)
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        x = array_operand("accumulate", a)
        x = moveaxis(x if dtype is None else x.astype(dtype), axis, 0)
        if not x.shape[0]:
            return moveaxis(x, 0, axis)
        kind = result_type(self._call(x[0], x[0]))
        x = x.astype(kind)

        def step(c: Any, item: Any) -> Any:
            new = self._call(c, item).astype(kind)
            return new, new

        tail = scan(step, x[0], x[1:])[1]
        out = moveaxis(concatenate([x[:1], tail]), 0, axis)
        # Truths come in the dtype that is asked for, as from `reduce`.
        return out if dtype is None or kind != np.bool_ else out.astype(dtype)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """The array with elements at indices replaced by the function of them and b.

        Repeated indices apply repeatedly. Arrays are immutable, so `inplace` must be False. Raises
        TypeError for a list of indices.
        """
        if inplace:
            raise NotImplementedError(
                "JAX arrays are immutable: call ufunc.at with inplace=False, which returns a copy."
            )
        x = array_operand("at", a)
        if isinstance(indices, list):
            raise TypeError(
                f"[{self.__name__}.at] expected an array or a tuple of indices, got a list: "
                "convert it with primal.numpy.array."
            )
        if b is None:
            return x.at[indices].set(self._call(x[indices]))
        if self._at is not None:
            return self._at(x, indices, b)
        places = asarray(indices)
        values = asarray(b)
        flat, items = places.reshape(-1), full(places.shape, values).reshape(-1)

        def step(c: Any, pair: Any) -> Any:
            i, v = pair
            return c.at[i].set(self._call(c[i], v).astype(c.dtype)), None

        return scan(step, x, (flat, items))[0]

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Reductions of slices between indices; where they do not rise, the element itself."""
        self._check_binary("reduceat")
        check_out(f"{self.__name__}.reduceat", out)
        check_arraylike(f"{self.__name__}.reduceat", a, indices)
        x = array_operand("reduceat", a)
        x = x if dtype is None else x.astype(dtype)
        if self._reduceat is not None:
            return self._reduceat(x, indices, axis=axis)
        return _of_slices(self.reduce, x, indices, axis)

    def outer(self, A: Any, B: Any, /) -> Array:
        """The function of all pairs of elements."""
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return self._outer(A, B)

    @functools.cached_property
    def _outer(self) -> Callable[..., Any]:
        def outer(A: Any, B: Any) -> Any:
            x, y = array_operand("outer", A), array_operand("outer", B, 1)
            return self._call(x.reshape(x.shape + (1,) * y.ndim), with_rank(y, x.ndim + y.ndim))

        return remembered(outer)


@in_words
def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A function of scalars as a ufunc; `func` must be traceable.

    Raises AttributeError for what is no function.

    >>> jnp.frompyfunc(lambda x, y: x + 10 * y, 2, 1)(jnp.arange(2), 1)
    Array([10, 11], dtype=int32)
    """
    if not callable(func):
        raise AttributeError(f"[frompyfunc] expected a function, got {func!r}.")
    return ufunc(func, nin, nout, identity=identity)


def _of_slices(reduce: Callable[..., Any], x: Any, indices: Any, axis: int) -> Array:
    x = moveaxis(x, axis, 0)
    starts = [int(i) for i in asarray(indices)]
    if not starts:
        return moveaxis(x[:0], 0, axis)
    ends = [*starts[1:], x.shape[0]]
    parts = [reduce(x[i : max(i + 1, j)], axis=0) for i, j in zip(starts, ends, strict=True)]
    return moveaxis(stack(parts), 0, axis)


# The functions of this module that are ufuncs, with what their methods do best.


def _slices(function: Callable[..., Any], numpys: np.ufunc) -> Callable[..., Any]:
    def reduceat(a: Any, indices: Any, *, axis: int = 0) -> Any:
        # In the array's own dtype, where a reduction widens integers.
        return _of_slices(function, a, indices, axis).astype(a.dtype)

    return remembered(reduceat, direct.reduceat(numpys))


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(a: Any, **options: Any) -> Any:
        dtype = options.pop("dtype", None)
        return function(a if dtype is None else asarray(a, dtype), **options)

    return reduce


def _bits(op: Any, identity: int, of_truths: bool = False) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        x = array_operand("reduce", a)
        x = x if dtype is None else x.astype(dtype)
        if of_truths and dtype is not None:  # the result's too, where `logical_and` has booleans
            return reduce(as_bool(x), axis, None, keepdims, initial, where).astype(dtype)
        x = as_bool(x) if of_truths else x
        if x.dtype != np.bool_ and not issubdtype(x.dtype, np.integer):
            raise ValueError(f"[reduce] expected an integer or bool dtype, got {x.dtype.name}.")
        if where is not None:
            x = choosing.where(where, x, np.asarray(identity).astype(x.dtype))
        axes = as_axes("reduce", axis, x.ndim)
        out = op(x, axes=axes)
        out = expand_dims(out, axes) if keepdims else out
        if initial is None:
            return out
        pick = {reduce_and: ufuncs.bitwise_and, reduce_or: ufuncs.bitwise_or}
        return pick.get(op, ufuncs.bitwise_xor)(out, asarray(initial).astype(x.dtype))

    return remembered(reduce)


def _running(op: Any) -> Callable[..., Any]:
    def accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Any:
        x = array_operand("accumulate", a)
        x = x if dtype is None else x.astype(dtype)
        numbers = x.astype(np.uint8) if x.dtype == np.bool_ else x
        axis = reductions.as_axis("accumulate", axis, x.ndim)
        return op(numbers, axis=axis, reverse=False).astype(x.dtype)

    return remembered(accumulate)


def _at(method: str, of_truths: str | None = None) -> Callable[..., Any]:
    """The update of the name; of truth values, where it has another, that one."""

    def at(x: Any, indices: Any, b: Any) -> Any:
        if of_truths and x.dtype == np.bool_:
            return getattr(x.at[indices], of_truths)(as_bool(asarray(b)))
        return getattr(x.at[indices], method)(b)

    return at


def _of(function: Any, **facts: Any) -> ufunc:
    return ufunc(function, facts.pop("nin", 2), 1, call=function, **facts)


add = _of(ufuncs.add, identity=0, reduce=reductions.sum, accumulate=cumulative.cumsum,
          at=_at("add", "max"), reduceat=_slices(reductions.sum, np.add))  # fmt: skip
subtract = _of(ufuncs.subtract, at=_at("subtract"))
multiply = _of(ufuncs.multiply, identity=1, reduce=reductions.prod,
               accumulate=cumulative.cumprod, at=_at("multiply", "min"),
               reduceat=_slices(reductions.prod, np.multiply))  # fmt: skip
maximum = _of(ufuncs.maximum, reduce=_reduction(reductions.max), accumulate=_running(cummax),
              at=_at("max"))  # fmt: skip
minimum = _of(ufuncs.minimum, reduce=_reduction(reductions.min), accumulate=_running(cummin),
              at=_at("min"))  # fmt: skip
negative = _of(ufuncs.negative, nin=1)
logical_and = _of(ufuncs.logical_and, identity=True, reduce=_bits(reduce_and, -1, True))
logical_or = _of(ufuncs.logical_or, identity=False, reduce=_bits(reduce_or, 0, True))
logical_xor = _of(ufuncs.logical_xor, identity=False, reduce=_bits(reduce_xor, 0, True))
bitwise_and = _of(ufuncs.bitwise_and, identity=-1, reduce=_bits(reduce_and, -1))
bitwise_or = _of(ufuncs.bitwise_or, identity=0, reduce=_bits(reduce_or, 0))
bitwise_xor = _of(ufuncs.bitwise_xor, identity=0, reduce=_bits(reduce_xor, 0))
logaddexp = _of(composed.logaddexp, identity=-np.inf)
logaddexp2 = _of(composed.logaddexp2, identity=-np.inf)
