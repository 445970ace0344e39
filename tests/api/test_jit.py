"""jit: when it traces, when it compiles, what it keys on, what it refuses."""

import copy
import functools
import pickle

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import jit, make_jaxpr
from primal.base.config import cpu_engine
from primal.ops.elementwise import add, mul, sin
from primal.ops.spread import reduce_sum
from primal.runtime.programs import counters


def arr(*shape, dtype=np.float32, start=0):
    size = int(np.prod(shape))
    return primal.device_put(np.arange(start, start + size).reshape(shape).astype(dtype))


def test_one_trace_per_signature(counts):
    seen = []

    @jit
    def f(x, y):
        seen.append((x.shape, x.dtype.name, x.weak_type))
        return add(mul(x, x), y)

    x = arr(3)
    for _ in range(3):
        f(x, x)
    assert len(seen) == 1
    f(arr(3, start=7), arr(3))  # other values
    assert len(seen) == 1
    f(arr(4), arr(4))  # other shape
    f(arr(3, dtype=np.int32), arr(3, dtype=np.int32))  # other dtype
    f(2.0, x)  # other weak type
    f(np.float32(2.0), x)
    assert len(seen) == 5
    assert counts()[0] == 5


def test_structure_is_part_of_the_signature():
    seen = []

    @jit
    def f(tree):
        seen.append(tree)
        return tree

    x = arr(2)
    for tree in ([x, x], (x, x), {"a": x, "b": x}, [x, x], [x, [x]], [x, None]):
        f(tree)
    assert len(seen) == 5


def test_static_values_are_part_of_the_signature():
    seen = []

    @functools.partial(jit, static_argnums=1, static_argnames="mode")
    def f(x, n, mode="a"):
        seen.append((n, mode))
        return mul(x, float(n))

    x = arr(2)
    for n, mode in ((1, "a"), (2, "a"), (1, "a"), (1, "b"), (1.0, "a"), (True, "a")):
        f(x, n, mode=mode)
    assert seen == [(1, "a"), (2, "a"), (1, "b"), (1.0, "a"), (True, "a")]


def test_static_argument_by_name_or_position():
    @functools.partial(jit, static_argnames="n")
    def f(x, n):
        assert isinstance(n, int)
        return mul(x, float(n))

    x = arr(2)
    np.testing.assert_array_equal(f(x, 3), f(x, n=3))


def test_static_self_is_compared_by_identity():
    class Counter:
        count = 0

        @functools.partial(jit, static_argnums=(0,))
        def inc(self):
            self.count += 1

    a = Counter()
    a.inc()
    a.inc()
    b = Counter()
    b.inc()
    assert (a.count, b.count) == (1, 1)


def test_equal_programs_share_an_executable(counts):
    x = arr(5)
    first = jit(lambda x: add(mul(x, 3.0), 17.25))(x)
    second = jit(lambda y: add(mul(y, 3.0), 17.25))(x)
    np.testing.assert_array_equal(first, second)
    assert counts() == (2, 1)


def test_programs_that_differ_do_not(counts):
    x = arr(5)
    outs = [jit(lambda x, c=c: add(mul(x, c), 31.5))(x) for c in (1.5, 2.5, -0.0, 0.0)]
    assert counts() == (4, 4)
    assert [np.asarray(o)[1] for o in outs] == [33.0, 34.0, 31.5, 31.5]


def test_captured_constants_are_not_part_of_the_program(counts):
    x = arr(6)

    def make(c):
        return jit(lambda x: add(mul(x, c), 11.75))

    one, two = make(arr(6)), make(arr(6, start=3))
    np.testing.assert_array_equal(one(x), np.arange(6) ** 2 + 11.75)
    np.testing.assert_array_equal(two(x), np.arange(6) * (np.arange(6) + 3) + 11.75)
    assert counts() == (2, 1)


def test_jit_of_the_same_function_traces_once():
    seen = []

    def f():
        seen.append(1)
        return np.float32(1)

    jit(f)()
    again = jit(f)
    again()
    again()
    assert seen == [1]


def test_two_functions_with_equal_code_are_two_functions():
    def make(c):
        def f(x):
            return add(x, c)

        return jit(f)

    assert float(make(1.0)(0.0)) == 1.0
    assert float(make(2.0)(0.0)) == 2.0


def test_closure_over_a_changed_global_keeps_the_traced_value():
    box = [arr(3)]
    f = jit(lambda x: add(x, box[0]))
    np.testing.assert_array_equal(f(arr(3)), [0, 2, 4])
    box[0] = arr(3, start=10)
    np.testing.assert_array_equal(f(arr(3)), [0, 2, 4])


