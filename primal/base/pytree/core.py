"""Trees of containers on optree: node types, flattening, unflattening.

A *spec* is an `optree.PyTreeSpec`. `outline(spec)` shows one as nested tuples, for walks in Python
and the dispatcher: `LEAF`, or `(type, aux, *children)`.

What programs see differs from optree in four points, which are settled here: dictionaries come back
sorted, for which trees are put together by `walk`, as `PyTreeSpec.unflatten` restores the order of
insertion; keys that do not compare are refused; `deque` and structure sequences are leaves;
metadata need no hash. optree is imported where the first tree is flattened.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple, TypeAlias

from primal.base import caches, forks
from primal.base.patience import unbroken
from primal.base.pytree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Spec: TypeAlias = Any  # optree.PyTreeSpec
Outline: TypeAlias = Any  # LEAF or (type, aux, *children)
IsLeaf: TypeAlias = Callable[..., bool] | None

NoneType = type(None)
SPACE = "primal"  # of our node types in optree's registry


class _Leaf:
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


LEAF = _Leaf()


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


def thaw(aux: Any) -> Any:
    """Return metadata as its node type gave it."""
    return aux.value if type(aux) is Opaque else aux


def freeze(aux: Any) -> Any:
    """Return metadata in the form in which it stands in specs: hashable."""
    try:
        hash(aux)
    except TypeError:
        return Opaque(aux)
    return aux


# --- node types -----------------------------------------------------------------------------------


class NodeType(NamedTuple):
    """How one Python type is taken apart and put together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Iterable[Any]], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]


_node_types: dict[type, NodeType] = {}
_DICTS = (dict, OrderedDict, defaultdict)
_BUILTIN = (list, tuple, NoneType, *_DICTS)
_registering = forks.rlock()
_optree: Any = None
_leaf: Any = None  # the spec of a leaf


class _ExitFunctions:
    # Equals the C functions registered at `atexit` since a first look. optree's would forget all
    # node types at exit, before the functions run that a program registered earlier.
    def __init__(self) -> None:
        self.others: list[Any] = []
        self.seen_all = False

    def __eq__(self, other: object) -> bool:
        if not self.seen_all:
            self.others.append(other)
            return False
        return isinstance(other, BuiltinFunctionType) and all(other is not f for f in self.others)


def engine() -> Any:
    """Return optree, told of all node types: 5 to 15 ms, when the first tree is met."""
    if _optree is None:
        unbroken(_load)
    return _optree


def _load() -> None:
    global _optree, _leaf
    with _registering:
        if _optree is not None:
            return
        mine: Any = _ExitFunctions()
        atexit.unregister(mine)  # takes none away
        import optree

        mine.seen_all = True
        atexit.unregister(mine)
        for cls in _node_types:
            _tell(optree, cls)
        _leaf = optree.treespec_leaf()
        _optree = optree


def _tell(optree: Any, cls: type) -> None:
    with warnings.catch_warnings():  # of namedtuples, which are nodes already
        warnings.simplefilter("ignore")
        optree.register_pytree_node(
            cls,
            lambda x: take_apart(x, cls),
            lambda aux, children: _node_types[cls].unflatten(thaw(aux), children),
            namespace=SPACE,
        )


def register(cls: type, node_type: NodeType) -> None:
    """Make a type a node type; ValueError if it is one already."""
    if not isinstance(cls, type):
        raise TypeError(f"[register_pytree_node] expected a class, got {cls!r}.")
    if cls in _BUILTIN or cls in _node_types:
        raise ValueError(
            f"[register_pytree_node] expected a class that is not registered, got {cls!r}: "
            "Duplicate custom PyTreeDef type registration.\n"
            "A class is registered once, where it is defined."
        )
    if cls is deque:  # optree has rules of its own for it, which cannot be replaced
        raise ValueError(
            "[register_pytree_node] expected another class than collections.deque, whose values "
            "are leaves.\nMake a subclass of it, and register that."
        )
    with _registering:
        _node_types[cls] = node_type
        if _optree is not None:
            _tell(_optree, cls)
    _is_node.pop(cls, None)
    _FOREIGN.pop(cls, None)


