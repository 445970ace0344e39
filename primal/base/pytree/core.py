"""Trees of containers: the registry of node types, flattening, unflattening.

A *spec* describes a tree without its leaves as nested tuples: `LEAF`, or `(type, aux, *children)`.
Specs are hashable and compare by value in C, so they serve as keys of the jit cache as they are;
`PyTreeDef` is the object that users see around one.

Plain Python, by measurement (2 CPUs, Python 3.11; microseconds for flatten, hash, unflatten):

    a dict of 12 dicts of 12 arrays | nested tuples 24, 1.7, 26 | optree 59, 3.1, 10 | jaxlib 28,
    1.3, 11 ((x, y), {})                    | 1.2, .1, 1.7              | 2.0, .3, .4        | .7,
    .15, .4

optree also differs where programs notice (docs/architecture.md, "Where the design was changed").
`flatten` and `unflatten` below are the seam at which a C extension could replace the loops.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from primal.base import caches
from primal.base.pytree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Spec: TypeAlias = Any  # LEAF or (type, aux, *children)
IsLeaf: TypeAlias = Callable[..., bool] | None
_Flattener: TypeAlias = Callable[[Any, list[Any]], Spec]
_Builder: TypeAlias = Callable[[Spec, Iterator[Any]], Any]


class _Leaf:
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "LEAF"


LEAF = _Leaf()
NoneType = type(None)
NONE: Spec = (NoneType, None)


class Opaque:
    """Stands for metadata without a hash inside a spec: hashes by type, compares by value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Opaque):
            return NotImplemented
        if self.value is other.value:
            return True
        try:
            return bool(self.value == other.value)
        except Exception as error:
            raise ValueError(
                "[pytree] expected node metadata that can be compared, got metadata of type "
                f"{type(self.value).__name__}, whose == failed.\nArrays cannot be metadata: make "
                "them children of the node, and keep metadata hashable with a plain equality."
            ) from error

    def __repr__(self) -> str:
        return str(self.value)


def aux_of(spec: Spec) -> Any:
    """Return the metadata of a node's spec as its node type gave it."""
    aux = spec[1]
    return aux.value if type(aux) is Opaque else aux


class NodeType(NamedTuple):
    """How one Python type is taken apart and put together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Iterable[Any]], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
    custom: bool = True


_node_types: dict[type, NodeType] = {}


# --- flattening: one loop per type of node --------------------------------------------------------


class _Flatteners(dict[type, _Flattener | None]):
    # type -> its loop, None for leaves. Misses are decided once per type.
    def __missing__(self, cls: type) -> _Flattener | None:
        found = _flatten_namedtuple if is_namedtuple_type(cls) else None
        self[cls] = found
        if found is None:
            _leaf_types.add(cls)
        return found


def is_namedtuple_type(cls: type) -> bool:
    """Return whether a type was made by `collections.namedtuple` or `typing.NamedTuple`."""
    return (
        issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
    )


_flatteners = _Flatteners()
_flattener = _flatteners.__getitem__
_leaf_types: set[type] = set()
# From this many children on, asking about all of them at once is faster than one by one.
_MANY = 4


@caches.register
def _forget_leaf_types() -> None:
    for cls in [cls for cls, found in _flatteners.items() if found is None]:
        _leaf_types.discard(cls)
        _flatteners.pop(cls, None)


# The loop stands here four times because a call per container costs 0.2 us, a third of flattening a
# pair.
def _flatten_children(head: Spec, children: Sequence[Any], leaves: list[Any]) -> Spec:
    n = len(children)
    if n >= _MANY and _leaf_types.issuperset(map(type, children)):
        leaves.extend(children)
        return head + (LEAF,) * n
    spec: list[Any] = list(head)
    for child in children:
        loop = _flattener(type(child))
        if loop is None:
            leaves.append(child)
            spec.append(LEAF)
        else:
            spec.append(loop(child, leaves))
    return tuple(spec)


def _flatten_list(x: list[Any], leaves: list[Any]) -> Spec:
    if len(x) >= _MANY:
        return _flatten_children((list, None), x, leaves)
    spec: list[Any] = [list, None]
    for child in x:
        loop = _flattener(type(child))
        if loop is None:
            leaves.append(child)
            spec.append(LEAF)
        else:
            spec.append(loop(child, leaves))
    return tuple(spec)


def _flatten_tuple(x: tuple[Any, ...], leaves: list[Any]) -> Spec:
    if len(x) >= _MANY:
        return _flatten_children((tuple, None), x, leaves)
    spec: list[Any] = [tuple, None]
    for child in x:
        loop = _flattener(type(child))
        if loop is None:
            leaves.append(child)
            spec.append(LEAF)
        else:
            spec.append(loop(child, leaves))
    return tuple(spec)


def _flatten_namedtuple(x: tuple[Any, ...], leaves: list[Any]) -> Spec:
    return _flatten_children((type(x), None), x, leaves)


def sorted_keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    """Return a dictionary's keys in flattening order; ValueError if they cannot be sorted."""
    try:
        return tuple(sorted(x))
    except Exception as error:
        raise ValueError(
            f"[pytree] expected dictionary keys that can be sorted, got {list(x)!r}.\n"
            "Use keys of one type, or collections.OrderedDict, which keeps its own order."
        ) from error