def test_clear_cache_traces_again():
    seen = []
    f = jit(lambda x: seen.append(1) or x)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert seen == [1, 1]


def test_inner_jit_traces_once_inside_one_outer():
    seen = []

    def outer(x):
        @jit
        def inner(y):
            seen.append(1)
            return mul(y, x)

        return add(inner(x), inner(add(x, 1.0)))

    assert float(jit(outer)(3.0)) == 9.0 + 12.0
    assert seen == [1]


def test_inline_leaves_no_call():
    f = jit(lambda x: mul(x, 2.0), inline=True)
    assert [e.op.name for e in make_jaxpr(lambda x: f(x))(1.0).eqns] == ["mul"]
    g = jit(lambda x: mul(x, 2.0))
    assert [e.op.name for e in make_jaxpr(lambda x: g(x))(1.0).eqns] == ["jit"]


def test_donation_deletes_and_reuse_is_an_error():
    f = jit(lambda x, y: add(x, y), donate_argnums=1)
    x, y = arr(4), arr(4)
    z = f(x, y)
    np.testing.assert_array_equal(z, [0, 2, 4, 6])
    assert y.is_deleted() and not x.is_deleted()
    for use in (lambda: np.asarray(y), lambda: f(x, y), lambda: mul(y, y), lambda: y + 1):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


def test_donation_by_name_and_of_trees():
    f = jit(lambda x, *, state: ([add(s, x) for s in state], x), donate_argnames="state")
    state = [arr(3), arr(3)]
    f(arr(3), state=state)
    assert all(s.is_deleted() for s in state)


def test_donation_that_no_output_can_use_warns_once_and_keeps_the_array():
    f = jit(lambda x: reduce_sum(x, axes=(0,)), donate_argnums=0)
    x = arr(4)
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: float32\[4\]") as seen:
        f(x)
    assert [w.filename for w in seen] == [__file__]
    f(x)
    assert not x.is_deleted()


def test_donation_of_what_is_not_read_keeps_the_array():
    x, y = arr(4), arr(4)
    jit(lambda x, y: add(y, 1.0), donate_argnums=0)(x, y)
    assert not x.is_deleted() and not y.is_deleted()


def test_disable_jit_runs_python():
    seen = []
    f = jit(lambda x: seen.append(float(x)) or x)
    with primal.disable_jit():
        f(np.float32(2))
        f(np.float32(3))
    assert seen == [2.0, 3.0]


def test_attributes_of_a_callable_hide_no_method():
    class Model:
        lower = _traced = trace = eval_shape = "an attribute"

        def __init__(self):
            self.lower = self._traced = self.trace = self.eval_shape = "an attribute"
            self.units = 3

        def __call__(self, x):
            return mul(x, x)

    f = jit(Model())
    assert f(arr(3)).shape == f.eval_shape(arr(3)).shape == (3,)
    assert "multiply" in f.lower(arr(3)).as_text()
    assert f.units == 3 and f.__wrapped__.lower == "an attribute"
    assert f.__name__ == f.__qualname__ == "Model"
    assert jit(functools.partial(pow, 2)).__name__ == "pow"


