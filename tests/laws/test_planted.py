"""The laws are tested: an op with one wrong rule must be caught by the law that is about it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from primal.base import dtypes
from primal.base.errors import JaxprTypeError
from primal.ir.avals import Aval
from primal.ir.check import check_closed
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import ELEMENTWISE, SHAPE, Never, Op, by_kind, library, registry
from primal.ir.trace import ZERO
from primal.ops.elementwise import add, cos, mul, neg, sin, stop_gradient
from primal.ops.shape import moveaxis
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.ops.types import INEXACT, NOT_LINEAR, nary
from primal.ops.words import each, linear
from tests.cases.case import F32, F64, Case, Wrong, X, shaped
from tests.laws import laws
from tests.laws.compare import close

NAME = "planted"


@contextmanager
def planted(**rules: Any) -> Iterator[Op]:
    """sin under another name, with some rules replaced; gone from the registry afterwards."""
    sound: dict[str, Any] = {
        "kind": ELEMENTWISE,
        "type": nary(NAME, *INEXACT),
        "impl": np.sin,
        "jvp": each(lambda t, x: mul(t, cos(x))),
        "transpose": NOT_LINEAR,
        "batch": by_kind,
        "shard": by_kind,
        "hlo": lambda b, x: b.unary("sine", x),
        "kernel": library,
    }
    try:
        yield Op(name=NAME, **{**sound, **rules})
    finally:
        registry.pop(NAME, None)


ROW = Case(
    op=NAME,
    operands=shaped((2, 3)),
    dtypes=(F32, F64),
    ulps=8,
    near=1.0,
    special=True,
    errors=(Wrong(shaped((2,)), TypeError, "dtype", dtype=np.int32),),
)
REFUSED = {"jvp": Never("[planted] expected no differentiation, got tangents.")}
ALL_LAWS = [law for name, law in vars(laws).items() if name.startswith("law_of_")]


@pytest.mark.parametrize("law", ALL_LAWS)
def test_a_sound_op_passes(law: Callable[[Case], None]) -> None:
    with planted(**(REFUSED if law is laws.law_of_no_derivative else {})):
        law(ROW)


def _type_of_doubles(x: Aval) -> Aval:
    return Aval((*x.shape, 1), x.dtype, x.weak_type)


def _wordless(x: Aval) -> Aval:
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(f"bad dtype {x.dtype}")
    return x


class _Evasive(Never):
    """A refusal that does not say its reason."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        raise self.error("no")


_asked = itertools.count()


def _fickle(x: Any) -> Any:
    """cos x the first time, its negative the second, and so on."""
    return neg(cos(x)) if next(_asked) % 2 else cos(x)


# The identity, whose transpose is twice what it should be.
_same = Op(
    name="planted_same",
    kind=ELEMENTWISE,
    type=nary("planted_same", *INEXACT),
    impl=lambda x: x,
    jvp=linear,
    transpose=lambda ct, x: (add(ct, ct),),
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x: x,
    kernel=library,
)
registry.pop("planted_same")  # it serves no program but those below


