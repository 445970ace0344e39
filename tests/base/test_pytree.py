"""Trees: figures recorded from JAX (tests/data/record_pytrees.py), laws, errors, threads."""

import collections
import copy
import enum
import functools
import gc
import json
import pickle
import subprocess
import sys
import threading
import time
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primal.base import caches, pytree

RECORD = json.loads((Path(__file__).parent.parent / "data" / "pytrees.json").read_text())
Point = collections.namedtuple("Point", "x y")


class Node:
    """A custom node that is equal by value, so that round trips can be compared."""

    def __init__(self, children, aux):
        self.children, self.aux = list(children), aux

    def __eq__(self, other):
        return (type(self), self.children, self.aux) == (type(other), other.children, other.aux)

    def __repr__(self):
        return f"Node({self.children}, {self.aux})"


pytree.register_pytree_node(Node, lambda n: (n.children, n.aux), lambda aux, c: Node(c, aux))


@pytest.fixture(scope="module")
def scope():
    names = {name: getattr(pytree, name) for name in dir(pytree)}
    names["__name__"] = "setup"
    exec(RECORD["setup"], names)
    return names


def evaluate(expression, scope):
    try:
        return repr(eval(expression, scope))
    except Exception as error:
        return f"raises {type(error).__name__}"


def prints_alike(expression, result):
    """Python 3.12 prints an OrderedDict in another way than the version of the record."""
    return sys.version_info < (3, 12) or "OrderedDict" not in str(result)


def test_everything_is_as_recorded(scope, monkeypatch):
    # Pickling finds the recorded program's classes by module and name.
    module = types.ModuleType("setup")
    monkeypatch.setitem(sys.modules, "setup", module)
    vars(module).update(scope)
    ours = {e: evaluate(e, scope) for e in RECORD["results"]}
    results = {e: r for e, r in RECORD["results"].items() if prints_alike(e, r)}
    wrong = {e: (want, ours[e]) for e, want in results.items() if ours[e] != want}
    assert wrong == {}
    assert len(ours) > 600


def test_record_is_current(peer):
    path = Path(__file__).parent.parent / "data" / "record_pytrees.py"
    assert json.loads(peer(path.read_text()).stdout) == RECORD


def test_the_public_names_of_the_peer_exist(peer):
    code = (
        "import jax, json, types\n"
        "ok = lambda m: [n for n in dir(m) if n[0] != '_']\n"
        "print(json.dumps([ok(jax.tree_util), ok(jax.tree)]))"
    )
    tree_util, tree = json.loads(peer(code).stdout)
    names = set(dir(pytree))
    assert [n for n in tree_util if n not in names] == []
    assert [n for n in tree if f"tree_{n}" not in names and n != "static"] == []


# --- laws -----------------------------------------------------------------------------------------

leaves = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.booleans())
keys = st.text(max_size=3)


def containers(children):
    return st.one_of(
        st.none(),
        st.lists(children, max_size=4),
        st.lists(children, max_size=4).map(tuple),
        st.dictionaries(keys, children, max_size=4),
        st.dictionaries(keys, children, max_size=4).map(collections.OrderedDict),
        st.dictionaries(keys, children, max_size=4).map(lambda d: collections.defaultdict(list, d)),
        st.tuples(children, children).map(lambda xy: Point(*xy)),
        st.builds(Node, st.lists(children, max_size=3), st.one_of(keys, st.lists(keys))),
        st.builds(lambda x, y: pytree.Partial(max, x, key=y), children, children),
    )


trees = st.recursive(leaves, containers, max_leaves=12)


def same(a, b):
    """Equality that looks into Partial, which compares by identity."""
    flat_a, def_a = pytree.tree_flatten(a)
    flat_b, def_b = pytree.tree_flatten(b)
    return (
        def_a == def_b
        and [type(x) for x in flat_a] == [type(x) for x in flat_b]
        and (flat_a == flat_b)
    )


@given(trees)
def test_unflatten_undoes_flatten(tree):
    flat, treedef = pytree.tree_flatten(tree)
    assert same(pytree.tree_unflatten(treedef, flat), tree)
    assert pytree.tree_flatten(pytree.tree_unflatten(treedef, flat)) == (flat, treedef)
    assert len(flat) == treedef.num_leaves == treedef.spec.num_leaves