def has_own_rules(cls: type) -> bool:
    """Return whether a node type is none of list, tuple, dict, None and namedtuples."""
    return cls in _node_types or cls is OrderedDict or cls is defaultdict


def is_namedtuple_type(cls: type) -> bool:
    """Return whether a type was made by `collections.namedtuple` or `typing.NamedTuple`."""
    return (
        issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
    )


def is_node_type(cls: type) -> bool:
    """Return whether values of a type are nodes rather than leaves."""
    return _is_node[cls]


class _IsNode(dict[type, bool]):
    # type -> whether its values are nodes, decided once per type.
    def __missing__(self, cls: type) -> bool:
        self[cls] = found = cls in _BUILTIN or cls in _node_types or is_namedtuple_type(cls)
        return found


_is_node = _IsNode()


def take_apart(x: Any, cls: type) -> tuple[tuple[Any, ...], Any]:
    """Return (children, metadata as it stands in specs) of a node."""
    if cls not in _node_types:
        if cls not in _DICTS:
            return () if x is None else tuple(x), None
        keys = tuple(x) if cls is OrderedDict else sorted_keys(x)
        children = tuple([x[key] for key in keys])
        return children, (x.default_factory, keys) if cls is defaultdict else keys
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
    return children, aux if aux is None else freeze(aux)


def sorted_keys(x: Iterable[Any]) -> tuple[Any, ...]:
    """Return a dictionary's keys in flattening order; ValueError if they cannot be sorted."""
    try:
        return tuple(sorted(x))
    except Exception as error:
        raise ValueError(
            f"[pytree] expected dictionary keys that can be sorted, got {list(x)!r}: Comparator "
            "raised exception while sorting pytree dictionary keys.\n"
            "Use keys of one type, or collections.OrderedDict, which keeps its own order."
        ) from error


def keys_by_position(
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
) -> Callable[[Any], tuple[list[tuple[Any, Any]], Any]]:
    """Return a flatten_with_keys for a type that has only a flatten function."""

    def flatten_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, aux = flatten_func(x)
        return [(FlattenedIndexKey(i), child) for i, child in enumerate(children)], aux

    return flatten_with_keys


# --- flattening -----------------------------------------------------------------------------------

# Specs without nodes of optree alone; plain containers only, since metadata may hold arrays alive.
_ours: set[Spec] = set()
_MOST = 4096


@caches.register
def _forget_types() -> None:
    _is_node.clear()
    _FOREIGN.clear()
    _ours.clear()


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """Return (leaves, spec): the hot path of every transformation.

    >>> flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeSpec({'a': (*, None), 'b': *}))
    """
    optree = _optree or engine()
    cls: Any = type(tree)
    if not _is_node[cls]:
        return [tree], _leaf
    if (cls is list or cls is tuple) and not any(map(_is_node.__getitem__, map(type, tree))):
        return list(tree), _flat_spec(cls, len(tree))  # optree takes 0.25 us per leaf
    leaves, spec = optree.tree_flatten(tree, namespace=SPACE)
    if spec not in _ours:
        try:
            _check(spec)
        except ValueError:
            return flatten_until(tree, lambda _: False)
    return leaves, spec


@functools.lru_cache
def _flat_spec(cls: type, size: int) -> Spec:
    return engine().tree_structure(cls([0] * size), namespace=SPACE)


def flatten_args(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Spec]:
    """Return `flatten((args, kwargs))`."""
    return flatten((args, kwargs))


