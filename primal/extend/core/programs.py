"""What code that walks through programs, or writes them, asks of their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.ir import check, jaxpr, trace
from primal.ir.avals import Aval
from primal.ir.jaxpr import Eqn, Jaxpr, Var


@api_boundary
def check_jaxpr(jaxpr: Jaxpr) -> None:
    """JaxprTypeError where a program, or one that its equations carry, breaks a rule of the
    language: scopes, types and effects.

    >>> from primal.extend import core
    >>> core.check_jaxpr(primal.make_jaxpr(jnp.sin)(1.0).jaxpr)
    """
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"[check_jaxpr] expected a Jaxpr, got {jaxpr!r}.")
    check.check_jaxpr(jaxpr)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters.

    >>> from primal.extend import core
    >>> eqn = primal.make_jaxpr(primal.jit(jnp.sin))(1.0).eqns[0]
    >>> next(core.jaxprs_in_params(eqn.params))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    return (closed.jaxpr for closed in jaxpr.subjaxprs(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that a program's equations carry, not those within them.

    >>> from primal.extend import core
    >>> len(list(core.subjaxprs(primal.make_jaxpr(primal.jit(jnp.sin))(1.0).jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Var],
    primitive: Any,
    params: dict[str, Any],
    effects: Any,
    source_info: Any = None,
    ctx: Any = None,
) -> Eqn:
    """An equation. `source_info` is that of another one; `ctx` changes nothing here.

    >>> from primal.extend import core
    >>> x = core.gensym()(primal.typeof(1.0))
    >>> core.new_jaxpr_eqn([x], [core.Var(x.aval)], core.primitives.sin_p, {}, core.no_effects)
    a:f32[] = sin b
    """
    source = getattr(source_info, "location", None)
    return Eqn(primitive, invars, outvars, params, source, frozenset(effects))


def gensym() -> Callable[[Aval], Var]:
    """What makes a new variable of an aval.

    >>> primal.extend.core.gensym()(primal.typeof(1.0)).aval
    ShapedArray(float32[], weak_type=True)
    """
    return Var


@api_boundary
def mapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """The aval of one example: without an axis of that size. ValueError for another size.

    >>> primal.extend.core.mapped_aval(3, 0, primal.typeof(jnp.ones((3, 2))))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if not -aval.ndim <= axis < aval.ndim or aval.shape[axis] != size:
        raise ValueError(f"[mapped_aval] expected axis {axis} of size {size}, got {aval!r}.")
    axis %= aval.ndim
    return aval.with_shape(aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """The aval of examples: with an axis of that size.

    >>> primal.extend.core.unmapped_aval(3, 0, primal.typeof(jnp.ones(2)))
    ShapedArray(float32[3,2])
    """
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


@api_boundary
def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or ConcretizationTypeError, which says `context`, for a traced value.

    >>> primal.extend.core.concrete_or_error(int, 2.5)
    2
    """
    val = trace.concrete_or_error(val, context or "concrete_or_error")
    return val if force is None else force(val)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value may be an operand.

    >>> [primal.extend.core.valid_jaxtype(x) for x in (1.0, jnp.ones(2), "a")]
    [True, True, False]
    """
    try:
        trace.aval_of(x)
    except TypeError:
        return False
    return True


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of derivatives: float0 for those that have none.

    >>> primal.extend.core.primal_dtype_to_tangent_dtype(jnp.dtype("int32"))
    dtype([('float0', 'V')])
    """
    return dtypes.to_tangent_dtype(primal_dtype)
