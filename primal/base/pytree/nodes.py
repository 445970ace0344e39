"""Making one's own types nodes of trees: registration, dataclasses, static values, `Partial`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from primal.base.pytree import core
from primal.base.pytree.keys import GetAttrKey

T = TypeVar("T")
Typ = TypeVar("Typ", bound=type)
KeyLeafPair = tuple[Any, Any]


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[KeyLeafPair], Hashable]] | None = None,
) -> None:
    """Make values of a class nodes of trees.

    `flatten_func(x)` returns (children, metadata), `unflatten_func(metadata, children)` the value;
    one undoes the other. Metadata should be hashable and have a plain equality. Raises ValueError
    if the class is registered already.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
    >>> core.flatten(Pair(1, 2))[0]
    [1, 2]
    """
    with_keys = flatten_with_keys_func or core.keys_by_position(flatten_func)
    core.register(nodetype, core.NodeType(flatten_func, unflatten_func, with_keys))


def register_pytree_node_class(cls: Typ) -> Typ:
    """Register a class by its methods `tree_flatten(self)`, `tree_unflatten(cls, aux, children)`.

    A decorator. Subclasses are not registered with it. Raises TypeError where a method is missing.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> core.flatten(Box(1))[0]
    [1]
    """
    for name in ("tree_flatten", "tree_unflatten"):
        if not hasattr(cls, name):
            raise TypeError(
                f"[register_pytree_node_class] expected {cls.__name__} to define {name}, got none."
            )
    flatten, unflatten = cls.tree_flatten, cls.tree_unflatten  # type: ignore[attr-defined]
    register_pytree_node(cls, lambda x: flatten(x), lambda aux, children: unflatten(aux, children))
    return cls


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[KeyLeafPair], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make values of a class nodes whose children have keys: `flatten_with_keys(x)` returns
    ([(key, child), ...], metadata). `flatten_func`, without the keys, makes flattening faster.

    >>> class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(
    ...     Named, lambda n: (((GetAttrKey("x"), n.x),), None), lambda _, c: Named(*c)
    ... )
    >>> core.flatten(Named(1))[0]
    [1]
    """
    if flatten_func is None:

        def without_keys(x: T) -> tuple[list[Any], Any]:
            pairs, aux = flatten_with_keys(x)
            return [child for _, child in pairs], aux

        flatten_func = without_keys
    core.register(nodetype, core.NodeType(flatten_func, unflatten_func, flatten_with_keys))


def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Register a class by its methods `tree_flatten_with_keys(self)`, `tree_unflatten(cls, aux,
    children)` and, if it has one, `tree_flatten(self)`. A decorator.

    Raises TypeError where a method is missing.

    >>> @register_pytree_with_keys_class
    ... class Held:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> core.flatten(Held(1))[0]
    [1]
    """
    for name in ("tree_flatten_with_keys", "tree_unflatten"):
        if not hasattr(cls, name):
            raise TypeError(
                f"[register_pytree_with_keys_class] expected {cls.__name__} to define {name}, "
                "got none."
            )
    with_keys, unflatten = cls.tree_flatten_with_keys, cls.tree_unflatten  # type: ignore[attr-defined]
    flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(
        cls,
        lambda x: with_keys(x),
        lambda aux, children: unflatten(aux, children),
        None if flatten is None else lambda x: flatten(x),
    )
    return cls


def register_static(cls: Typ) -> Typ:
    """Make values of a class nodes without children, whose metadata are themselves.

    They need a hash and an equality: a transformation treats different values as different
    programs.

    >>> import dataclasses
    >>> @register_static
    ... @dataclasses.dataclass(frozen=True)
    ... class Mode:
    ...     train: bool
    >>> core.flatten(Mode(True))[0]
    []
    """
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Make a dataclass a node: data fields are children, meta fields metadata.

    Without field lists, fields marked `field(metadata=dict(static=True))` (or `tree.static()`) are
    metadata and the others data. `drop_fields` name init fields that are left to their defaults.
    Any class whose constructor takes the fields by keyword will do if both lists are given. A
    decorator.

    Raises TypeError if one list is missing or the class is no dataclass and none is given,
    ValueError if the lists are not exactly the init fields.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = dataclasses.field(metadata=dict(static=True), default="dense")
    >>> core.flatten(Layer(2.0))[0]
    [2.0]
    """
    import dataclasses  # 10 ms of standard library that a plain `import primal` does not need

    if not isinstance(nodetype, type):
        raise TypeError(f"[register_dataclass] expected a class, got {nodetype!r}.")
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "[register_dataclass] expected data_fields and meta_fields together, got "
            f"{data_fields=} and {meta_fields=}.\nGive both, or mark static fields in the class."
        )
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"[register_dataclass] expected a dataclass, got {nodetype!r}.\n"
                "For other classes give data_fields and meta_fields."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        data_fields = [name for name in data_fields if name not in drop_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)
    overlap = set(data) & set(meta)
    if overlap:
        raise ValueError(
            "[register_dataclass] expected disjoint data_fields and meta_fields, got "
            f"{sorted(overlap)} in both."
        )
    if is_dataclass:
        expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(drop_fields)
        given = set(data) | set(meta)
        if given != expected:
            problems = []
            if expected - given:
                problems.append(f"{sorted(expected - given)} missing (drop_fields excuses them)")
            if given - expected:
                problems.append(f"{sorted(given - expected)} unexpected")
            raise ValueError(
                "[register_dataclass] expected data_fields and meta_fields to be the fields with "
                f"init=True of {nodetype.__name__}, got {' and '.join(problems)}."
            )
    keys = tuple(map(GetAttrKey, data))

    def flatten(x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(x, n) for n in data]), tuple([getattr(x, n) for n in meta])

    def flatten_with_keys(x: Any) -> tuple[tuple[KeyLeafPair, ...], tuple[Any, ...]]:
        children, aux = flatten(x)
        return tuple(zip(keys, children, strict=True)), aux

    def unflatten(aux: Any, children: Any) -> Any:
        values = dict(zip(data, children, strict=True))
        values.update(zip(meta, aux, strict=True))
        return nodetype(**values)

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def static(**kwargs: Any) -> Any:
    """Return a dataclass field that `register_dataclass` treats as metadata.

    Takes the keywords of `dataclasses.field`.

    >>> static(default=3).metadata["static"]
    True
    """
    import dataclasses  # as in register_dataclass

    metadata = dict(kwargs.pop("metadata", None) or {})
    return dataclasses.field(metadata={**metadata, "static": True}, **kwargs)


class _Wrapped:
    """Keeps `functools.partial` from merging an inner partial's arguments into the outer one's."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __eq__(self, other: object) -> bool:
        # Equal to the function itself, too, so that p.func == f after Partial(f).
        return bool(self.fun == (other.fun if isinstance(other, _Wrapped) else other))

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial):
    """A `functools.partial` that is a node: bound arguments are children, the function metadata.

    So it can be passed to transformed functions, which then see the bound arrays.

    >>> add = Partial(max, 3)
    >>> add(5), core.flatten(add)[0]
    (5, [3])
    """

    def __new__(klass, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Wrapped(func)
        return super().__new__(klass, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