@pytest.mark.parametrize("engine", ["xla", "cpu"])
def test_large_constants_are_arguments_not_text(engine):
    big = primal.device_put(np.arange(100_000, dtype=np.float32))
    with cpu_engine(engine):
        text = jit(lambda x: add(x, big)).lower(big).as_text()
    assert len(text) < 8000


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jit(3), TypeError, "callable"),
        (lambda: jit(lambda x: x)("a"), TypeError, r"path args\[0\]"),
        (lambda: jit(lambda x: x)({"k": [1, object()]}), TypeError, r"args\[0\]\['k'\]\[1\]"),
        (lambda: jit(lambda x: x)(x="a"), TypeError, r"kwargs\['x'\]"),
        (lambda: jit(lambda x: "a")(1), TypeError, "not a valid array type"),
        (lambda: jit(lambda x: {"r": [x, "a"]})(1), TypeError, r"\['r'\]\[1\]"),
        (lambda: jit(lambda x: x, static_argnums=0)([1]), ValueError, "Non-hashable static"),
        (lambda: jit(lambda x: x, static_argnums=2), ValueError, "argument numbers"),
        (lambda: jit(lambda x: x, static_argnames="y"), ValueError, "names of parameters"),
        (
            lambda: jit(lambda x: x, static_argnums=0, donate_argnums=0),
            ValueError,
            "cannot intersect",
        ),
        (lambda: jit(lambda x: x, static_argnums="x"), TypeError, "expected ints"),
        (lambda: jit(lambda x, y: add(x, y))(arr(2), arr(3)), TypeError, r"\[add\] expected"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_errors_carry_no_library_frames():
    with pytest.raises(TypeError) as info:
        jit(lambda x: add(x, arr(4)))(arr(3))
    files = [entry.path.name for entry in info.traceback]
    assert set(files) == {"test_jit.py"}


def test_leaked_tracer_is_named():
    kept = []

    def keeper(x):
        kept.append(mul(x, 2.0))
        return x

    jit(keeper)(1.0)
    with pytest.raises(primal.errors.UnexpectedTracerError) as info:
        add(kept[0], 1.0)
    assert "mul" in str(info.value) and "test_jit.py" in str(info.value)
    assert "keeper" in str(info.value)
    with pytest.raises(primal.errors.UnexpectedTracerError):
        jit(lambda x: add(x, kept[0]))(1.0)


def test_branching_on_a_tracer_names_argument_and_line():
    def f(params, scale):
        if scale:
            return params
        return mul(params, 2.0)

    with pytest.raises(primal.errors.TracerBoolConversionError) as info:
        jit(f)(arr(2), True)
    text = str(info.value)
    assert "argument scale of the function f" in text
    assert "test_jit.py" in text and "static_argn" in text
    assert "Attempted boolean conversion of traced array with shape bool[]" in text


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x: int(x), primal.errors.ConcretizationTypeError),
        (lambda x: float(x), primal.errors.ConcretizationTypeError),
        (lambda x: complex(x), primal.errors.ConcretizationTypeError),
        (lambda x: x.item(), primal.errors.ConcretizationTypeError),
        (lambda x: [1, 2][x], primal.errors.TracerIntegerConversionError),
        (lambda x: range(x), primal.errors.TracerIntegerConversionError),
        (lambda x: np.sin(x), primal.errors.TracerArrayConversionError),
        (lambda x: np.asarray(x), primal.errors.TracerArrayConversionError),
    ],
)
def test_conversions_of_tracers(use, error):
    with pytest.raises(error) as info:
        jit(use)(1)
    assert "test_jit.py" in str(info.value)


def test_conversions_work_where_the_value_is_known():
    def f(x):
        return mul(x, int(x)) if x > 1 else x

    assert float(primal.grad(f)(3.0)) == 3.0
    assert float(primal.jvp(f, (3.0,), (1.0,))[1]) == 3.0


@pytest.mark.parametrize("convert", [float, complex, np.asarray, np.sin, lambda x: x.tolist()])
@pytest.mark.parametrize("derive", [primal.grad, lambda f: lambda x: primal.jvp(f, (x,), (1.0,))])
def test_conversions_do_not_lose_derivatives(convert, derive):
    with pytest.raises(primal.errors.PrimalTypeError, match="lost in silence"):
        derive(lambda x: mul(x, convert(x)))(3.0)
    constant = primal.lax.stop_gradient
    derive(lambda x: mul(x, abs(np.asarray(convert(constant(x))))))(3.0)


def test_eager_code_never_compiles(counts):
    x = arr(3, 4)
    y = add(mul(x, 2.0), sin(x))
    primal.grad(lambda x: reduce_sum(mul(x, x), axes=(0, 1)))(y)
    primal.vmap(sin)(y)
    primal.hessian(lambda x: reduce_sum(mul(x, x), axes=(0,)))(arr(3))
    assert counts() == (0, 0)


def test_placement_is_part_of_the_signature(fresh_process):
    out = fresh_process(
        """
import numpy as np, primal
a, b = primal.devices()
f = primal.jit(lambda x: x * 2)
x = primal.device_put(np.arange(3.), b)
y = f(x)
assert y.devices() == {b} and y.committed, y.devices()
assert (x + 1).devices() == {b}
z = f(np.arange(3.))
assert z.devices() == {a} and not z.committed
try:
    f_two = primal.jit(lambda x, y: x + y)(x, primal.device_put(np.arange(3.), a))
except ValueError as e:
    assert "incompatible devices" in str(e)
else:
    raise AssertionError
calls = [
    lambda: primal.numpy.ones(2), lambda: primal.numpy.arange(3), lambda: w + 1,
    lambda: primal.lax.sin(w), lambda: primal.lax.full((2,), 1.0), lambda: f(w),
]
w = primal.numpy.zeros(4)
for call in calls:  # what ran on one device is not where it goes on another
    assert call().devices() == {a}
for device in (b, a, b, "cpu"):
    with primal.default_device(device):
        for i, call in enumerate(calls):
            assert call().devices() == {a if device == "cpu" else device}, (device, i)
for call in calls:
    assert call().devices() == {a}
print(np.asarray(y))
""",
        env={"PRIMAL_NUM_CPU_DEVICES": "2"},
    )
    assert out.stdout.strip() == "[0. 2. 4.]"


