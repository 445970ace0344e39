"""Promotion of dtypes and ranks, and the refusal of what is no array."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.nn
import primal.numpy as jnp
from primal.base import dtypes
from primal.base.config import numpy_dtype_promotion, numpy_rank_promotion
from primal.base.promotion import TypePromotionError
from primal.ir.trace import Literal
from primal.numpy.promotion import (
    check_arraylike,
    operand,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    scalar_literal,
)

NAMES = "bool uint8 uint32 int8 int16 int32 bfloat16 float16 float32 complex64".split()
SCALARS: list[Any] = [1, 1.0, 1j]


def value(name: Any) -> Any:
    return jnp.ones(2, name) if isinstance(name, str) else name


@pytest.mark.parametrize("pair", [*itertools.combinations_with_replacement(NAMES, 2)], ids=str)
def test_arrays_promote_by_the_lattice(pair: tuple[str, str]) -> None:
    a, b = (value(n) for n in pair)
    want = dtypes.result_type(*pair)
    for out in (jnp.multiply(a, b), jnp.multiply(b, a), jnp.where(True, a, b)):
        assert out.dtype == want and not out.weak_type


def test_every_pair_promotes_by_the_lattice_in_64_bits(x64: None) -> None:
    names = [*NAMES, "uint16", "uint64", "int64", "float64", "complex128", "int2", "int4", "uint2"]
    names += ["uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
    arrays = {name: jnp.ones(2, name) for name in names}
    refused = 0
    for a, b in itertools.product(names, repeat=2):
        try:
            want = dtypes.result_type(a, b)
        except TypePromotionError:
            refused += 1
            with pytest.raises(TypePromotionError):
                jnp.multiply(arrays[a], arrays[b])
        else:
            assert jnp.multiply(arrays[a], arrays[b]).dtype == want, (a, b)
    assert refused == 190  # of narrow integers or floats with others


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_python_scalars_promote_by_the_lattice(name: str, scalar: Any) -> None:
    x = value(name)
    want, weak = dtypes.result_type(x, scalar, return_weak_type_flag=True)
    for out in (jnp.multiply(x, scalar), jnp.multiply(scalar, x), x * scalar, scalar * x):
        assert (out.dtype, out.weak_type) == (want, weak)


def test_numpy_scalars_are_not_weak() -> None:
    x = jnp.ones(2, "bfloat16")
    assert (x * np.float32(2)).dtype == np.float32
    assert (jnp.ones(2, "int8") * np.int32(2)).dtype == np.int32
    assert (x * np.float64(2)).dtype == np.float32


def test_weak_arrays_give_way_and_lose_their_weakness() -> None:
    weak = jnp.asarray(2)
    assert weak.weak_type
    out = weak + jnp.int8(1)
    assert out.dtype == np.int8 and not out.weak_type
    assert (weak + 1.5).weak_type and (weak * weak).weak_type


def test_64_bits(x64: None) -> None:
    assert (jnp.ones(2) + 1).dtype == np.float64
    assert (jnp.arange(2) + 1).dtype == np.int64
    assert (jnp.ones(2, "float32") * 0.1).dtype == np.float32
    assert float(jnp.asarray(1.0) * 0.1) == 0.1


def test_operands_and_literals() -> None:
    assert type(operand("f", 1.5)) is Literal and operand("f", 1.5).aval.weak_type
    assert not operand("f", True).aval.weak_type and not operand("f", np.int8(1)).aval.weak_type
    x = jnp.ones(2)
    assert operand("f", x) is x
    assert scalar_literal(0.0, dtypes.float32).val == 0
    assert np.signbit(scalar_literal(-0.0, dtypes.float32).val)
    assert scalar_literal(300, dtypes.uint8).val == 44
    assert scalar_literal(2**31, dtypes.uint32).val == 2**31
    with pytest.raises(OverflowError):
        scalar_literal(2**40, dtypes.int32)


def test_promotion_to_kinds() -> None:
    (x,) = promote_args_inexact("f", np.arange(2))
    assert x.aval.dtype == np.float32
    (x,) = promote_args_numeric("f", np.array([True]))
    assert x.aval.dtype == np.int32
    x, y = promote_args("f", jnp.ones((2, 3)), jnp.ones(3, "int32"))
    assert y.aval.shape == (1, 3) and y.aval.dtype == np.float32
    x, y = promote_args("f", jnp.ones((2, 3)), jnp.float32(1))
    assert y.aval.shape == ()


def test_strict_promotion() -> None:
    with numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) + 1.0).dtype == np.float32
        with pytest.raises(dtypes.TypePromotionError, match="strict"):
            jnp.ones(2) + jnp.arange(2)
        with pytest.raises(dtypes.TypePromotionError, match="strict"):
            jnp.power(jnp.ones(2), jnp.arange(2))
        assert jnp.power(jnp.ones(2), 2).dtype == np.float32


def test_rank_promotion() -> None:
    a, b = jnp.ones((2, 3)), jnp.ones(3)
    with numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="numpy_rank_promotion='raise'"):
            a + b
        for compare in (jnp.isclose, jnp.allclose):
            with pytest.raises(ValueError, match="numpy_rank_promotion='raise'"):
                compare(a, b)
            assert compare(a, 1.0).all()
        assert (a + 1.0).shape == (2, 3) and (a + jnp.float32(1)).shape == (2, 3)
        assert (a + jnp.ones((1, 3))).shape == (2, 3)
        with pytest.raises(ValueError, match="vectorize on shapes"):
            jnp.vectorize(lambda x, y: x + y, signature="(n),(n)->(n)")(a, b)
        assert jnp.vectorize(lambda x, y: x @ y, signature="(n,m),(m)->(n)")(a, b).shape == (2,)
        assert jnp.vectorize(lambda x, y: x + y)(a, 1.0).shape == (2, 3)
    with numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        assert (a + b).shape == (2, 3)


def test_array_like_can_be_asked_at_run_time() -> None:
    known = [1, 1.0, jnp.ones(2), np.ones(2), np.int8(1), np.True_, [1.0], "x", None]
    assert [isinstance(x, primal.typing.ArrayLike) for x in known] == [True] * 6 + [False] * 3


def test_broadcast_shapes() -> None:
    assert jnp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert jnp.broadcast_shapes(4, (3, 1)) == (3, 4)
    assert jnp.broadcast_shapes((0, 1), (1, 5)) == (0, 5)
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        jnp.broadcast_shapes((2,), (3,))
    for broadcast_shapes in (jnp.broadcast_shapes, primal.lax.broadcast_shapes):
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
            broadcast_shapes((2, 4), (3, 4))
        with pytest.raises(TypeError, match="negative"):
            broadcast_shapes((2, -1))
    with pytest.raises(TypeError, match=r"expected shapes: Sequence\[int\], got \(3, \(3,\)\)"):
        primal.lax.broadcast_shapes(3, (3,))


STRICT = (
    "sum prod max min mean var std any all cumsum cumprod sort argsort argmax reshape ravel "
    "transpose squeeze exp sin abs sign negative dot where round median tril diag flip roll "
    "tile repeat unique nonzero isnan real moveaxis"
).split()


@pytest.mark.parametrize("wrong", [[1.0, 2.0], (1.0, 2.0), None, "ab"], ids=repr)
@pytest.mark.parametrize("name", STRICT)
def test_sequences_are_refused(name: str, wrong: Any) -> None:
    rest: dict[str, tuple[Any, ...]] = {
        "reshape": (2,), "dot": (1.0,), "where": (1.0, 2.0), "roll": (1,), "tile": (2,),
        "repeat": (2,), "moveaxis": (0, 0),
    }  # fmt: skip
    with pytest.raises(TypeError):
        getattr(jnp, name)(wrong, *rest.get(name, ()))


def test_the_error_of_a_list() -> None:
    with pytest.raises(
        TypeError,
        match=r"^\[sum\] expected an array or a scalar, got \[1.0, 2.0\]: sum requires ndarray or "
        "scalar arguments, got <class 'list'> at position 0",
    ):
        jnp.sum([1.0, 2.0])
    with pytest.raises(TypeError, match="add requires .* got <class 'tuple'> at position 1"):
        jnp.add(1.0, (1.0, 2.0))
    check_arraylike("f", 1, 1.5, True, 1j, np.ones(2), np.float32(1), jnp.ones(2))


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([None]), np.datetime64("2020-01-01")],
                         ids=repr)  # fmt: skip
def test_arrays_without_numbers_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="is not a valid JAX array type"):
        jnp.sum(wrong)
    with pytest.raises(TypeError, match="is not a valid JAX array type"):
        jnp.array(wrong)


WEAK_SLOPES: list[Callable[[Any], Any]] = [
    jnp.abs,
    lambda x: jnp.maximum(x, 0.0),
    lambda x: jnp.minimum(2.0, x),
    lambda x: jnp.where(x > 0, x, 0),
    lambda x: jnp.clip(x, 0, 2),
    lambda x: jnp.logaddexp(x, 0.0),
    lambda x: primal.lax.clamp(jnp.zeros_like(x), x, jnp.full_like(x, 2)),
    primal.nn.relu,
    primal.nn.softplus,
    primal.nn.elu,
]


@pytest.mark.parametrize("fun", WEAK_SLOPES)
def test_slopes_of_weak_numbers_are_weak(fun: Callable[[Any], Any]) -> None:
    for derivative in (primal.grad(fun), primal.jit(primal.grad(fun))):
        assert derivative(1.0).weak_type
        assert not derivative(jnp.float32(1.0)).weak_type
        assert derivative(jnp.bfloat16(1.0)).dtype == jnp.bfloat16


def test_full_like_is_as_weak_as_its_array() -> None:
    weak = jnp.asarray(1.0)
    assert jnp.full_like(weak, jnp.float32(2)).weak_type
    assert not jnp.full_like(weak, 2, dtype="float32").weak_type
    assert not jnp.full_like(weak, jnp.ones(1), shape=(1,)).weak_type
    assert not jnp.full_like(jnp.float32(1), weak).weak_type
    assert not jnp.polyval(jnp.ones(2, int), 2.0).weak_type


def test_logic_is_weak_of_weak_scalars_only() -> None:
    weak = jnp.full(3, 2.0)
    assert weak.weak_type and jnp.logical_and(2, 2.5).weak_type and jnp.logical_not(2.5).weak_type
    for out in (jnp.logical_and(weak, 2.5), jnp.logical_or(weak, weak), jnp.logical_not(weak)):
        assert out.dtype == bool and not out.weak_type


def test_weak_types_are_marked_where_types_are_printed() -> None:
    aval = primal.typeof(1.0)
    assert (str(aval), repr(aval)) == ("~float32[]", "ShapedArray(float32[], weak_type=True)")
    assert (aval.str_short(), aval.str_short(short_dtypes=True)) == ("float32[]", "f32[]")
    assert str(primal.typeof(np.ones((2, 3), np.int8))) == "int8[2,3]"
    struct = primal.ShapeDtypeStruct((2,), np.float32, weak_type=True)
    assert str(primal.typeof(struct)) == "~float32[2]"


def test_weak_arrays_in_functions_that_choose() -> None:
    weak, whole = jnp.full(3, 2.0), jnp.full(3, 2)
    assert jnp.heaviside(2.5, weak).weak_type and not jnp.heaviside(weak, 2.5).weak_type
    assert jnp.gcd(2, 4).weak_type and not jnp.gcd(whole, 2).weak_type
    assert jnp.lcm(2, 4).weak_type and not jnp.lcm(2, whole).weak_type
