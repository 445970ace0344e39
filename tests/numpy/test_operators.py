"""Operators, methods and properties of arrays and tracers."""

import operator
import warnings
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal.api import device_put, devices, jit, make_jaxpr
from primal.base import config, dtypes
from primal.ir.trace import Array, literal
from primal.runtime.sharding import SingleDeviceSharding

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
OTHERS: list[Any] = [2, 2.5, np.float32(2), np.array([1.0, 2.0, 4.0], np.float32), np.int8(3)]


@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
@pytest.mark.parametrize("other", OTHERS, ids=lambda o: type(o).__name__)
def test_both_sides_as_numpy(name: str, other: Any) -> None:
    apply = getattr(operator, name)
    x = np.array([1.5, 2.0, 4.0], np.float32)
    for _ in range(2):  # what an operator remembers changes nothing
        for got, want in [
            (apply(jnp.asarray(x), other), apply(x, other)),
            (apply(other, jnp.asarray(x)), apply(other, x)),
        ]:
            assert isinstance(got, Array)
            np.testing.assert_allclose(got, want, rtol=1e-6)
            assert got.dtype in (np.float32, np.bool_)


@pytest.mark.parametrize("name", BITS)
def test_bits_as_numpy(name: str) -> None:
    apply = getattr(operator, name)
    x = np.array([1, 2, 12], np.int32)
    for other in (1, np.int32(2), np.array([3, 1, 0], np.int32)):
        np.testing.assert_array_equal(apply(jnp.asarray(x), other), apply(x, other))
        np.testing.assert_array_equal(apply(other, jnp.asarray(x)), apply(other, x))


def test_unary_operators() -> None:
    x = jnp.array([1, -2])
    np.testing.assert_array_equal(-x, [-1, 2])
    assert +x is x
    np.testing.assert_array_equal(abs(x), [1, 2])
    np.testing.assert_array_equal(~x, [-2, 1])
    np.testing.assert_array_equal(~jnp.array([True]), [False])
    assert round(jnp.float32(2.6)) == 3 and round(jnp.float32(2.6)).dtype == np.int32
    assert float(round(jnp.float32(2.66), 1)) == pytest.approx(2.7)
    quotient, rest = divmod(jnp.array([7, -7]), 2)
    np.testing.assert_array_equal(quotient, [3, -4])
    np.testing.assert_array_equal(rest, [1, 1])
    np.testing.assert_array_equal(divmod(7, jnp.array([2, 3]))[1], [1, 1])


def test_python_scalars_take_the_dtype_of_the_array() -> None:
    for dtype in ("bfloat16", "float16", "float32", "complex64"):
        x = jnp.ones(2, dtype)
        for scalar in (1, 1.5):
            for out in (x + scalar, scalar * x, x / scalar, x - scalar):
                assert out.dtype == x.dtype and not out.weak_type
    for dtype in ("int8", "uint8", "int32"):
        out = jnp.ones(2, dtype) + 1
        assert out.dtype == dtype and not out.weak_type
    out = jnp.ones(2, "int8") + 1.5
    assert out.dtype == np.float32 and out.weak_type


def test_scalars_that_compare_equal_are_kept_apart() -> None:
    x = jnp.array([1.0, -1.0])
    for _ in range(2):
        np.testing.assert_array_equal(1 / (x * 0.0), [np.inf, -np.inf])
        np.testing.assert_array_equal(1 / (x * -0.0), [-np.inf, np.inf])
        assert np.isnan(np.asarray(x + np.nan)).all()
        assert (x + 1).dtype == np.float32 and (x + True).dtype == np.float32
        assert (jnp.arange(2) + 1).dtype == np.int32 and (jnp.arange(2) + 1.0).dtype == np.float32


def test_integers_out_of_range() -> None:
    assert int(jnp.uint8(1) + 300) == 45
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        jnp.arange(3) + 2**40


class Foreign:
    """Knows arrays on the right."""

    __array_priority__ = 1000
    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "mine"

    __rmatmul__ = __rpow__ = __rmod__ = __rand__ = __radd__


class Wrapped:
    """Offers an array."""

    def __jax_array__(self) -> Array:
        return jnp.array([1.0, 2.0])


