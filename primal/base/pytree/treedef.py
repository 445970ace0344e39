"""`PyTreeDef`: the structure of a tree as users see and hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from primal.base.pytree.core import (
    LEAF,
    NoneType,
    Spec,
    aux_of,
    freeze_aux,
    has_own_rules,
    is_node_type,
    put_together,
    unflatten,
)
from primal.base.pytree.prefix import count_leaves, subtrees


def count_nodes(spec: Spec) -> int:
    """Return the number of nodes of a spec, leaves and Nones included."""
    if spec is LEAF:
        return 1
    return 1 + sum([1 if child is LEAF else count_nodes(child) for child in spec[2:]])


def show(spec: Spec) -> str:
    """Return a spec as text: leaves are `*`, custom nodes `CustomNode(type[metadata], [...])`."""
    if spec is LEAF:
        return "*"
    cls, aux = spec[0], aux_of(spec)
    children = [show(child) for child in spec[2:]]
    inside = ", ".join(children)
    if cls is NoneType:
        return "None"
    if cls is list:
        return f"[{inside}]"
    if cls is tuple:
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    if cls is dict:
        items = (f"{key!r}: {child}" for key, child in zip(aux, children, strict=True))
        return "{" + ", ".join(items) + "}"
    name = f"{cls.__name__}[{aux}]" if has_own_rules(cls) else f"namedtuple[{cls.__name__}]"
    return f"CustomNode({name}, [{inside}])"


class PyTreeDef:
    """The structure of a tree: its containers, their keys and metadata, without the leaves.

    >>> from primal.base.pytree import tree_structure
    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("_hash", "num_leaves", "spec")
    spec: Spec
    num_leaves: int

    def __init__(self, spec: Spec, num_leaves: int | None = None) -> None:
        self.spec = spec
        self.num_leaves = count_leaves(spec) if num_leaves is None else num_leaves
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes, leaves and Nones included."""
        return count_nodes(self.spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        return self.spec is other.spec or bool(self.spec == other.spec)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.spec)
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({show(self.spec)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self.spec, self.num_leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves; ValueError if their number differs from `num_leaves`.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure({"a": 1, "b": [2, 3]}).unflatten([4, 5, 6])
        {'a': 4, 'b': [5, 6]}
        """
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"[tree_unflatten] expected {self.num_leaves} leaves for {self}, got {len(leaves)}."
            )
        return unflatten(self.spec, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the places of this structure's leaves.

        Raises ValueError where the tree differs above them.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure({"a": 1, "b": 2}).flatten_up_to({"a": [3, 4], "b": 5})
        [[3, 4], 5]
        """
        return subtrees(self.spec, tree, "flatten_up_to", "the tree")

    def children(self) -> list[PyTreeDef]:
        """Return the structures of the children; none for leaves."""
        return [] if self.spec is LEAF else [PyTreeDef(child) for child in self.spec[2:]]

    def node_data(self) -> tuple[type, Any] | None:
        """Return (type, metadata) of the root, None for a leaf; a dict's metadata are its keys."""
        if self.spec is LEAF:
            return None
        aux = aux_of(self.spec)
        return self.spec[0], list(aux) if self.spec[0] is dict else aux

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` at the place of every leaf.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure([1, 2]).compose(tree_structure((1,)))
        PyTreeDef([(*,), (*,)])
        """

        def put(spec: Spec) -> Spec:
            return inner.spec if spec is LEAF else (*spec[:2], *map(put, spec[2:]))

        return PyTreeDef(put(self.spec), self.num_leaves * inner.num_leaves)

    def walk(
        self,
        f_node: Callable[[Any, Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Fold the tree: `f_node(tuple of results of the children, metadata)`, `f_leaf(leaf)`."""
        take = iter(leaves).__next__

        def fold(spec: Spec) -> Any:
            if spec is LEAF:
                return take() if f_leaf is None else f_leaf(take())
            return f_node(tuple([fold(child) for child in spec[2:]]), aux_of(spec))

        return fold(self.spec)

    def from_iterable_tree(self, tree: Any) -> Any:
        """Return the tree of this structure, given its children as nested iterables."""

        def build(spec: Spec, given: Any) -> Any:
            if spec is LEAF:
                return given
            pairs = zip(spec[2:], given, strict=True)
            return put_together(spec, [build(child, x) for child, x in pairs])

        return build(self.spec, tree)

    @staticmethod
    def from_node_data_and_children(
        registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """Return the structure with this root: the inverse of `node_data()` and `children()`."""
        if node_data is None:
            return PyTreeDef(LEAF)
        cls, aux = node_data
        if not is_node_type(cls):
            raise ValueError(f"[pytree] expected a registered node type, got {cls!r}.")
        if cls is dict:
            aux = tuple(aux)
        elif aux is not None:
            aux = freeze_aux(aux)
        return PyTreeDef((cls, aux, *[child.spec for child in children]))


def as_treedef(value: Any, where: str) -> PyTreeDef:
    """Return the value if it is a PyTreeDef, else raise a TypeError that names the function."""
    if isinstance(value, PyTreeDef):
        return value
    raise TypeError(
        f"[{where}] expected a PyTreeDef, got {value!r} of type {type(value).__name__}.\n"
        "tree_structure(tree) makes one."
    )


def specs_of(treedefs: Iterable[PyTreeDef], where: str) -> Sequence[Spec]:
    """Return the specs of several structures."""
    return [as_treedef(treedef, where).spec for treedef in treedefs]
