"""What programs do with users' primitives: the operations of a function of arrays.

>>> from primal.extend.core import Primitive
>>> from primal.interpreters import mlir
>>> twice_p = Primitive("twice")
>>> _ = twice_p.def_abstract_eval(lambda x: x)
>>> mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
>>> primal.jit(twice_p.bind)(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from primal.extend.core.primitive import Primitive

__all__ = ["lower_fun", "register_lowering"]


class Lowering(NamedTuple):
    """A function of arrays, and whether its results are a sequence."""

    fun: Callable[..., Any]
    multiple_results: bool


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Lowering:
    """The rule of a primitive that programs compute by `fun(*operands, **params)`.

    It returns a sequence if `multiple_results`, as that of a primitive with several results has to.

    >>> primal.interpreters.mlir.lower_fun(jnp.sin, multiple_results=False).multiple_results
    False
    """
    return Lowering(fun, multiple_results)


def register_lowering(
    prim: Primitive,
    rule: Lowering,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Set what programs do with a primitive.

    Only rules that `lower_fun` makes: those that write MLIR through XLA's bindings would serve one
    of three engines, and are a TypeError. NotImplementedError for a `platform`, as a program is
    rewritten before it is known where it runs. `inline` and `cacheable` exist for JAX's signature.

    >>> from primal.interpreters import mlir
    >>> half_p = primal.extend.core.Primitive("half")
    >>> _ = half_p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(half_p, mlir.lower_fun(lambda x: x / 2, multiple_results=False))
    >>> primal.jit(half_p.bind)(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    if not isinstance(prim, Primitive):
        raise TypeError(
            f"[register_lowering] expected a primal.extend.core.Primitive, got {prim!r}: the rules "
            "of the library's own operations stay as they are."
        )
    if not isinstance(rule, Lowering):
        raise TypeError(
            f"[register_lowering] expected a rule that lower_fun makes, got {rule!r}. Write it as "
            "a function of arrays."
        )
    if platform is not None:
        raise NotImplementedError(
            f"[register_lowering] expected one rule for all platforms, got one for {platform!r}."
        )
    prim.lower_by(rule.fun, rule.multiple_results)