# what is wrong, the rules, the law that must notice
FAULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("type of another shape", {"type": _type_of_doubles}, laws.law_of_types),
    ("type of another dtype", {"type": lambda x: Aval(x.shape, np.dtype(bool))}, laws.law_of_types),
    ("type that takes anything", {"type": lambda x: x}, laws.law_of_errors),
    ("impl that widens", {"impl": lambda x: np.sin(x.astype(np.float64))}, laws.law_of_types),
    ("impl that writes", {"impl": lambda x: np.sin(x, out=x)}, laws.law_of_types),
    ("hlo of another function", {"hlo": lambda b, x: b.unary("cosine", x)}, laws.law_of_engines),
    (
        "hlo that is off by one part in 10⁵",
        {"hlo": lambda b, x: b.multiply(b.unary("sine", x), b.full_like(x, 1.00001))},
        laws.law_of_engines,
    ),
    (
        "hlo that loses nan",
        {"hlo": lambda b, x: b.maximum(b.full_like(x, -1), b.select(
            b.compare(x, x, "NE"), b.full_like(x, 0), b.unary("sine", x)))},
        laws.law_of_special_values,
    ),
    ("jvp of the wrong sign", {"jvp": each(lambda t, x: neg(mul(t, cos(x))))},
     laws.law_of_derivatives),
    ("jvp that forgets the tangent", {"jvp": each(lambda t, x: cos(x))}, laws.law_of_derivatives),
    ("jvp of zero", {"jvp": lambda xs, ts: (registry[NAME](*xs), ZERO)}, laws.law_of_derivatives),
    (
        "jvp with another value",
        {"jvp": lambda xs, ts: (cos(*xs), mul(ts[0], cos(*xs)))},
        laws.law_of_derivatives,
    ),
    (
        "jvp right once, wrong twice",
        {"jvp": each(lambda t, x: mul(t, _cos_that_stays(x)))},
        laws.law_of_second_order,
    ),
    (
        "jvp right twice forward, wrong backward",
        {"jvp": each(lambda t, x: mul(t, cos(_same(x))))},
        laws.law_of_second_order,
    ),
    ("jvp that is another when asked again", {"jvp": each(lambda t, x: mul(t, _fickle(x)))},
     laws.law_of_derivatives),
    ("jvp where none is due", {}, laws.law_of_no_derivative),
    (
        "jvp refused for another reason",
        {"jvp": _Evasive("[planted] expected no differentiation, got tangents.")},
        laws.law_of_no_derivative,
    ),
    (
        "type that refuses without words",
        {"type": lambda x: _wordless(x)},
        laws.law_of_all_dtypes,
    ),
    ("type that takes what impl does not keep", {"type": lambda x: x}, laws.law_of_all_dtypes),
    (
        "kernel of another function",
        {"kernel": lambda k, x: k.unary("cos", x)},
        laws.law_of_all_dtypes,
    ),
    (
        "batch rule that names the wrong dimension",
        {
            "batch": lambda axis, args, dims: (
                registry[NAME](moveaxis(args[0], dims[0], 0)),
                dims[0],
            )
        },
        laws.law_of_batching,
    ),
    (
        "batch rule that says not batched",
        {"batch": lambda axis, args, dims: (registry[NAME](
            reduce_sum(args[0], axes=(dims[0],))), None)},
        laws.law_of_batching,
    ),
]  # fmt: skip


def _cos_that_stays(x: Any) -> Any:
    """cos x with no derivative of its own."""
    return cos(stop_gradient(x))


def test_every_law_has_a_fault_that_it_catches() -> None:
    assert {law for _, _, law in FAULTS} == set(ALL_LAWS)


@pytest.mark.parametrize(("what", "rules", "law"), FAULTS, ids=[f[0] for f in FAULTS])
def test_a_wrong_rule_is_caught(what: str, rules: dict[str, Any], law: Any) -> None:
    with planted(**rules), pytest.raises(Exception) as caught:
        law(ROW)
    # An assertion of the law, or the checker's own error; never an accident of this file.
    assert isinstance(caught.value, AssertionError | JaxprTypeError), caught.value


# A linear op with two dimensions, for what sin cannot have: transposes and wrong axes.

LINEAR = Case(op=NAME, operands=(X((2, 3)),), dtypes=(F32,), params={"axes": (1,)})


def _total(**rules: Any) -> Any:
    def batch(axis: Any, args: Any, dims: Any, *, axes: Any) -> Any:
        (x,), (d,) = args, dims
        shifted = tuple(a + (a >= d) for a in axes)
        return registry[NAME](x, axes=shifted), d - sum(a < d for a in shifted)

    def type_rule(x: Aval, *, axes: Any) -> Aval:
        shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        return Aval(shape, x.dtype, x.weak_type)

    def transpose(ct: Any, x: Any, *, axes: Any) -> Any:
        kept = tuple(i for i in range(x.ndim) if i not in axes)
        return (broadcast_in_dim(ct, shape=x.shape, broadcast_dimensions=kept),)

    sound = {
        "kind": SHAPE,
        "type": type_rule,
        "impl": lambda x, *, axes: np.sum(x, axis=axes),
        "jvp": linear,
        "transpose": transpose,
        "batch": batch,
        "hlo": lambda b, x, *, axes: b.reduce("add", x, axes),
    }
    return planted(**{**sound, **rules})