def flatten_until(tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Spec]:
    """Return (leaves, spec), where `is_leaf(node)` may end the descent early."""
    if is_leaf is None:
        return flatten(tree)

    def stops(x: Any) -> bool:
        return bool(is_leaf(x)) or _FOREIGN[type(x)]

    leaves, spec = engine().tree_flatten(tree, stops, namespace=SPACE)
    if spec not in _ours:
        _check(spec)
    return leaves, spec


class _Foreign(dict[type, bool]):
    # Whether a type is a node in optree and a leaf here.
    def __missing__(self, cls: type) -> bool:
        known = engine().register_pytree_node.get(cls, namespace=SPACE) is not None
        self[cls] = found = known and not is_node_type(cls)
        return found


_FOREIGN = _Foreign()


def _check(spec: Spec) -> None:
    if spec.walk(itertools.repeat(True, spec.num_leaves), _is_plain, None):
        if len(_ours) >= _MOST:
            _ours.clear()
        _ours.add(spec)


def _is_plain(cls: type, data: Any, children: tuple[bool, ...]) -> bool:
    if cls is dict:
        sorted_keys(data)
    elif cls is defaultdict:
        sorted_keys(data[1])
    elif not _is_node[cls]:
        raise ValueError("[pytree] expected no node of optree alone.")
    return cls is not defaultdict and cls not in _node_types and all(children)


def one_level(tree: Any) -> tuple[tuple[Any, ...], Any] | None:
    """Return (children, metadata as in specs) of a node, or None for a leaf."""
    cls = type(tree)
    if not _is_node[cls]:
        return None
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
    elif cls in _DICTS:
        keys = map(DictKey, aux[1] if cls is defaultdict else aux)
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


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], Spec]:
    """Return ([(path of keys, leaf), ...], spec)."""
    leaves: list[tuple[tuple[Any, ...], Any]] = []
    answers: list[bool] = []

    # The nodes still to be seen, the next one last. A function that calls itself by a name of this
    # one would be a circle, in which the leaves wait for the collector.
    pending: list[tuple[tuple[Any, ...], Any]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        if is_leaf is not None:
            answers.append(bool(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)))
        found = None if answers and answers[-1] else one_level_with_keys(node)
        if found is None:
            leaves.append((path, node))
        else:
            pending += [((*path, key), child) for key, child in reversed(found[0])]
    if is_leaf is None:
        return leaves, flatten(tree)[1]
    again = iter(answers)  # `is_leaf` is asked once about each node
    return leaves, flatten_until(tree, lambda _: next(again))[1]


# --- unflattening ---------------------------------------------------------------------------------


def unflatten(spec: Spec, leaves: Iterable[Any]) -> Any:
    """Return the tree of a spec around leaves, whose number must be right."""
    return spec.walk(leaves, put_together, None)


def outline(spec: Spec) -> Outline:
    """Return a spec as nested tuples."""
    return spec.walk(itertools.repeat(LEAF, spec.num_leaves), _outlined, None)


def _outlined(cls: type, data: Any, children: tuple[Any, ...]) -> Outline:
    if cls is dict or cls is OrderedDict:
        data = tuple(data)
    elif cls is defaultdict:
        data = data[0], tuple(data[1])
    elif cls not in _node_types:
        data = None
    return (cls, data, *children)


def build(outline: Outline, leaves: Iterator[Any]) -> Any:
    """Return the tree of an outline around the next leaves."""
    if outline is LEAF:
        return next(leaves)
    return put_together(outline[0], outline[1], [build(child, leaves) for child in outline[2:]])


def put_together(cls: type, aux: Any, children: Sequence[Any]) -> Any:
    """Return a node around children that are trees already."""
    if cls is dict or cls is OrderedDict:
        return cls(zip(aux, children, strict=True))
    if cls is list or cls is tuple:
        return cls(children)
    if cls in _node_types:
        return _node_types[cls].unflatten(thaw(aux), tuple(children))
    if cls is defaultdict:
        return cls(aux[0], zip(aux[1], children, strict=True))
    return None if cls is NoneType else cls(*children)