def test_structs_say_what_they_were_told():
    wide = primal.ShapeDtypeStruct((2,), np.float64)
    assert wide.dtype == np.float64 and wide != primal.ShapeDtypeStruct((2,), np.float32)
    assert primal.eval_shape(lambda x: x, wide).dtype == np.float32
    assert primal.jit(lambda x: x + 1).lower(wide).compile()(np.ones(2)).dtype == np.float32


def test_structs_like_values():
    struct = primal.ShapeDtypeStruct
    x = primal.numpy.arange(6.0).reshape(2, 3)
    for value, want in (
        (x, struct((2, 3), np.float32)),
        (2.0, struct((), np.float32, weak_type=True)),
        (np.ones(2, np.int8), struct((2,), np.int8)),
        (struct((4,), np.int32), struct((4,), np.int32)),
    ):
        assert struct.like(value) == want and struct.like(value).format.sharding is None
    put = struct.like(primal.device_put(x, primal.devices()[0]))
    assert put.sharding == x.sharding == put.format.sharding and put.format.layout is None
    assert str(x.sharding) in repr(put) and put != struct.like(x)
    with pytest.raises(TypeError):
        struct.like("a")


def test_eval_shape_of_a_jitted_function_traces_once_and_runs_nothing():
    calls = []

    @functools.partial(jit, static_argnames="n")
    def f(tree, n):
        calls.append(n)
        return {"y": tree["x"] * n, "n": jnp.arange(n)}

    x = {"x": primal.ShapeDtypeStruct((2, 3), np.float32)}
    compiled = counters.compilations
    for n in (2, 2, 4, 4):
        out = primal.eval_shape(f, x, n=n)
        assert out["y"].shape == (2, 3) and out["n"].shape == (n,)
    assert calls == [2, 4] and counters.compilations == compiled
    f({"x": np.ones((2, 3), np.float32)}, n=4)
    assert calls == [2, 4]


def test_eval_shape_hands_on_structs_that_a_function_returns():
    struct = primal.ShapeDtypeStruct((2, 3), primal.numpy.int32)
    assert primal.eval_shape(lambda: struct) == struct
    out = primal.eval_shape(lambda x: {"a": x + 1, "b": [struct, x]}, primal.numpy.ones(4))
    assert out["b"][0] == struct and out["a"].shape == out["b"][1].shape == (4,)
    with pytest.raises(TypeError, match="not a valid array type"):
        primal.jit(lambda: struct)()


def test_shardings_that_say_nothing():
    f = primal.jit(lambda x, y: (x, y), in_shardings=(None, {"a": None}), out_shardings=(None,))
    assert f(1.0, {"a": 2.0}) == (1.0, {"a": 2.0})


@jit
def by_name(x):
    return x * 2


class Layers:
    @functools.partial(jit, static_argnums=0)
    def call(self, x):
        return x + 1


def test_jitted_functions_are_copied_and_pickled():
    assert pickle.loads(pickle.dumps(by_name)) is by_name is copy.copy(by_name)
    assert pickle.loads(pickle.dumps(Layers.call)) is Layers.call
    local = jit(jnp.sin, donate_argnums=0)
    for again in (pickle.loads(pickle.dumps(local)), copy.deepcopy([local])[0], copy.copy(local)):
        x = jnp.zeros(3)
        np.testing.assert_array_equal(again(x), [0, 0, 0])
        assert x.is_deleted()
    nameless = functools.partial(jnp.add, 1)
    nameless.__qualname__ = nameless.__module__ = None
    assert copy.copy(jit(nameless))(2) == 3
    static = copy.deepcopy(jit(lambda x, n: x * n, static_argnames="n"))
    assert static(2.0, n=3) == 6.0 and static._cache_size() == 1
    ref = primal.new_ref(jnp.zeros(2))
    for other in (copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))):
        other[0] = 1.0
        assert float(other[0]) == 1.0 and float(ref[0]) == 0.0