@given(trees, st.data())
def test_flatten_undoes_unflatten(tree, data):
    treedef = pytree.tree_structure(tree)
    new = data.draw(st.lists(leaves, min_size=treedef.num_leaves, max_size=treedef.num_leaves))
    assert pytree.tree_flatten(treedef.unflatten(new)) == (new, treedef)


@given(trees)
def test_map_keeps_identity_composition_and_structure(tree):
    f, g = repr, len
    mapped = pytree.tree_map(f, tree)
    assert same(pytree.tree_map(lambda x: x, tree), tree)
    assert pytree.tree_structure(mapped) == pytree.tree_structure(tree)
    assert same(pytree.tree_map(g, mapped), pytree.tree_map(lambda x: g(f(x)), tree))
    deeper = pytree.tree_map(lambda x: (x, [x]), tree)
    inner = pytree.tree_structure((0, [0]))
    assert pytree.tree_structure(deeper) == pytree.tree_structure(tree).compose(inner)


@given(trees, st.lists(leaves, max_size=2))
def test_what_is_a_node_in_optree_alone_is_a_leaf(tree, inside):
    queue = collections.deque([{1: inside, "a": 2}])  # optree takes keys that do not compare
    flat = pytree.tree_leaves([tree, queue, time.gmtime(0)])
    assert flat == [*pytree.tree_leaves(tree), queue, time.gmtime(0)]
    assert pytree.tree_map(lambda x: x, {"q": queue}) == {"q": queue}
    with pytest.raises(ValueError, match="Make a subclass"):
        pytree.register_pytree_node(collections.deque, lambda q: (tuple(q), None), lambda _, c: c)
    assert pytree.tree_leaves([queue]) == [queue]


@given(trees)
def test_structures_hash_compare_pickle_and_copy(tree):
    treedef = pytree.tree_structure(tree)
    again = pytree.tree_structure(pytree.tree_map(lambda x: 0, tree))
    assert treedef == again and hash(treedef) == hash(again) and repr(treedef) == repr(again)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef
    assert treedef != pytree.tree_structure([tree])


@given(trees)
def test_paths_lead_to_the_leaves(tree):
    pairs, treedef = pytree.tree_flatten_with_path(tree)
    assert treedef == pytree.tree_structure(tree)
    assert [leaf for _, leaf in pairs] == pytree.tree_leaves(tree)
    assert len({path for path, _ in pairs}) == len(pairs)
    for path, leaf in pairs:
        node = tree
        for key in path:
            if isinstance(key, pytree.GetAttrKey):
                node = getattr(node, key.name)
            elif isinstance(key, pytree.FlattenedIndexKey):
                node = pytree.flatten_one_level(node)[0][key.key]
            else:
                node = node[key.key if isinstance(key, pytree.DictKey) else key.idx]
        assert node is leaf


@given(trees)
def test_a_tree_is_taken_apart_and_put_together_one_level_at_a_time(tree):
    treedef = pytree.tree_structure(tree)
    rebuilt = pytree.PyTreeDef.from_node_data_and_children(
        pytree.default_registry, treedef.node_data(), treedef.children()
    )
    assert rebuilt == treedef
    assert sum(child.num_nodes for child in treedef.children()) + 1 == treedef.num_nodes
    if treedef.node_data() is not None:
        children, _ = pytree.flatten_one_level(tree)
        assert [pytree.tree_structure(c) for c in children] == treedef.children()
        with_keys, _ = pytree.flatten_one_level_with_keys(tree)
        assert [child for _, child in with_keys] == list(children)


def test_one_level_of_lists_and_named_tuples():
    import collections

    pair = collections.namedtuple("pair", "a b")
    level = pytree.default_registry.flatten_one_level
    assert level(pair(1, [2])) == ([1, [2]], pair)
    assert level([1, (2,)]) == ([1, (2,)], None)
    assert level((1, 2)) == ((1, 2), None)
    assert level({"b": 1, "a": 2}) == ((2, 1), ("a", "b"))
    assert level(1) is None