@pytest.mark.parametrize(
    "law", [laws.law_of_types, laws.law_of_derivatives, laws.law_of_batching]
)
def test_a_sound_linear_op_passes(law: Any) -> None:
    with _total():
        law(LINEAR)


def _spread(ct: Any, x: Any) -> Any:
    return broadcast_in_dim(ct, shape=x.shape, broadcast_dimensions=(0,))


LINEAR_FAULTS: list[tuple[str, dict[str, Any], Any]] = [
    (
        "transpose of the wrong size",
        {"transpose": lambda ct, x, *, axes: (add(_spread(ct, x), _spread(ct, x)),)},
        laws.law_of_derivatives,
    ),
    (
        "transpose of the wrong shape",
        {"transpose": lambda ct, x, *, axes: (ct,)},
        laws.law_of_derivatives,
    ),
    (
        "transpose that gives nothing",
        {"transpose": lambda ct, x, *, axes: (None,)},
        laws.law_of_derivatives,
    ),
    (
        "batch rule that does not shift axes",
        {
            "batch": lambda axis, args, dims, *, axes: (
                registry[NAME](moveaxis(args[0], dims[0], 2), axes=axes),
                0,
            )
        },
        laws.law_of_batching,
    ),
]


@pytest.mark.parametrize(("what", "rules", "law"), LINEAR_FAULTS, ids=[f[0] for f in LINEAR_FAULTS])
def test_a_wrong_linear_rule_is_caught(what: str, rules: dict[str, Any], law: Any) -> None:
    with _total(**rules), pytest.raises((AssertionError, JaxprTypeError)):
        law(LINEAR)


def test_the_registry_is_left_as_found() -> None:
    with planted():
        assert NAME in registry
    assert NAME not in registry


# The checker of programs.


def _one_eqn(out: Aval, **changes: Any) -> ClosedJaxpr:
    x, y = Var(Aval((3,), F32)), Var(out)
    eqn = Eqn(sin, [changes.get("reads", x)], [y], {})
    eqns = [eqn] * changes.get("times", 1)
    return ClosedJaxpr(Jaxpr([], [x], [changes.get("gives", y)], eqns), changes.get("consts", []))


GOOD = Aval((3,), F32)
PROGRAMS: list[tuple[str, Callable[[], ClosedJaxpr]]] = [
    ("output of another type", functools.partial(_one_eqn, Aval((4,), F32))),
    ("variable bound twice", functools.partial(_one_eqn, GOOD, times=2)),
    ("variable never bound", lambda: _one_eqn(GOOD, reads=Var(GOOD))),
    ("output never bound", lambda: _one_eqn(GOOD, gives=Var(GOOD))),
    ("constant without a variable", functools.partial(_one_eqn, GOOD, consts=[np.ones(3)])),
]


def test_the_checker_passes_a_legal_program() -> None:
    check_closed(_one_eqn(GOOD))


@pytest.mark.parametrize(("what", "make"), PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_an_illegal_program_is_caught(what: str, make: Callable[[], ClosedJaxpr]) -> None:
    with pytest.raises(JaxprTypeError, match=r"expected .*got"):
        check_closed(make())


# The comparison itself.


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.float32(1), np.float64(1)),
        (np.ones(2), np.ones(3)),
        (np.ones(2), np.ones((2, 1))),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.array([np.inf]), np.array([1e308])),
        (np.float32(1 + 1e-5), np.float32(1)),
        (np.int32(1), np.int32(2)),
        (np.complex64(1 + 1e-4j), np.complex64(1)),
    ],
)
def test_differences_are_seen(got: Any, want: Any) -> None:
    with pytest.raises(AssertionError):
        close([got], [want], "planted", ulps=8)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.array([np.nan, np.inf, 0.0]), np.array([np.nan, np.inf, 0.0])),
        (np.float32(1 + 2e-7), np.float32(1)),
    ],
)
def test_what_is_close_passes(got: Any, want: Any) -> None:
    close([got], [want], "sound", ulps=8)
