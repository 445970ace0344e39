"""Wrapped functions: what they give is what the plain functions give."""

import pytest

import primal as jax
import primal.numpy as jnp
from primal.extend import linear_util as lu


@lu.transformation
def doubled(by, *args, **kwargs):
    found = yield [a * by for a in args], kwargs
    yield found - 1


@lu.transformation_with_aux
def counted(*args):
    found = yield args, {}
    yield found, len(args)


def test_the_last_transformation_is_the_outermost():
    fun = lu.wrap_init(lambda x, y, z: (x, y, z)[2] + x * y, {"z": 7})
    outer = doubled(doubled(fun, 3), 5)
    assert fun.call_wrapped(2, 4) == 15
    assert outer.call_wrapped(2, 4) == 7 + 30 * 60 - 2
    assert outer == doubled(doubled(fun, 3), 5) != doubled(fun, 15)
    assert hash(outer) == hash(doubled(doubled(fun, 3), 5))


def test_what_is_left_beside_the_results():
    fun, count = counted(lu.wrap_init(max))
    with pytest.raises(lu.StoreException):
        count()
    assert (fun.call_wrapped(1, 5), count()) == (5, 2)
    with pytest.raises(lu.StoreException, match="second"):
        fun.call_wrapped(1, 5)
    again, count = counted(lu.wrap_init(max), use_eq_store=True)
    assert [again.call_wrapped(1, 5), again.call_wrapped(2, 1)] == [5, 2]
    with pytest.raises(lu.StoreException, match="expected 2 again, got 3"):
        again.call_wrapped(1, 2, 3)
    _, idle = counted(lu.wrap_init(max))
    assert lu.merge_linear_aux(count, idle) == (True, 2)
    assert lu.merge_linear_aux(idle, count) == (False, 2)
    for both in ((idle, idle), (count, count)):
        with pytest.raises(lu.StoreException, match="one function that ran"):
            lu.merge_linear_aux(*both)


def test_remembered_calls_leave_what_the_first_left():
    calls = []

    @lu.cache
    def run(fun, *args):
        calls.append(args)
        return fun.call_wrapped(*args)

    def f(*args):
        return sum(args)

    for _ in range(3):
        fun, count = counted(lu.wrap_init(f))
        assert (run(fun, 1, 2), count()) == (3, 2)
    assert len(calls) == 1
    run(counted(lu.wrap_init(f))[0], 1, 3)
    with jax.enable_x64(True):
        run(counted(lu.wrap_init(f))[0], 1, 3)
    assert len(calls) == 3
    run.cache_clear()
    run(counted(lu.wrap_init(f))[0], 1, 3)
    assert len(calls) == 4
    with pytest.raises(NotImplementedError, match="explain"):
        lu.cache(run, explain=print)


def test_functions_of_leaves():
    def f(a, b):
        return {"sum": a["x"] + b, "parts": (a["x"], b)}

    leaves, tree = jax.tree.flatten((({"x": jnp.ones(2)},), {"b": jnp.arange(2.0)}))
    flat, out_tree = jax.api_util.flatten_fun(lu.wrap_init(f), tree)
    found = jax.jit(flat.call_wrapped)(*leaves)
    want = f({"x": jnp.ones(2)}, jnp.arange(2.0))
    assert out_tree() == jax.tree.structure(want)
    assert str(found) == str(jax.tree.leaves(want))
    leaves, tree = jax.tree.flatten(({"x": 1}, 2))
    flat, out_tree = jax.api_util.flatten_fun_nokwargs(lu.wrap_init(f), tree)
    found = flat.call_wrapped(*leaves)
    assert jax.tree.unflatten(out_tree(), found) == f({"x": 1}, 2)


def test_some_arguments_stay():
    f = lu.wrap_init(lambda *args: args)
    for numbers, moving in ((1, (20,)), ((0, -1), (10, 30)), ((), ()), ((0, 1, 2), (10, 20, 30))):
        part, given = jax.api_util.argnums_partial(f, numbers, (10, 20, 30))
        assert given == moving
        assert part.call_wrapped(*given) == (10, 20, 30)
        assert part == jax.api_util.argnums_partial(f, numbers, (10, 20, 30))[0]
    with pytest.raises(ValueError, match="of 3 arguments"):
        jax.api_util.argnums_partial(f, 3, (1, 2, 3))
    with pytest.raises(ValueError, match="hashable"):
        jax.api_util.argnums_partial(f, 0, (1, [2]))
    part, _ = jax.api_util.argnums_partial(f, 0, (1, [2]), require_static_args_hashable=False)
    assert part.call_wrapped(1) == (1, [2])


def test_words_on_a_function():
    info = jax.api_util.debug_info("test", test_words_on_a_function, (), {})
    assert info.func_src_info.startswith("test_words_on_a_function at ")
    assert jax.api_util.debug_info("test", lambda a, *b: 0, (1, 2), {}).arg_names == ("a", "b")
    assert jax.api_util.debug_info("test", lambda a: 0, (1, 2), {}).arg_names is None