def _flatten_dict(x: dict[Any, Any], leaves: list[Any]) -> Spec:
    n = len(x)
    if n >= _MANY:
        keys = sorted_keys(x)
        return _flatten_children((dict, keys), [x[key] for key in keys], leaves)
    keys = sorted_keys(x) if n > 1 else tuple(x)
    spec: list[Any] = [dict, keys]
    for key in keys:
        child = x[key]
        loop = _flattener(type(child))
        if loop is None:
            leaves.append(child)
            spec.append(LEAF)
        else:
            spec.append(loop(child, leaves))
    return tuple(spec)


def _flatten_none(x: None, leaves: list[Any]) -> Spec:
    return NONE


def _flatten_custom(x: Any, leaves: list[Any]) -> Spec:
    cls = type(x)
    children, aux = take_apart(x, cls)
    return _flatten_children((cls, aux), children, leaves)


def take_apart(x: Any, cls: type) -> tuple[tuple[Any, ...], Any]:
    """Return (children, metadata as it stands in specs) of a node whose type is registered."""
    out = _node_types[cls].flatten(x)
    if not isinstance(out, tuple) or len(out) != 2:
        raise ValueError(
            f"[pytree] expected the flatten function of {cls.__name__} to return "
            f"(children, metadata), got {out!r}."
        )
    children, aux = out
    try:
        children = tuple(children)
    except TypeError:
        raise ValueError(
            f"[pytree] expected the flatten function of {cls.__name__} to return (children, "
            f"metadata) with children in a tuple or list, got {out!r}."
        ) from None
    return children, aux if aux is None else freeze_aux(aux)


def freeze_aux(aux: Any) -> Any:
    """Return metadata in the form in which it stands in specs: hashable."""
    try:
        hash(aux)
    except TypeError:
        return Opaque(aux)
    return aux


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """Return (leaves, spec): the hot path of every transformation.

    >>> flatten({"b": 1, "a": (2, None)})
    ([2, 1], (<class 'dict'>, ('a', 'b'), (<class 'tuple'>, None, *, (<class 'NoneType'>, None)),
    *))
    """
    loop = _flattener(type(tree))
    if loop is None:
        return [tree], LEAF
    leaves: list[Any] = []
    return leaves, loop(tree, leaves)


def flatten_args(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Spec]:
    """Return `flatten((args, kwargs))`, faster for flat positional arguments alone."""
    leaves: list[Any] = []
    spec = _flatten_tuple(args, leaves)
    if kwargs:
        return leaves, (tuple, None, spec, _flatten_dict(kwargs, leaves))
    return leaves, (tuple, None, spec, _NO_KWARGS)


_NO_KWARGS: Spec = (dict, ())


def one_level(tree: Any) -> tuple[tuple[Any, ...], Any] | None:
    """Return (children, metadata as in specs) of a node, or None for a leaf."""
    cls = type(tree)
    if _flattener(cls) is None:
        return None
    if cls is list or cls is tuple:
        return tuple(tree), None
    if cls is dict:
        keys = sorted_keys(tree)
        return tuple([tree[key] for key in keys]), keys
    if tree is None:
        return (), None
    if cls not in _node_types:
        return tuple(tree), None  # a namedtuple
    return take_apart(tree, cls)


def one_level_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None:
    """Return ((key, child) pairs, metadata as in specs) of a node, or None for a leaf."""
    cls = type(tree)
    found = one_level(tree)
    if found is None:
        return None
    children, aux = found
    keys: Iterable[Any]
    if cls is list or cls is tuple:
        keys = map(SequenceKey, range(len(children)))
    elif cls is dict:
        keys = map(DictKey, aux)
    elif cls in _node_types:
        pairs = tuple(_node_types[cls].flatten_with_keys(tree)[0])
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError(
                f"[pytree] expected flatten_with_keys of {cls.__name__} to return (key, child) "
                f"pairs as children, got {pairs!r}."
            )
        return pairs, aux
    else:
        keys = map(GetAttrKey, getattr(cls, "_fields", ()))
    return tuple(zip(keys, children, strict=True)), aux


def flatten_until(tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Spec]:
    """Return (leaves, spec), where `is_leaf(node)` may end the descent early."""
    if is_leaf is None:
        return flatten(tree)
    leaves: list[Any] = []
    return leaves, _flatten_until(tree, leaves.append, is_leaf)


