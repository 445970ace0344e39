"""Functions under transformations that take arguments apart: what `extend.linear_util` offers.

Programs here are traced by plain functions. This exists for libraries that are written with JAX's
`linear_util`, and nothing of this library goes by it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from primal.base import caches, config
from primal.ir.state import state


class StoreException(Exception):
    """What a transformation leaves beside its results was asked for too early, or left twice."""


class Store:
    """What one transformation leaves beside the results, once it ran."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._found)

    def store(self, val: Any) -> None:
        """Keep a value; a StoreException where there is one."""
        if self._found:
            raise StoreException("[Store.store] expected an empty store, got a second value.")
        self._found = (val,)

    @property
    def val(self) -> Any:
        """The value; a StoreException before there is one."""
        if not self._found:
            raise StoreException("[Store.val] expected a value, got none: nothing was called.")
        return self._found[0]


class EqualStore(Store):
    """One that may be given its value again."""

    __slots__ = ()

    def store(self, val: Any) -> None:
        """Keep a value; a StoreException where there is another."""
        if not self:
            super().store(val)
        elif self._found[0] != val:
            raise StoreException(
                f"[Store.store] expected {self._found[0]!r} again, got {val!r}."
            )


Step = tuple[Callable[..., Any], tuple[Any, ...]]


class WrappedFun:
    """A function and the transformations around it, the innermost first, as one value.

    Two are equal if all of it is, so that `cache` finds them; what transformations left beside
    their results, in `stores`, is not compared. `params` are further keyword arguments.
    """

    __slots__ = ("f", "transforms", "stores", "params", "debug_info", "__weakref__")

    def __init__(
        self, f: Callable[..., Any], transforms: tuple[Step, ...], stores: tuple[Any, ...],
        params: tuple[tuple[str, Any], ...], debug_info: Any,
    ) -> None:  # fmt: skip
        self.f, self.transforms, self.stores = f, transforms, stores
        self.params, self.debug_info = params, debug_info

    @property
    def __name__(self) -> str:
        return str(getattr(self.f, "__name__", "<unnamed function>"))

    def wrap(self, gen: Callable[..., Any], static: tuple[Any, ...], store: Any) -> WrappedFun:
        """With one more transformation around it: `gen(f, [store,] *static, *args, **kwargs)`."""
        steps, stores = (*self.transforms, (gen, static)), (*self.stores, store)
        return WrappedFun(self.f, steps, stores, self.params, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The transformed results."""
        found = functools.partial(self.f, **dict(self.params)) if self.params else self.f
        for (gen, static), store in zip(self.transforms, self.stores, strict=True):
            beside = () if store is None else (store,)
            found = functools.partial(gen, found, *beside, *static)
        return found(*args, **kwargs)

    def populate_stores(self, stores: Sequence[Any]) -> None:
        """Leave what the transformations of an equal function left."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None:
                mine.store(other.val)

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        steps = [getattr(gen, "__name__", repr(gen)) for gen, _ in self.transforms]
        return f"WrappedFun({self.__name__}, transforms={steps})"


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """A function without transformations; `params` are keyword arguments for every call.

    >>> from primal.extend import linear_util as lu
    >>> lu.wrap_init(lambda x, y: x - y, {"y": 2}).call_wrapped(5)
    3
    """
    given = () if params is None else tuple(sorted(params.items()))
    return WrappedFun(f, (), (), given, debug_info)


def transformation2(gen: Callable[..., Any], *given: Any) -> Any:
    """A transformation of WrappedFuns by `gen(f, *static, *args, **kwargs)`, which calls `f`.

    >>> from primal.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scaled(f, by, *args):
    ...     return by * f(*args)
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """

    def transform(gen: Callable[..., Any], fun: WrappedFun, *static: Any) -> WrappedFun:
        return fun.wrap(gen, static, None)

    return functools.partial(transform, gen, *given)


def transformation_with_aux2(gen: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """The same by `gen(f, store, *static, …)`, which leaves a value with `store.store(value)`.

    The transformation returns the function and what gives that value. With `use_eq_store` it may
    be left again; StoreException otherwise.

    >>> from primal.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(1, 4, 2), count()
    (4, 3)
    """

    def transform(
        gen: Callable[..., Any], fun: WrappedFun, *static: Any, use_eq_store: bool = False
    ) -> tuple[WrappedFun, Callable[[], Any]]:
        store = EqualStore() if use_eq_store else Store()
        return fun.wrap(gen, static, store), lambda: store.val

    return functools.partial(transform, gen, *given, **options)


def transformation(gen: Callable[..., Any], *given: Any) -> Any:
    """The same by a generator: it yields (args, kwargs) for the function and is sent the results,
    then yields the transformed ones.

    >>> from primal.extend import linear_util as lu
    >>> @lu.transformation
    ... def scaled(by, *args):
    ...     found = yield args, {}
    ...     yield by * found
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """
    return transformation2(_turns(gen), *given)


def transformation_with_aux(gen: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """The same whose second yield is the pair of the results and the value left beside them.

    >>> from primal.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def counted(*args):
    ...     found = yield args, {}
    ...     yield found, len(args)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(1, 4, 2), count()
    (4, 3)
    """
    return transformation_with_aux2(_turns_with_aux(gen), *given, **options)


@functools.cache
def _turns(gen: Callable[..., Any]) -> Callable[..., Any]:
    """A generator as a function of the function; one for each, as WrappedFuns compare them."""

    @functools.wraps(gen)
    def around(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        inner, named = next(running)
        return running.send(f(*inner, **named))

    return around


@functools.cache
def _turns_with_aux(gen: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(gen)
    def around(f: Callable[..., Any], store: Any, *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        inner, named = next(running)
        found, aux = running.send(f(*inner, **named))
        store.store(aux)
        return found

    return around


def merge_linear_aux(
    aux1: Callable[[], Any], aux2: Callable[[], Any]
) -> tuple[bool, Any]:
    """(True, aux1()) or (False, aux2()), whichever of two transformations ran.

    StoreException if neither did, or both.

    >>> from primal.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> (_, idle), (fun, count) = counted(lu.wrap_init(max)), counted(lu.wrap_init(min))
    >>> fun.call_wrapped(1, 2), lu.merge_linear_aux(idle, count)
    (1, (False, 2))
    """
    found = []
    for first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((first, aux()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException(
            f"[merge_linear_aux] expected one function that ran, got {len(found)} of 2."
        )
    return found[0]


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """`call(fun, *args)` remembered by an equal WrappedFun and arguments, which are hashable, for
    as long as the function lives. What its transformations left beside their results is left again.

    Named axes and the configuration belong to the key, as tracing reads both. NotImplementedError
    for `explain`, which JAX calls at a miss.

    >>> from primal.extend import linear_util as lu
    >>> @lu.cache
    ... def run(fun, x):
    ...     print("runs")
    ...     return fun.call_wrapped(x)
    >>> run(lu.wrap_init(abs), -3), run(lu.wrap_init(abs), -3)
    runs
    (3, 3)
    """
    if explain is not None:
        raise NotImplementedError("[linear_util.cache] expected explain=None: nothing calls it.")
    table: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        results = table.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args, state.axes, config.config.trace_key())
        if key in results:
            found, stores = results[key]
            fun.populate_stores(stores)
            return found
        found = call(fun, *args)
        results[key] = found, fun.stores
        return found

    remembered.cache_clear = table.clear  # type: ignore[attr-defined]
    caches.register(table.clear)
    return remembered