@given(trees, trees)
def test_broadcasting_and_flatten_up_to_agree(prefix, inner):
    full = pytree.tree_map(lambda _: inner, prefix)
    outer = pytree.tree_structure(prefix)
    assert len(outer.flatten_up_to(full)) == outer.num_leaves
    flat = pytree.broadcast_prefix(prefix, full)
    n = pytree.tree_structure(inner).num_leaves
    assert flat == [x for x in pytree.tree_leaves(prefix) for _ in range(n)]
    assert pytree.tree_leaves(pytree.tree_broadcast(prefix, full)) == flat
    spec = pytree.tree_structure(full).spec
    assert pytree.broadcast_to_spec(prefix, spec, "test") == flat


@given(st.lists(trees, min_size=1, max_size=4), trees)
def test_transposing_twice_changes_nothing(outer, inner):
    outer_def, inner_def = pytree.tree_structure([0] * len(outer)), pytree.tree_structure(inner)
    if not inner_def.num_leaves:
        return
    tree = [pytree.tree_map(lambda x, i=i: (i, x), inner) for i in range(len(outer))]
    tree = pytree.tree_map(str, tree, is_leaf=lambda x: type(x) is tuple and len(x) == 2)
    if pytree.tree_structure(tree) != outer_def.compose(inner_def):
        return
    swapped = pytree.tree_transpose(outer_def, inner_def, tree)
    assert pytree.tree_structure(swapped) == inner_def.compose(outer_def)
    assert same(pytree.tree_transpose(inner_def, outer_def, swapped), tree)


@given(st.lists(trees, max_size=3), st.dictionaries(keys, trees, max_size=2))
def test_the_fast_path_of_calls_is_flatten(args, kwargs):
    args = tuple(args)
    assert pytree.flatten_args(args, kwargs) == pytree.flatten((args, kwargs))


# --- cases ----------------------------------------------------------------------------------------


def test_metadata_keeps_its_own_value_where_it_equals_another():
    first, second = Node([1], 1), Node([1], True)
    assert pytree.tree_map(lambda x: x, first).aux is not True
    assert pytree.tree_map(lambda x: x, second).aux is True
    assert pytree.tree_map(lambda x: x, {1: 2}) == {1: 2}
    assert list(pytree.tree_map(lambda x: x, {True: 2})) == [True]
    assert list(pytree.tree_map(lambda x: x, {"w": 1})) == ["w"]
    Name = enum.StrEnum("Name", {"W": "w"})
    assert list(pytree.tree_map(lambda x: x, {Name.W: 1}))[0] is Name.W


def test_dictionaries_come_back_sorted_whatever_was_seen_before():
    assert list(pytree.tree_map(lambda x: x, {"b": 1, "a": 2})) == ["a", "b"]
    assert list(pytree.tree_map(lambda x: x, {"a": 1, "b": 2})) == ["a", "b"]


def test_metadata_is_not_kept_by_what_is_remembered_of_structures():
    def fun():
        pass

    dead = weakref.ref(fun)
    pytree.tree_map(lambda x: x, {"a": pytree.Partial(fun, 1), "b": Node([1], fun)})
    del fun
    gc.collect()
    assert dead() is None


def test_leaves_are_not_asked_for_their_truth():
    tree = {"a": np.ones(2), "b": [None, Node([np.ones(3)], "x")]}
    for is_leaf in (None, lambda x: x is None):
        kept = pytree.tree_leaves(tree, is_leaf)
        sizes = [x.size for x in kept if x is not None]
        assert sizes == [2, 3]


def test_metadata_without_hash_or_plain_equality():
    a, b = Node([1], {"k": [1]}), Node([2], {"k": [1]})
    assert pytree.tree_structure(a) == pytree.tree_structure(b)
    assert hash(pytree.tree_structure(a)) == hash(pytree.tree_structure(b))
    assert pytree.tree_structure(a).node_data() == (Node, {"k": [1]})
    array = np.ones(3)
    assert pytree.tree_structure(Node([1], array)) == pytree.tree_structure(Node([1], array))
    with pytest.raises(ValueError, match="Arrays cannot be metadata"):
        _ = pytree.tree_structure(Node([1], np.ones(2))) == pytree.tree_structure(
            Node([1], np.ones(2))
        )


def test_a_class_registered_after_use_becomes_a_node():
    class Late:
        def __init__(self, x):
            self.x = x

    assert pytree.tree_leaves([Late(1)]) != [1]
    pytree.register_pytree_node(Late, lambda n: ((n.x,), None), lambda _, c: Late(*c))
    assert pytree.tree_leaves([Late(1)]) == [1]
    caches.clear_all()
    assert pytree.tree_leaves([Late(1)]) == [1]


