"""Derivatives of users' primitives.

* `primitive_jvps[p] = rule`: `rule(primals, tangents, **params)` -> (result, its tangent).
  A tangent that is known to be zero is a `Zero`.
* `primitive_transposes[p] = rule`: `rule(cotangent, *operands, **params)` -> one cotangent for each
  operand, None for those that are not linear. Linear operands are `UndefinedPrimal`s.

>>> from primal.extend.core import Primitive
>>> from primal.interpreters import ad
>>> cube_p = Primitive("cube")
>>> _ = cube_p.def_impl(lambda x: x ** 3)
>>> ad.defjvp(cube_p, lambda t, x: 3 * x ** 2 * t)
>>> primal.grad(cube_p.bind)(2.0)
Array(12., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from primal.extend.core.primitive import Primitive, Rules, zero_tangent
from primal.extend.core.primitive import Zero as Zero
from primal.ir.avals import Aval
from primal.ir.trace import Undefined as UndefinedPrimal
from primal.ir.trace import aval_of
from primal.ops.spread import add_any as add_jaxvals_p

__all__ = [
    "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "defbilinear",
    "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose",
    "instantiate_zeros", "is_undefined_primal", "primitive_jvps", "primitive_transposes",
    "zeros_like_aval",
]  # fmt: skip

primitive_jvps = Rules("jvp", "primitive_jvps")
primitive_transposes = Rules("transpose", "primitive_transposes")


def is_undefined_primal(x: Any) -> bool:
    """Whether an operand of a transpose rule is one that it is linear in.

    >>> from primal.interpreters import ad
    >>> ad.is_undefined_primal(ad.UndefinedPrimal(primal.typeof(1.0))), ad.is_undefined_primal(1.0)
    (True, False)
    """
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """An array of zeros for a `Zero`, everything else as it is.

    >>> from primal.interpreters import ad
    >>> ad.instantiate_zeros(ad.Zero(primal.typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    """
    return tangent.instantiate() if isinstance(tangent, Zero) else tangent


def zeros_like_aval(aval: Aval) -> Any:
    """An array of zeros of a type.

    >>> primal.interpreters.ad.zeros_like_aval(primal.typeof(jnp.ones(2)))
    Array([0., 0.], dtype=float32)
    """
    return Zero(aval).instantiate()


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two arrays of one type.

    >>> primal.interpreters.ad.add_jaxvals(jnp.ones(2), jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return add_jaxvals_p.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a `Zero`.

    >>> from primal.interpreters import ad
    >>> ad.add_tangents(ad.Zero(primal.typeof(1.0)), 2.0)
    2.0
    """
    return y if isinstance(x, Zero) else x if isinstance(y, Zero) else add_jaxvals(x, y)


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive; NotImplementedError where none was given.

    >>> from primal.interpreters import ad
    >>> p = primal.extend.core.Primitive("p")
    >>> ad.deflinear(p, lambda ct: [ct])
    >>> ad.get_primitive_transpose(p)(2.0, None)
    [2.0]
    """
    found = primitive_transposes.get(p)
    if found is None:
        raise NotImplementedError(f"[{p}] expected a transpose, got none: Transpose rule for '{p}'")
    return found


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Set the derivative by functions of one tangent each: `rule(tangent, *primals, **params)`.

    The tangent of the result is their sum; None stands for an operand whose tangent is ignored.

    >>> from primal.interpreters import ad
    >>> area_p = primal.extend.core.Primitive("area")
    >>> _ = area_p.def_impl(lambda x, y: x * y)
    >>> ad.defjvp(area_p, lambda t, x, y: t * y, lambda t, x, y: x * t)
    >>> primal.grad(area_p.bind)(2.0, 3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    defjvp2(primitive, *[rule and _without_result(rule) for rule in jvprules])


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, out, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """As `defjvp`, of `rule(tangent, result, *primals, **params)`.

    >>> from primal.interpreters import ad
    >>> exp_p = primal.extend.core.Primitive("exp")
    >>> _ = exp_p.def_impl(jnp.exp)
    >>> ad.defjvp2(exp_p, lambda t, out, x: t * out)
    >>> primal.grad(exp_p.bind)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        parts = [
            each(t, out, *primals, **params)
            for each, t in zip(jvprules, tangents, strict=True)
            if each is not None and not isinstance(t, Zero)
        ]
        return out, reduce(add_tangents, parts, zero_tangent(out))

    primitive_jvps[primitive] = rule


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Declare it linear in all operands: `transpose_rule(cotangent, **params)`, a list.

    >>> from primal.interpreters import ad
    >>> twice_p = primal.extend.core.Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: x + x), twice_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear(twice_p, lambda ct: [ct + ct])
    >>> primal.grad(twice_p.bind)(3.0)
    Array(2., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """As `deflinear`, of `transpose_rule(cotangent, *operands, **params)`.

    >>> from primal.interpreters import ad
    >>> twice_p = primal.extend.core.Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: x + x), twice_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear2(twice_p, lambda ct, x: [ct + ct])
    >>> primal.grad(twice_p.bind)(3.0)
    Array(2., dtype=float32, weak_type=True)
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(isinstance(t, Zero) for t in tangents):
            zeros = map(zero_tangent, out if primitive.multiple_results else [out])
            return out, list(zeros) if primitive.multiple_results else next(zeros)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose_rule


def defbilinear(
    prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]
) -> None:
    """Declare it linear in each of two operands: `rule(cotangent, x, y, **params)`, its own.

    Transposing is a ValueError where neither operand, or both, are linear.

    >>> from primal.interpreters import ad
    >>> area_p = primal.extend.core.Primitive("area")
    >>> _ = area_p.def_impl(lambda x, y: x * y), area_p.def_abstract_eval(lambda x, y: x)
    >>> ad.defbilinear(area_p, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)
    >>> primal.grad(area_p.bind)(2.0, 3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise ValueError(
                f"[{prim}] expected one of two operands to be linear, got "
                f"{aval_of(x).str_short()} and {aval_of(y).str_short()}, of which both or none are."
            )
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose
