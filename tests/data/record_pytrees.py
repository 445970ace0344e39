"""Recipe of `pytrees.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_pytrees.py > tests/data/pytrees.json

Records the printed value, or the class of the error, of expressions over `tree_util`; the tests
evaluate the same expressions over ours.
"""

import json
import sys

import jax

SETUP = """
import collections, dataclasses, functools, operator, pickle, time
OD, DD, Deque = collections.OrderedDict, collections.defaultdict, collections.deque
Point = collections.namedtuple("Point", "x y")

class Node:
    def __init__(self, child, aux): self.child, self.aux = child, aux
    def __repr__(self): return f"Node({self.child}, {self.aux})"

class Keyed(Node): pass

register_pytree_node(Node, lambda n: ((n.child,), n.aux), lambda aux, c: Node(c[0], aux))
register_pytree_with_keys(
    Keyed, lambda n: (((GetAttrKey("child"), n.child),), n.aux), lambda aux, c: Keyed(c[0], aux))

@register_pytree_node_class
class Both:
    def __init__(self, a, b): self.a, self.b = a, b
    def __repr__(self): return f"Both({self.a}, {self.b})"
    def tree_flatten(self): return (self.a, self.b), None
    @classmethod
    def tree_unflatten(cls, aux, children): return cls(*children)

class Derived(Both): pass

@register_pytree_with_keys_class
class BothKeyed(Both):
    def tree_flatten_with_keys(self):
        return ((GetAttrKey("a"), self.a), (GetAttrKey("b"), self.b)), None

@register_dataclass
@dataclasses.dataclass
class Layer:
    w: float
    b: float
    name: str = dataclasses.field(default="dense", metadata=dict(static=True))

@functools.partial(register_dataclass, data_fields=["w"], meta_fields=["n"])
@dataclasses.dataclass
class Listed:
    w: float
    n: int

@register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    train: bool

def S(tree): return tree_structure(tree)
def pair(*xs): return xs
def join(a, b): return f"({a}{b})"
def is_list(x): return isinstance(x, list)
def is_none(x): return x is None
"""

TREES = """
1
None
[]
()
{}
[1, (2,), {}]
(1, [2, (3, None)], {"b": 4, "a": [5]})
{"b": 1, "a": 2}
{3: 1, 1: 2}
{(1, 2): 1, (0, 5): 2}
{"c'd": 1, "a\\nb": 2}
OD(b=1, a=2)
OD(b=[1], a=None)
DD(list, {"b": 1, "a": 2})
DD(list, {"b": [1, 2]})
Deque([1, 2], maxlen=4)
collections.Counter("aab")
frozenset([1])
"text"
Point(1, (2, 3))
Node([1, 2], "aux")
Node(None, 3)
Keyed({"k": 1}, None)
Both(1, [2])
Derived(1, 2)
BothKeyed(1, [2])
Layer(1.0, [2.0])
Layer(1.0, 2.0, "conv")
Listed([1.0, 2.0], 7)
Mode(True)
Partial(max, 1, [2])
Partial(max, 1, key=2)
functools.partial(max, 1)
[[[[1]]], (((2,),),)]
""".strip().splitlines()

ON_A_TREE = """
tree_flatten(T)
tree_map(lambda x: x, T)
tree_flatten_with_path(T)[0]
[keystr(path) for path, _ in tree_leaves_with_path(T)]
[keystr(path, simple=True, separator="/") for path, _ in tree_leaves_with_path(T)]
S(T).num_leaves, S(T).num_nodes, S(T).children(), treedef_is_leaf(S(T))
(S(T).node_data() or "leaf")[1:]
S(T).unflatten(tree_leaves(T)), S(T).flatten_up_to(T)
S(T) == S(T), S(T) == S([T]), pickle.loads(pickle.dumps(S(T))) == S(T)
S(T).compose(S((1, None)))
S([1, {"k": 2}]).compose(S(T))
tree_flatten(T, is_leaf=is_list)
tree_flatten([T, None], is_leaf=is_none)
tree_flatten_with_path([T], is_leaf=lambda path, x: len(path) == 1, is_leaf_takes_path=True)
is_tree_node(type(T)), all_leaves([T, 1])
tree_broadcast(0, T), tree_broadcast([0, 1], [T, T])
tree_map_with_path(lambda path, x, y: (keystr(path), x, y), [T], [T])
tree_transpose(S([0, 0]), S(T), [T, T])
""".strip().splitlines()