def _flatten_until(
    tree: Any, append: Callable[[Any], None], is_leaf: Callable[[Any], bool]
) -> Spec:
    found = None if is_leaf(tree) else one_level(tree)
    if found is None:
        append(tree)
        return LEAF
    children, aux = found
    return (type(tree), aux, *[_flatten_until(child, append, is_leaf) for child in children])


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], Spec]:
    """Return ([(path of keys, leaf), ...], spec)."""
    leaves: list[tuple[tuple[Any, ...], Any]] = []

    def walk(path: tuple[Any, ...], node: Any) -> Spec:
        stop = is_leaf is not None and (
            is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)
        )
        found = None if stop else one_level_with_keys(node)
        if found is None:
            leaves.append((path, node))
            return LEAF
        pairs, aux = found
        return (type(node), aux, *[walk((*path, key), child) for key, child in pairs])

    return leaves, walk((), tree)


# --- unflattening ---------------------------------------------------------------------------------


def _build_list(spec: Spec, rest: Iterator[Any]) -> list[Any]:
    n = len(spec) - 2
    if n >= _MANY and spec.count(LEAF) == n:
        return list(itertools.islice(rest, n))
    return [next(rest) if child is LEAF else _builder(child[0])(child, rest) for child in spec[2:]]


def _build_tuple(spec: Spec, rest: Iterator[Any]) -> Any:
    return tuple(_build_list(spec, rest))


def _build_dict(spec: Spec, rest: Iterator[Any]) -> Any:
    return dict(zip(spec[1], _build_list(spec, rest), strict=True))


def _build_none(spec: Spec, rest: Iterator[Any]) -> Any:
    return None


def _build_namedtuple(spec: Spec, rest: Iterator[Any]) -> Any:
    return spec[0](*_build_list(spec, rest))


def _build_custom(spec: Spec, rest: Iterator[Any]) -> Any:
    return _node_types[spec[0]].unflatten(aux_of(spec), tuple(_build_list(spec, rest)))


class _Builders(dict[type, _Builder]):
    def __missing__(self, cls: type) -> _Builder:
        if not is_namedtuple_type(cls):
            raise ValueError(f"[pytree] expected a registered node type, got {cls!r}.")
        self[cls] = _build_namedtuple
        return _build_namedtuple


_builders = _Builders()
_builder = _builders.__getitem__


def unflatten(spec: Spec, leaves: Iterable[Any]) -> Any:
    """Return the tree of a spec around leaves, whose number must be right (users: `PyTreeDef`)."""
    rest = iter(leaves)
    return next(rest) if spec is LEAF else _builder(spec[0])(spec, rest)


def put_together(spec: Spec, children: Iterable[Any]) -> Any:
    """Return the node of a spec around children that are trees already."""
    shallow = (spec[0], spec[1], *[LEAF] * (len(spec) - 2))
    return unflatten(shallow, children)


# --- registration ---------------------------------------------------------------------------------


def has_own_rules(cls: type) -> bool:
    """Return whether a type was registered, as opposed to list, tuple, dict, None, namedtuples."""
    return cls in _node_types


def is_node_type(cls: type) -> bool:
    """Return whether values of a type are nodes rather than leaves."""
    return _flattener(cls) is not None


def register(cls: type, node_type: NodeType) -> None:
    """Make a type a node type; ValueError if it is one already."""
    if not isinstance(cls, type):
        raise TypeError(f"[register_pytree_node] expected a class, got {cls!r}.")
    if cls in _builtin or cls in _node_types:
        raise ValueError(
            f"[register_pytree_node] expected a class that is not registered, got {cls!r}.\n"
            "A class is registered once, where it is defined."
        )
    _node_types[cls] = node_type
    _builders[cls] = _build_custom
    _flatteners[cls] = _flatten_custom
    _leaf_types.discard(cls)


def keys_by_position(
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
) -> Callable[[Any], tuple[list[tuple[Any, Any]], Any]]:
    """Return a flatten_with_keys for a type that has only a flatten function."""

    def flatten_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, aux = flatten_func(x)
        return [(FlattenedIndexKey(i), child) for i, child in enumerate(children)], aux

    return flatten_with_keys


_builtin: dict[type, tuple[_Flattener, _Builder]] = {
    list: (_flatten_list, _build_list),
    tuple: (_flatten_tuple, _build_tuple),
    dict: (_flatten_dict, _build_dict),
    NoneType: (_flatten_none, _build_none),
}
for _cls, (_loop, _build) in _builtin.items():
    _flatteners[_cls], _builders[_cls] = _loop, _build


def _ordered_keys(
    x: collections.OrderedDict[Any, Any],
) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    return [(DictKey(key), child) for key, child in x.items()], tuple(x)


def _default_aux(x: collections.defaultdict[Any, Any]) -> tuple[Any, tuple[Any, ...]]:
    return x.default_factory, sorted_keys(x)


register(
    collections.OrderedDict,
    NodeType(
        lambda x: (tuple(x.values()), tuple(x)),
        lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
        _ordered_keys,
    ),
)
register(
    collections.defaultdict,
    NodeType(
        lambda x: (tuple([x[key] for key in sorted_keys(x)]), _default_aux(x)),
        lambda aux, children: collections.defaultdict(aux[0], zip(aux[1], children, strict=True)),
        lambda x: ([(DictKey(key), x[key]) for key in sorted_keys(x)], _default_aux(x)),
    ),
)