def test_children_may_come_from_a_generator():
    class Lazy:
        pass

    pytree.register_pytree_node(Lazy, lambda n: ((i for i in range(3)), None), lambda _, c: c)
    assert pytree.tree_map(lambda x: x + 1, Lazy()) == (1, 2, 3)


def test_static_fields():
    import dataclasses

    @pytree.register_dataclass
    @dataclasses.dataclass
    class Model:
        w: float
        act: str = pytree.static(default="relu")

    assert pytree.tree_leaves(Model(1.0)) == [1.0]
    assert pytree.tree_map(lambda x: x + 1, Model(1.0, "tanh")) == Model(2.0, "tanh")


def test_axes_for_every_leaf():
    treedef = pytree.tree_structure((1, {"a": 2, "b": [3, None]}))
    assert pytree.flatten_axes("in_axes", treedef, 0) == [0, 0, 0]
    assert pytree.flatten_axes("in_axes", treedef, (None, {"a": 1, "b": 2})) == [None, 1, 2]
    assert pytree.flatten_axes("in_axes", treedef, (0, {"a": 1, "b": [2, None]})) == [0, 1, 2]


def raises(text, error=ValueError):
    return pytest.raises(error, match=text)


def test_errors_name_the_key_path():
    tree = {"layers": [Point(1, (2, 3)), Node([4], "aux")]}
    cases = [
        ({"layers": [1]}, r"a list of length 2 at key path \['layers'\] of tree 2, got a list of"),
        (
            {"layers": [Point(1, [2, 3]), 0]},
            r"a tuple of length 2 at key path \['layers'\]\[0\]\.y",
        ),
        ({"layers": [Point(1, (2, 3)), 5]}, r"Node with 1 child and metadata aux at key path \['l"),
        ({"layers": [Point(1, (2, 3)), Node([4], "b")]}, r"got Node with 1 child and metadata b"),
        ({"layer": 1}, r"a dict with keys 'layers' at the root of tree 2, got a dict with keys"),
        ([], r"at the root of tree 2, got a list of length 0"),
    ]
    for other, text in cases:
        with raises(text) as caught:
            pytree.tree_map(lambda x, y: x, tree, other)
        assert str(caught.value).startswith("[tree_map] expected ")
        with raises(r"\[tree_broadcast\] expected"):
            pytree.tree_broadcast(tree, other)
    with raises(r"\['a'\] of tree 3, got a leaf of type int.\nNone is a container without leaves"):
        pytree.tree_map(lambda *xs: xs, {"a": None}, {"a": None}, {"a": 1})


def test_errors_of_axes_name_the_function_and_the_key_path():
    treedef = pytree.tree_structure(({"a": 1}, [2, 3]))
    with raises(
        r"\[vmap in_axes\] expected a prefix of the structure of the value, got a tuple of length "
        "1 at the root, where the value has a tuple of length 2"
    ):
        pytree.flatten_axes("vmap in_axes", treedef, (0,))
    with raises(
        r"got a list of length 1 at key path \[1\], where the value has a list of length 2"
    ):
        pytree.flatten_axes("vmap in_axes", treedef, (0, [0]))
    with raises(r"got a dict with keys 'b' at key path \[0\], where the value has a dict with key"):
        pytree.flatten_axes("vmap in_axes", treedef, ({"b": 0}, 0))
    with raises(r"got a tuple of length 1 at key path \[0\]\['a'\], where the value has a leaf"):
        pytree.flatten_axes("vmap in_axes", treedef, ({"a": (0,)}, 0))


def test_errors_of_structures():
    treedef = pytree.tree_structure([1, 2])
    with raises(r"\[tree_unflatten\] expected 2 leaves for PyTreeDef\(\[\*, \*\]\), got 3"):
        pytree.tree_unflatten(treedef, [1, 2, 3])
    with raises(r"\[tree_unflatten\] expected a PyTreeDef, got \[1\] of type list", TypeError):
        pytree.tree_unflatten([1], [1])
    with raises("expected dictionary keys that can be sorted, got"):
        pytree.tree_leaves({1: 2, "a": 3})
    with raises(r"\[tree_transpose\] expected a tree of structure", TypeError):
        pytree.tree_transpose(treedef, None, [{"a": 1}, {"b": 2, "c": 3}])
    with raises("expected a container, got a leaf of type int"):
        pytree.flatten_one_level(3)
    with raises("initializer", TypeError):
        pytree.tree_reduce(lambda a, b: a, [])
    with raises("identity", TypeError):
        pytree.tree_reduce_associative(lambda a, b: a, [])