EXPRESSIONS = """
tree_flatten({1: 2, "a": 3})
tree_unflatten(S([1, 2]), [3])
tree_unflatten(S([1, 2]), [3, 4, 5])
tree_unflatten(S([1, 2]), iter([3, 4]))
S(1).unflatten([1, 2])
tree_map(pair, [1, 2], [3, [4]])
tree_map(pair, [[1, 2], 3], [[4], 5], is_leaf=is_list)
tree_map(pair, [1, 2], [1])
tree_map(pair, [1, 2], (1, 2))
tree_map(pair, {"a": 1}, {"b": 1})
tree_map(pair, {"a": 1, "b": 2}, {"b": 3, "a": 4})
tree_map(pair, {"a": 1}, OD(a=1))
tree_map(pair, OD(a=1, b=2), OD(b=1, a=2))
tree_map(pair, DD(int, a=1), DD(list, a=1))
tree_map(pair, None, 1)
tree_map(pair, 1, None)
tree_map(pair, [None, 1], [2, 3], is_leaf=is_none)
tree_map(pair, Node(1, 2), Node(1, 3))
tree_map(pair, Node(1, 2), Keyed(1, 2))
tree_map(pair, Point(1, 2), (1, 2))
tree_map(pair, Layer(1, 2), Layer(3, 4))
tree_map(pair, Layer(1, 2), Layer(3, 4, "conv"))
tree_map(3, [1])
S([1, None]).flatten_up_to([1, 2])
S([1, [2]]).flatten_up_to([1, [{"a": 3}]])
S({"a": 1, "b": 2}) == S({"b": 1, "a": 2}), S([1]) == S((1,)), S(OD(a=1)) == S({"a": 1})
S(Partial(max, 1)) == S(Partial(max, 2)), S(Partial(max, 1)) == S(Partial(min, 1))
S(Mode(True)) == S(Mode(True)), S(Mode(True)) == S(Mode(False))
len({S([1, 2]), S([3, 4]), S((1, 2)), S({"a": 1}), S({"a": 2})})
treedef_tuple([S([1]), S(2)]), treedef_children(S({"a": 1, "b": [2]}))
tree_transpose(S([1, 2]), S({"a": 1}), [{"a": 1}, {"a": 2}])
tree_transpose(S([1, 2]), None, [{"a": 1}, {"a": 2}])
tree_transpose(S([1, 2]), S({"a": 1, "b": 1}), [{"a": 1}, {"a": 2}])
tree_transpose(S([1, 2]), S(1), [1, 2, 3])
tree_all([True, 1]), tree_all([]), tree_all([True, None, 0]), tree_all([[]], is_leaf=is_list)
tree_reduce(operator.add, [1, 2, [3]]), tree_reduce(operator.add, [], 0)
tree_reduce(operator.add, [])
tree_reduce(operator.add, [1], None)
[tree_reduce_associative(join, list("abcdefgh")[:n]) for n in range(1, 9)]
tree_reduce_associative(join, [])
tree_reduce_associative(join, [], identity="e"), tree_reduce_associative(join, ["a"], identity="e")
tree_broadcast([1, 2], [[3, 4], {"a": 5}])
tree_broadcast([1, 2], [3])
tree_broadcast({"a": 1}, {"b": 1})
tree_broadcast([1, (2, 3)], [1, 2])
tree_broadcast(None, [1])
all_leaves([1, 2]), all_leaves([1, None]), all_leaves([1, [2]]), all_leaves([])
DictKey("a"), SequenceKey(1), GetAttrKey("z"), FlattenedIndexKey(3)
DictKey("a") == DictKey("a"), DictKey(1) == SequenceKey(1), len({DictKey("a"), DictKey("a")})
DictKey(key="a").key, SequenceKey(idx=1).idx, GetAttrKey(name="z").name
FlattenedIndexKey(key=3).key
keystr(()), keystr((DictKey("a"), SequenceKey(1), GetAttrKey("z"), FlattenedIndexKey(3)))
pickle.loads(pickle.dumps((DictKey("a"), GetAttrKey("z"))))
SequenceKey("a")
register_pytree_node(Node, pair, pair)
register_pytree_node(list, pair, pair)
register_dataclass(Node)
register_dataclass(Layer, ["w"])
register_dataclass(dataclasses.make_dataclass("D", ["a", "b"]), ["a"], [])
register_dataclass(dataclasses.make_dataclass("D", ["a", "b"]), ["a", "b", "c"], [])
register_dataclass(dataclasses.make_dataclass("D", ["a", "b"]), ["a", "b"], ["b"])
flatten_one_level(3)
tree_leaves(Partial(functools.partial(max, 1), 2)), tree_leaves(Partial(Partial(max, 1), 2))
Partial(max, 3)(5), Partial(max, 3).args, Partial(Partial(max, 1), 2)(0)
tree_map(lambda x: x + 1, Partial(max, 3))(0)
default_registry.flatten([1])[1], default_registry.is_node(list)
S([1, (2,)]).walk(lambda children, aux: sum(children), lambda leaf: 10 * leaf, [1, 2])
S({"a": 1, "b": [2]}).from_iterable_tree([5, [6]])
PyTreeDef.from_node_data_and_children(default_registry, (dict, ["a"]), [S(1)])
""".strip().splitlines()


def evaluate(expression, scope):
    try:
        return repr(eval(expression, scope))
    except Exception as error:
        return f"raises {type(error).__name__}"


scope = dict(vars(jax.tree_util))
exec(SETUP, scope)
results = {e: evaluate(e, scope) for e in EXPRESSIONS}
for tree in TREES:
    for expression in ON_A_TREE:
        expression = f"[{expression} for T in [{tree}]]"
        results[expression] = evaluate(expression, scope)
json.dump({"jax": jax.__version__, "setup": SETUP, "results": results}, sys.stdout, indent=0)
print()