def test_foreign_operands_get_their_turn() -> None:
    x = jnp.ones(2)
    assert x + Foreign() == "mine" and x @ Foreign() == "mine" and x ** Foreign() == "mine"
    assert x % Foreign() == "mine" and jnp.arange(2) & Foreign() == "mine"
    np.testing.assert_array_equal(x + Wrapped(), [2, 3])
    np.testing.assert_array_equal(Wrapped() * x, [1, 2])
    np.testing.assert_array_equal(jnp.sum(Wrapped()), 3)


@pytest.mark.parametrize("other", [[1.0, 2.0], (1.0, 2.0), "a", None, {}], ids=repr)
@pytest.mark.parametrize("name", ARITHMETIC + ["matmul", "lt", "ge"])
def test_what_is_no_array_is_refused(name: str, other: Any) -> None:
    apply = getattr(operator, name)
    x = jnp.ones(2)
    with pytest.raises(TypeError):
        apply(x, other)
    if not (name == "mod" and other == "a"):
        with pytest.raises(TypeError):
            apply(other, x)


def test_equality_with_lists_is_an_error_and_with_others_identity() -> None:
    x = jnp.ones(2)
    for wrong in ([1.0, 1.0], (1.0, 1.0)):
        with pytest.raises(TypeError, match="unsupported operand type"):
            _ = x == wrong
        with pytest.raises(TypeError, match="unsupported operand type"):
            _ = x != wrong
    assert (x == None) is False and (x != "a") is True  # noqa: E711


def test_literals_inside_rules_are_operands() -> None:
    two = literal(2.0, dtypes.float32)
    np.testing.assert_array_equal(two * jnp.ones(2), [2, 2])
    np.testing.assert_array_equal(jnp.ones(2) - two, [-1, -1])


def test_matmul_operator() -> None:
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    np.testing.assert_array_equal(jnp.asarray(a) @ b, a @ b)
    np.testing.assert_array_equal(a @ jnp.asarray(b), a @ b)
    with pytest.raises(ValueError, match="at least 1"):
        jnp.asarray(b) @ 2


def test_operators_record_single_equations() -> None:
    x, i = jnp.ones(3), jnp.arange(3)
    printed = str(make_jaxpr(lambda a, b: 2 * a**2 + b)(x, x))
    assert printed == (
        "{ lambda ; a:f32[3] b:f32[3]. let\n    c:f32[3] = integer_pow[y=2] a\n"
        "    d:f32[3] = mul 2.0 c\n    e:f32[3] = add d b\n  in (e,) }"
    )
    for f, args, ops in [
        (lambda a: a + 1, (x,), ["add"]),
        (lambda a: 1 - a, (x,), ["sub"]),
        (lambda a: a / 2, (x,), ["div"]),
        (lambda a: a > 0, (x,), ["gt"]),
        (lambda a: -a, (x,), ["neg"]),
        (lambda a: a & 3, (i,), ["and"]),
        (lambda a: a * 2.0, (i,), ["convert_element_type", "mul"]),
        (lambda a, b: a + b, (1, i), ["convert_element_type", "add"]),
        (lambda a, b: a + b, (x, i), ["convert_element_type", "add"]),
        (lambda a, b: a + b, (jnp.ones((2, 3)), x), ["broadcast_in_dim", "add"]),
        (lambda a, b: a + b, (jnp.float32(1), x), ["add"]),
        (lambda a, b: a @ b, (x, x), ["dot_general"]),
        (lambda a: a**0.5, (x,), ["pow"]),
        (lambda a: +a, (x,), []),
    ]:
        eqns = make_jaxpr(f)(*args).jaxpr.eqns
        assert [e.op.name for e in eqns] == ops


def test_assignment_is_refused_with_the_remedy() -> None:
    def assign(x: Array) -> Array:
        x[0] = 1.0  # type: ignore[index]
        return x

    for run in (assign, jit(assign)):
        with pytest.raises(TypeError) as caught:
            run(jnp.ones(2))
        text = str(caught.value)
        assert "object does not support item assignment" in text
        assert "immutable" in text and ".at[idx].set(y)" in text
    with pytest.raises(TypeError, match="item deletion"):
        del jnp.ones(2)[0]  # type: ignore[attr-defined]