def test_errors_of_registration():
    import dataclasses

    class Bad:
        pass

    results = iter([3, (3, 3), [(1,), 2], ((1,), 2, 3)])
    pytree.register_pytree_node(Bad, lambda n: next(results), lambda aux, c: c)
    for text in ("got 3", "children in a tuple or list", "metadata", "metadata"):
        with raises(text):
            pytree.tree_leaves(Bad())
    with raises("is not registered, got <class 'list'>"):
        pytree.register_pytree_node(list, lambda x: (x, None), lambda _, c: c)
    with raises("expected a class, got 3", TypeError):
        pytree.register_pytree_node(3, lambda x: (x, None), lambda _, c: c)
    with raises("expected Bad to define tree_flatten, got none", TypeError):
        pytree.register_pytree_node_class(Bad)
    with raises("expected Bad to define tree_flatten_with_keys", TypeError):
        pytree.register_pytree_with_keys_class(Bad)
    make = functools.partial(dataclasses.make_dataclass, "D", ["a", "b"])
    with raises(r"\['b'\] missing \(drop_fields excuses them\)"):
        pytree.register_dataclass(make(), ["a"], [])
    with raises(r"got \['c'\] unexpected"):
        pytree.register_dataclass(make(), ["a", "b", "c"], [])
    with raises(r"disjoint data_fields and meta_fields, got \['a'\] in both"):
        pytree.register_dataclass(make(), ["a", "b"], ["a"])
    with raises("together", TypeError):
        pytree.register_dataclass(make(), ["a", "b"])
    with raises("expected a dataclass", TypeError):
        pytree.register_dataclass(Bad)


def test_threads_may_flatten_and_register_at_once():
    failed = []

    def work(i):
        try:
            for k in range(50):
                cls = type(f"Local{i}_{k}", (), {})
                assert pytree.tree_leaves([cls]) == [cls]
                value = cls()
                assert pytree.tree_leaves([value]) == [value]
                pytree.register_static(cls)
                assert pytree.tree_leaves([value, 1]) == [1]
                caches.clear_all()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []


class Cached:
    """A tree kept as leaves and structure: the metadata follow from the children."""

    def __init__(self, tree):
        self.leaves, self.treedef = pytree.tree_flatten(tree)


pytree.register_pytree_node(
    Cached,
    lambda x: (x.leaves, x.treedef),
    lambda treedef, leaves: Cached(treedef.unflatten(leaves)),
)


def test_transposing_a_node_whose_metadata_follow_from_its_children():
    outer = pytree.tree_structure(Cached({"a": 0, "b": 0}))
    inner = pytree.tree_structure((0, 0))
    first, second = pytree.tree_transpose(outer, inner, Cached({"a": (1, 2), "b": (3, 4)}))
    assert (first.leaves, second.leaves) == ([1, 3], [2, 4])


def test_trees_in_functions_that_run_at_exit():
    # registered before the first tree is met, so that they run after whatever came with optree
    program = """if True:
        import atexit
        from primal.base import pytree
        atexit.register(lambda: print(pytree.tree_leaves([1, {"a": (2, None)}])))
        assert pytree.tree_leaves([[0]]) == [0]
    """
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (out.stdout, out.stderr, out.returncode) == ("[1, 2]\n", "", 0)


def test_a_partial_of_a_partial_keeps_a_function_that_equals_it():
    fun = functools.partial(max, 1)
    a, b = pytree.Partial(fun, 2), pytree.Partial(fun, 2)
    assert a.args == (2,) and a(0) == 2
    assert a.func == fun and fun == a.func and a.func == b.func and a.func != max
    assert hash(a.func) == hash(b.func) == hash(fun)


def test_walks_are_told_the_keys_of_dicts_as_a_list():
    told = []
    tree = {"b": 2, "a": (1, None)}
    leaves, treedef = pytree.tree_flatten(tree)
    out = treedef.walk(lambda kids, aux: told.append(aux) or kids, lambda x: -x, leaves)
    assert out == ((-1, ()), -2) and told == [None, None, ["a", "b"]]
