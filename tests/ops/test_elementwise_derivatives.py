"""Elementwise ops: derivatives against finite differences, edges as documented, batching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from primal.api import grad, jit, jvp, vmap
from primal.base.config import enable_x64
from primal.base.limits import finfo
from primal.ops import choose
from primal.ops import elementwise as ops
from primal.ops.elementwise import RoundingMethod
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives

RNG = np.random.default_rng(1)
INSIDE = RNG.uniform(-0.8, 0.8, (2, 3))
POSITIVE = RNG.uniform(0.3, 3, (2, 3))
ANYWHERE = RNG.standard_normal((2, 3)) + 0.05
LARGE = RNG.uniform(1.2, 3, (2, 3))

UNARY: dict[str, Any] = {
    "neg": ANYWHERE, "square": ANYWHERE, "abs": ANYWHERE, "exp": ANYWHERE, "exp2": ANYWHERE,
    "log": POSITIVE, "expm1": ANYWHERE, "log1p": POSITIVE, "logistic": ANYWHERE, "sqrt": POSITIVE,
    "rsqrt": POSITIVE, "cbrt": POSITIVE, "sin": ANYWHERE, "cos": ANYWHERE, "tan": INSIDE,
    "asin": INSIDE, "acos": INSIDE, "atan": ANYWHERE, "sinh": ANYWHERE, "cosh": ANYWHERE,
    "tanh": ANYWHERE, "asinh": ANYWHERE, "acosh": LARGE, "atanh": INSIDE,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": (ANYWHERE, POSITIVE), "sub": (ANYWHERE, POSITIVE), "mul": (ANYWHERE, POSITIVE),
    "div": (ANYWHERE, POSITIVE), "atan2": (ANYWHERE, POSITIVE), "pow": (POSITIVE, ANYWHERE),
    "max": (ANYWHERE, POSITIVE), "min": (ANYWHERE, POSITIVE), "rem": (3 * LARGE, LARGE + 0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", list(UNARY))
def test_unary_derivatives(name: str) -> None:
    check_derivatives(getattr(ops, name), UNARY[name])


HOLOMORPHIC = [n for n in UNARY if n not in ("abs", "cbrt")]


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_complex_derivatives(name: str) -> None:
    z = UNARY[name] + 0.3j * INSIDE[::-1]
    check_derivatives(getattr(ops, name), z, order=1)


@pytest.mark.parametrize("name", ["real", "imag", "conj", "abs"])
def test_derivatives_of_parts(name: str) -> None:
    check_derivatives(getattr(ops, name), ANYWHERE + 1j * POSITIVE, order=1)


def test_derivative_of_complex() -> None:
    check_derivatives(ops.complex, ANYWHERE, POSITIVE)
    check_derivatives(ops.complex, np.float64(0.5), POSITIVE)


@pytest.mark.parametrize("name", list(BINARY))
def test_binary_derivatives(name: str) -> None:
    check_derivatives(getattr(ops, name), *BINARY[name])


@pytest.mark.parametrize("name", list(BINARY))
@pytest.mark.parametrize("shapes", [((), (2, 3)), ((2, 3), ()), ((1, 3), (2, 3)), ((2, 3), (2, 1))])
def test_derivatives_of_broadcast_operands(name: str, shapes: Any) -> None:
    x, y = [
        v.ravel()[0] if s == () else v[: s[0], : s[1]]
        for v, s in zip(BINARY[name], shapes, strict=True)
    ]
    check_derivatives(getattr(ops, name), x, y, order=1)


def test_complex_powers() -> None:
    check_derivatives(ops.pow, POSITIVE + 0.5j, ANYWHERE - 0.2j, order=1)
    check_derivatives(ops.atan2, POSITIVE + 0.5j, ANYWHERE - 0.2j, order=1)


@pytest.mark.parametrize("power", [-2, -1, 0, 1, 2, 3, 5])
def test_integer_powers(power: int) -> None:
    check_derivatives(lambda x: ops.integer_pow(x, y=power), POSITIVE)
    check_derivatives(lambda x: ops.pow(x, np.int32(power)), POSITIVE)


def test_choices() -> None:
    mask = np.array([[True, False, True], [False, False, True]])
    check_derivatives(lambda x, y: ops.select_n(mask, x, y), ANYWHERE, POSITIVE)
    check_derivatives(lambda x, y: ops.select_n(np.array(True), x, y), ANYWHERE, POSITIVE)
    check_derivatives(lambda x, y: ops.select_n(mask, x, y), ANYWHERE, np.float64(2))
    which = np.array([[0, 1, 2], [2, 1, 0]], np.int32)
    check_derivatives(lambda *xs: ops.select_n(which, *xs), ANYWHERE, POSITIVE, INSIDE)
    check_derivatives(ops.clamp, np.float64(-0.5), ANYWHERE, np.float64(0.5))
    check_derivatives(ops.clamp, INSIDE - 0.5, ANYWHERE, INSIDE + 0.5)


def test_conversions_of_tangents() -> None:
    def there(x: Any) -> Any:
        return ops.convert_element_type(x, new_dtype=np.dtype(np.complex128), weak_type=False)

    check_derivatives(lambda x: ops.real(there(x)), ANYWHERE)
    check_derivatives(lambda x: ops.copy(ops.sin(x)), ANYWHERE)
    to_int = lambda x: ops.convert_element_type(x, new_dtype=np.dtype(np.int32), weak_type=False)  # noqa: E731
    assert str(jvp(to_int, (1.5,), (1.0,))[1].dtype) == "[('float0', 'V')]"


def one(f: Callable[..., Any], *xs: float) -> list[float]:
    """The gradient at a point of float32."""
    arrays = [as_array(np.float32(x)) for x in xs]
    return [float(g) for g in grad(f, tuple(range(len(xs))))(*arrays)]


def test_edges() -> None:
    """What JAX 0.10 answers at ties, zeros and poles."""
    nan, inf = np.nan, np.inf
    cases: list[tuple[Any, tuple[float, ...], list[float]]] = [
        (ops.abs, (0.0,), [1.0]),
        (ops.abs, (-0.0,), [1.0]),
        (ops.sign, (1.0,), [0.0]),
        (ops.max, (1.0, 1.0), [0.5, 0.5]),
        (ops.min, (1.0, 1.0), [0.5, 0.5]),
        (ops.max, (1.0, 2.0), [0.0, 1.0]),
        (ops.rem, (7.5, 2.0), [1.0, -3.0]),
        (ops.rem, (-7.5, 2.0), [1.0, 3.0]),
        (ops.sqrt, (0.0,), [inf]),
        (ops.rsqrt, (0.0,), [-inf]),
        (ops.cbrt, (0.0,), [inf]),
        (ops.logistic, (200.0,), [0.0]),
        (ops.tanh, (200.0,), [0.0]),
        (ops.asin, (1.0,), [inf]),
        (ops.acosh, (1.0,), [inf]),
        (ops.atanh, (1.0,), [inf]),
        (ops.atan2, (0.0, 0.0), [nan, nan]),
        (ops.pow, (0.0, 2.0), [0.0, 0.0]),
        (ops.pow, (0.0, 1.0), [1.0, 0.0]),
        (ops.pow, (0.0, 0.0), [nan, 0.0]),
        (ops.pow, (0.0, 0.5), [inf, 0.0]),
        (ops.pow, (0.0, -1.0), [-inf, nan]),
        (ops.pow, (-2.0, 3.0), [12.0, nan]),
        (ops.pow, (2.0, 0.0), [0.0, np.log(2)]),
        (ops.clamp, (1.0, 0.0, 3.0), [1.0, 0.0, 0.0]),
        (ops.clamp, (1.0, 1.0, 3.0), [0.0, 0.0, 0.0]),
        (ops.clamp, (1.0, 2.0, 3.0), [0.0, 1.0, 0.0]),
        (ops.clamp, (1.0, 3.0, 3.0), [0.0, 0.0, 0.0]),
        (ops.clamp, (1.0, 4.0, 3.0), [0.0, 0.0, 1.0]),
        (ops.stop_gradient, (2.0,), [0.0]),
        (ops.floor, (1.5,), [0.0]),
    ]
    for f, xs, want in cases:
        np.testing.assert_allclose(one(f, *xs), want, rtol=1e-6, err_msg=f"{f} at {xs}")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_slopes_of_acosh_from_one_to_the_largest_number(dtype: Any, x64: None) -> None:
    info = np.finfo(dtype)
    half = info.dtype.type(2) ** (info.maxexp // 2 - 1)
    more = np.geomspace(1.001, float(info.max) / 8, 40).astype(dtype)
    edges = np.array([1 + info.eps, half * 0.99, half, half * 1.01, info.max / 2, info.max], dtype)
    x = np.concatenate([more, edges])
    wide = x.astype(np.longdouble)
    want = 1 / np.sqrt(wide - 1) / np.sqrt(wide + 1)
    got = np.asarray(vmap(grad(ops.acosh))(as_array(x)))
    error = np.abs(got.astype(np.longdouble) - want)
    # Numbers below the normal ones are so far apart.
    least = float(info.tiny) * float(info.eps)
    assert (error <= 3 * info.eps * want + least).all()
    outside = np.array([-np.inf, -info.max, -2, -1, 0, 0.5, np.nan], dtype)
    assert np.isnan(np.asarray(vmap(grad(ops.acosh))(as_array(outside)))).all()
    ends = np.array([1, np.inf], dtype)
    assert np.asarray(vmap(grad(ops.acosh))(as_array(ends))).tolist() == [np.inf, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_slopes_of_asinh_to_the_largest_number(dtype: Any, x64: None) -> None:
    """Where the square is infinite, too."""
    info = np.finfo(dtype)
    half = info.dtype.type(2) ** (info.maxexp // 2 - 1)
    sizes = np.geomspace(1e-3, float(info.max) / 8, 60).astype(dtype)
    x = np.concatenate([sizes, -sizes, np.array([0, half, half * 1.01, info.max, np.inf], dtype)])
    want = 1 / np.sqrt(x.astype(np.longdouble) ** 2 + 1)
    got = np.asarray(vmap(grad(ops.asinh))(as_array(x)))
    error = np.abs(got.astype(np.longdouble) - want)
    assert (error <= 3 * info.eps * want + float(info.tiny) * float(info.eps)).all()


@pytest.mark.parametrize("op", [ops.asin, ops.acos])
def test_slopes_of_inverse_sines_next_to_one(op: Any, x64: None) -> None:
    """1 - x² of a rounded square had no digit left."""
    steps = np.arange(1, 200) ** 3 * np.finfo(np.float64).eps
    x = np.concatenate([1 - steps, steps - 1])
    wide = x.astype(np.longdouble)
    want = 1 / np.sqrt((1 - wide) * (1 + wide)) * (1 if op is ops.asin else -1)
    got = np.asarray(vmap(grad(op))(as_array(x)))
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=1e-15)


def test_integer_exponents_are_constants() -> None:
    for y, want in [(-2, [-np.inf, -0.25]), (0, [0, 0]), (1, [1, 1]), (2, [0, 4])]:
        got = [one(lambda x, y=y: ops.pow(x, np.int32(y)), x)[0] for x in (0.0, 2.0)]
        assert got == want


def test_complex_absolute_value() -> None:
    slope = grad(ops.abs)
    assert complex(slope(as_array(np.complex64(0)))) == 0
    got = complex(slope(as_array(np.complex64(3 + 4j))))
    np.testing.assert_allclose(got, 0.6 - 0.8j, rtol=1e-6)


def test_gradient_of_conj_of_a_real_number() -> None:
    got = grad(lambda x: ops.real(ops.conj(x)))(as_array(np.float32(2)))
    assert got.dtype == np.float32 and float(got) == 1


def test_reduce_precision_is_linear() -> None:
    f = lambda x: ops.reduce_precision(x, exponent_bits=5, mantissa_bits=3)  # noqa: E731
    assert one(f, 1.3) == [1.0]
    rounded = lambda x: ops.round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO)  # noqa: E731
    assert one(rounded, 1.3) == [0.0]


def test_neighbours_have_no_derivative() -> None:
    with pytest.raises(NotImplementedError, match="nextafter"):
        one(ops.nextafter, 1.0, 2.0)


def test_stop_gradient_is_the_identity() -> None:
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(agree(ops.stop_gradient, x)[0], x)
    got = grad(lambda x: ops.mul(x, ops.stop_gradient(x)))(as_array(np.float32(3)))
    assert float(got) == 3


BATCHED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sin": (ops.sin, (ANYWHERE,)),
    "add": (ops.add, (ANYWHERE, POSITIVE)),
    "add of a scalar": (ops.add, (ANYWHERE, np.float64(2))),
    "pow of a row": (ops.pow, (POSITIVE, ANYWHERE[:1])),
    "select_n": (lambda x, y: ops.select_n(ops.gt(x, y), x, y), (ANYWHERE, POSITIVE)),
    "select_n by a scalar": (
        lambda s, x, y: ops.select_n(ops.gt(s, 0.0), x, y),
        (np.float64(0.3), ANYWHERE, POSITIVE),
    ),
    "clamp": (ops.clamp, (np.float64(-0.5), ANYWHERE, np.float64(0.5))),
    "clamp by arrays": (ops.clamp, (INSIDE - 0.5, ANYWHERE, INSIDE + 0.5)),
    "complex": (ops.complex, (ANYWHERE, POSITIVE)),
    "reduce_precision": (
        lambda x: ops.reduce_precision(x, exponent_bits=5, mantissa_bits=3),
        (ANYWHERE,),
    ),
}


@pytest.mark.parametrize("case", list(BATCHED))
def test_batching(case: str) -> None:
    f, xs = BATCHED[case]
    check_batching(f, *[np.asarray(x, np.float32) for x in xs])


def test_batching_of_bit_casts() -> None:
    x = RNG.integers(0, 255, (2, 3, 4)).astype(np.uint8)
    check_batching(lambda x: choose.bitcast_convert_type(x, new_dtype=np.dtype(np.float32)), x)
    y = RNG.standard_normal((2, 3)).astype(np.float32)
    check_batching(lambda x: choose.bitcast_convert_type(x, new_dtype=np.dtype(np.uint8)), y)


def test_batched_scalar_choice_of_matrices() -> None:
    """A scalar condition per example chooses whole matrices."""
    which = np.array([True, False, True])
    x, y = RNG.standard_normal((2, 3, 2, 2)).astype(np.float32)
    got = vmap(lambda c, a, b: ops.select_n(c, a, b))(
        as_array(which), as_array(x), as_array(y)
    )
    np.testing.assert_array_equal(got, np.where(which[:, None, None], y, x))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (1, 1), ()])
def test_empty_and_single(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    for f in (ops.sin, ops.neg, lambda x: ops.add(x, x), lambda x: ops.select_n(ops.gt(x, x), x, x),
              lambda x: ops.clamp(x, x, x), lambda x: ops.integer_pow(x, y=3)):  # fmt: skip
        (got,) = agree(f, x)
        assert got.shape == shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_of_quotients_and_angles_whose_squares_are_no_floats(dtype: Any) -> None:
    """y/x and atan2(y, x) at sizes from near the least to near the greatest float."""
    info = finfo(np.dtype(dtype))
    powers = np.linspace(info.minexp * 0.45, info.maxexp * 0.9, 9)
    with enable_x64(True):
        x = np.asarray(2.0**powers, info.dtype)
        y = np.asarray(3 * x.astype(np.float64), info.dtype)
        wide = [v.astype(np.longdouble) for v in (y, x)]
        size = wide[0] * wide[0] + wide[1] * wide[1]
        wants = {
            ops.div: (1 / wide[1], -wide[0] / (wide[1] * wide[1])),
            ops.atan2: (wide[1] / size, -wide[0] / size),
        }
        for op, want in wants.items():
            slope = vmap(grad(lambda y, x, op=op: op(y, x), (0, 1)))
            for run in (slope, jit(slope)):
                for got, w in zip(run(y, x), want, strict=True):
                    bound = 8 * float(info.eps) * np.abs(w) + float(info.smallest_subnormal) * 8
                    error = np.abs(np.asarray(got).astype(np.longdouble) - w)
                    assert np.all(error <= bound), (op.name, got, w)


def test_slopes_of_angles_beside_infinite_numbers() -> None:
    """An angle at an infinite distance does not move; a NaN says nothing there either."""
    y = np.array([1, 0, -2, np.inf, -np.inf, np.inf, np.nan, np.inf], np.float32)
    x = np.array([np.inf, -np.inf, np.inf, 1, 0, np.inf, np.inf, np.nan], np.float32)
    slopes = vmap(grad(lambda y, x: ops.atan2(y, x), (0, 1)))
    for run in (slopes, jit(slopes)):
        for got in run(y, x):
            np.testing.assert_array_equal(got, [0] * 6 + [np.nan] * 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_slopes_of_atan_where_the_square_is_no_float(dtype: Any) -> None:
    x = np.asarray([0.5, 100, 300, 1000, -4000], finfo(np.dtype(dtype)).dtype)
    want = 1 / (1 + x.astype(np.float64) ** 2)
    info = finfo(x.dtype)
    for run in (vmap(grad(ops.atan)), jit(vmap(grad(ops.atan)))):
        error = np.abs(np.asarray(run(x)).astype(np.float64) - want)
        assert np.all(error <= 2 * float(info.eps) * want + float(info.smallest_subnormal))