METHODS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("all", (), {}), ("any", (), {"axis": 0}), ("argmax", (), {}), ("argmin", (1,), {}),
    ("argsort", (), {}), ("clip", (1, 3), {}), ("conj", (), {}), ("conjugate", (), {}),
    ("cumprod", (0,), {}), ("cumsum", (), {"axis": 1}), ("diagonal", (1,), {}), ("flatten", (), {}),
    ("flatten", ("F",), {}), ("max", (), {"axis": 0}), ("mean", (1,), {}), ("min", (), {}),
    ("prod", (), {}), ("ravel", (), {}), ("repeat", (2, 0), {}), ("reshape", (4, 3), {}),
    ("reshape", ((2, -1),), {}), ("round", (1,), {}), ("squeeze", (), {}),
    ("std", (), {"ddof": 1}), ("sum", (), {"keepdims": True}), ("swapaxes", (0, 1), {}),
    ("take", (np.array([0, 2]),), {"axis": 1}), ("trace", (), {}), ("transpose", (), {}),
    ("transpose", (1, 0), {}), ("transpose", ((1, 0),), {}), ("var", (0,), {}), ("copy", (), {}),
    ("nonzero", (), {}), ("astype", (np.int32,), {}),
    ("compress", ([True, False, True],), {"axis": 0}),
    ("view", (np.int32,), {}), ("tolist", (), {}), ("dot", (np.ones(4, np.float32),), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), METHODS, ids=lambda v: str(v)[:20])
def test_methods_as_numpy(name: str, args: Any, kwargs: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 3
    ours = tuple(jnp.asarray(a) if isinstance(a, list | np.ndarray) else a for a in args)
    got, want = getattr(jnp.asarray(x), name)(*ours, **kwargs), getattr(x, name)(*args, **kwargs)
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)


def test_properties_and_protocol() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.T.shape == (3, 2) and jnp.ones((4, 2, 3)).mT.shape == (4, 3, 2)
    assert x.itemsize == 4 and x.nbytes == 24 and x.real is x
    np.testing.assert_array_equal(x.imag, np.zeros((2, 3)))
    assert x.__array_namespace__() is jnp
    with pytest.raises(ValueError, match="2024.12"):
        x.__array_namespace__(api_version="1999")
    with pytest.raises(NotImplementedError, match="flatten"):
        x.flat  # noqa: B018
    np.testing.assert_array_equal(jnp.array([2, 1]).sort(), [1, 2])
    assert int(jnp.array([2, 5]).ptp()) == 3
    with pytest.raises(ValueError, match="two-dimensional"):
        jnp.ones(3).mT  # noqa: B018


def test_views() -> None:
    x = np.arange(8, dtype=np.int8)
    ours = jnp.asarray(x)
    for dtype in (np.uint8, np.int16, np.int32, np.float32, np.float16):
        np.testing.assert_array_equal(ours.view(dtype), x.view(dtype))
    y = np.arange(4, dtype=np.int32).reshape(2, 2)
    np.testing.assert_array_equal(jnp.asarray(y).view(np.int16), y.view(np.int16))
    np.testing.assert_array_equal(jnp.array([True, False]).view(np.uint8), [1, 0])
    np.testing.assert_array_equal(jnp.array([1, 0], np.uint8).view(bool), [True, False])
    assert ours.view() is ours
    for wrong in (lambda: jnp.int8(1).view(np.int16), lambda: ours[:3].view(np.int16)):
        with pytest.raises(ValueError):
            wrong()


def test_methods_work_on_tracers() -> None:
    def f(x: Array) -> Array:
        y = x.reshape(2, 3).T.astype(float).sum(axis=0) + x.mean()
        return y.at[0].set(x[0]).clip(max=3.0)

    x = jnp.arange(6)
    np.testing.assert_allclose(jit(f)(x), f(x))


def test_casting_complex_to_real_warns() -> None:
    with pytest.warns(DeprecationWarning, match="discard the imaginary part"):
        jnp.array([1j]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.array([1j]).astype(bool)[0]


def test_membership() -> None:
    x = jnp.array([1.0, 2.0])
    assert 2 in x and 3 not in x
    with pytest.raises(TypeError):
        _ = [1.0] in x


PLACED: list[tuple[str, tuple[Any, ...]]] = [
    ("zeros", (2,)), ("ones", (2,)), ("full", (2, 1.0)), ("arange", (3,)), ("array", (1.0,)),
    ("asarray", (1.0,)), ("zeros_like", (1.0,)), ("reshape", (np.ones(2), 2)),
    ("ravel", (np.ones(2),)), ("broadcast_to", (1.0, (2,))), ("dot", (np.ones(2), np.ones(2))),
    ("matmul", (np.ones(2), np.ones(2))), ("einsum", ("i->", np.ones(2))),
    ("tensordot", (np.ones(2), np.ones(2), 1)), ("repeat", (np.ones(2), 2)),
    ("bincount", (np.arange(2),)), ("percentile", (np.ones(2), 50)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), PLACED, ids=[n for n, _ in PLACED])
def test_placement_of_results(name: str, args: Any) -> None:
    device = devices()[0]
    out = getattr(jnp, name)(*args, out_sharding=SingleDeviceSharding(device))
    assert out.device is device and out.committed
    with pytest.raises(TypeError, match="device_put"):
        getattr(jnp, name)(*args, out_sharding="here")


def test_devices_of_results() -> None:
    device = devices()[0]
    for out in (
        jnp.zeros(2, device=device), jnp.linspace(0, 1, 3, device=device),
        jnp.eye(2, device=device), jnp.astype(jnp.ones(2), int, device=device),
        jnp.fft.fftfreq(4, device=device), jnp.ones(2).to_device(device),
    ):  # fmt: skip
        assert out.committed and out.device is device


@pytest.mark.parametrize("old", ["bool", "uint8", "int16", "float32", "complex64"])
@pytest.mark.parametrize("new", ["bool", "uint8", "int16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(8,), (2, 8)])
def test_view_is_numpys(old, new, shape) -> None:
    # Small bytes: patterns of floats that no flush of subnormal numbers touches.
    host = np.random.default_rng(0).integers(1, 99, (*shape, 8)).astype(np.uint8)
    host = host[..., 0] > 50 if old == "bool" else host.view(old).reshape(*shape, -1)[..., 0].copy()
    want = host.view(new)
    if new == "bool":
        want = want.view("uint8") != 0
    np.testing.assert_array_equal(jnp.asarray(host).view(new), want)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "complex64"])
def test_byteswap_is_numpys(dtype) -> None:
    host = np.arange(1, 7).reshape(2, 3).astype(dtype)
    swapped = jnp.asarray(host).byteswap()
    np.testing.assert_array_equal(swapped, host.byteswap())
    np.testing.assert_array_equal(swapped.byteswap(), host)


def test_in_asks_a_vector_for_a_number() -> None:
    assert 2 in jnp.arange(3) and 5 not in jnp.arange(3) and 1 not in jnp.zeros(0)
    with pytest.raises(ValueError, match="search array must be one-dimensional"):
        1 in jnp.zeros((2, 2))  # noqa: B015
    with pytest.raises(ValueError, match="query value must be a scalar"):
        jnp.arange(2) in jnp.arange(3)  # noqa: B015
    with pytest.raises(TypeError):
        "a" in jnp.arange(3)  # noqa: B015


class _Proxy:
    """Answers for every attribute without underscores, as proxies and cursors of libraries do."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Proxy()

    def _turn(self, other):
        return "turn"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _turn
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rdivmod__ = _turn
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _turn  # type: ignore[assignment]


@pytest.mark.parametrize(
    "name",
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt le gt "
    "ge".split(),
)
def test_operands_that_are_no_arrays_get_their_turn(name) -> None:
    function = getattr(operator, name)
    assert function(jnp.arange(3), _Proxy()) == "turn"
    seen = []
    jit(lambda x: [x, seen.append(function(x, _Proxy()))][0])(jnp.arange(3))
    assert seen == ["turn"]


@pytest.mark.parametrize("other", [[1], (1,), {}, {1: 2}, {1}])
def test_containers_are_neither_compared_by_identity_nor_repeated(other) -> None:
    for ask in (operator.eq, operator.ne, operator.mul):
        with pytest.raises(TypeError, match="unsupported operand type"):
            ask(jnp.arange(3), other)
    with pytest.raises(TypeError, match="unsupported operand type"):
        operator.mul(other, jnp.asarray(2))


def test_a_sharding_names_the_memory_of_its_device() -> None:
    device = devices()[0]
    assert SingleDeviceSharding(device).memory_kind == "device"
    assert repr(SingleDeviceSharding(device)).endswith("memory_kind=device)")
    assert SingleDeviceSharding(device, memory_kind="pinned_host").memory_kind == "pinned_host"
    here = SingleDeviceSharding(device)
    pinned = here.with_memory_kind("pinned_host")
    assert here != pinned and not here.is_equivalent_to(pinned, 2)
    assert here.is_equivalent_to(jnp.ones(2).sharding, 1) and here.shard_shape((2, 3)) == (2, 3)
    assert here.addressable_devices == here.device_set
    assert here.addressable_devices_indices_map((2,)) == {device: (slice(None),)}
    with pytest.raises(ValueError, match="find memory addressable by device cpu"):
        SingleDeviceSharding(device, memory_kind="attic")


def test_what_was_deleted_says_so() -> None:
    x = jnp.arange(3.0)
    x.delete()
    uses = [lambda: x + 1, lambda: jit(jnp.sin)(x), lambda: np.asarray(x), lambda: x[0]]
    # Also where a wrapper has words for errors that have none.
    words = r"^\[array\] expected .*: Array has been deleted with shape=float32\[3\]"
    for use in [*uses, lambda: device_put(x), lambda: jnp.sum(x), lambda: jnp.take(x, 0)]:
        with pytest.raises(RuntimeError, match=words):
            use()
    with pytest.raises(RuntimeError, match="deleted or donated"):
        _ = -x


def test_interpreters_of_programs_find_constants_and_calls() -> None:
    closed = make_jaxpr(lambda x: x + np.ones(3))(1.0)
    assert closed.literals is closed.consts
    assert not any(e.primitive.call_primitive for e in make_jaxpr(jit(jnp.sin))(1.0).eqns)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "lt", "ge", "eq", "ne"])
def test_operators_of_many_narrow_floats_are_those_of_few(name: str, dtype: str) -> None:
    """Whichever way they are computed: all pairs of ends, zeros, subnormals and others."""
    f = getattr(operator, name)
    info = jnp.finfo(dtype)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, float(info.max), float(info.tiny), 1, -1.5, 1 / 3]
    some = np.array([*ends, *np.random.default_rng(0).standard_normal(14), float(info.tiny) / 4])
    x, y = [jnp.asarray(v.ravel()).astype(dtype) for v in np.meshgrid(some, some)]
    assert x.size > 512
    for a, b in ((x, y), (x, 2), (1.5, y), (x, y[:1])):
        got = f(a, b)
        want = [
            f(*[v[i : i + 5] if np.size(v) > 1 else v for v in (a, b)])
            for i in range(0, x.size, 5)
        ]
        assert {v.dtype for v in want} == {got.dtype} and not got.weak_type
        want, got = np.concatenate(want), np.asarray(got)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
        known = want == want
        assert np.array_equal(np.signbit(got[known]), np.signbit(want[known]))
    squares = np.concatenate([x[i : i + 5] ** 2 for i in range(0, x.size, 5)])
    np.testing.assert_array_equal(np.asarray(x**2).astype("f"), squares.astype("f"))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", "complex64"])
def test_numpys_scalars_are_operands_as_of_the_functions(dtype: str, wide: bool) -> None:
    pairs = [
        (operator.add, jnp.add), (operator.mul, jnp.multiply), (operator.truediv, jnp.true_divide),
        (operator.eq, jnp.equal), (operator.sub, jnp.subtract),
    ]  # fmt: skip
    given = [np.float64(0.1), np.float32(-0.0), np.float32("nan"), np.int64(2**31 + 5), np.int32(7),
             np.uint8(200), np.bool_(True), np.float16(0.1), np.complex64(2 - 1j)]  # fmt: skip
    with config.enable_x64(wide):
        for x in (jnp.arange(3).astype(dtype), jnp.asarray(2.5)):
            for apply, function in pairs:
                for other in given:
                    for a, b in ((x, other), (other, x)):
                        if dtype == "bool" and apply is operator.sub:
                            continue
                        got, want = apply(a, b), function(a, b)
                        assert got.aval is want.aval
                        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
