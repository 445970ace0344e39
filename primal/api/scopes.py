"""Named scopes: names of parts of programs, shown in jaxprs, StableHLO and profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from primal.api.operands import name_of
from primal.base.wrapping import wraps
from primal.ir.state import ambient, scopes, state
from primal.ir.trace import Trace, Tracer
from primal.runtime.eager import root
from primal.transforms.batch import BatchTrace
from primal.transforms.jvp import JVPTrace
from primal.transforms.linearize import LinearizeTrace
from primal.transforms.stage import StageTrace

F = TypeVar("F", bound=Callable[..., Any])


class named_scope:
    """Name the operations in a block; also a decorator. Scopes nest: `outer/inner`.

    Transformations show as `vmap(outer)`, `jvp(outer)` and, going back, `transpose(jvp(outer))`.
    TypeError for a name that is no string.

    >>> import primal
    >>> def f(x):
    ...     with named_scope("layer"):
    ...         return x * 2
    >>> print(primal.make_jaxpr(f)(1.0).pretty_print(name_stack=True))
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0 # [layer]
      in (b,) }
    """

    __slots__ = ("name", "_outer")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"[named_scope] expected a string, got {name!r}: named_scope name argument must be "
                "a string."
            )
        self.name = name
        self._outer: list[tuple[tuple[str, ...], Any]] = []

    def __enter__(self) -> str:
        self._outer.append((scopes.names, scopes.at))
        scopes.names = (*scopes.names, _transformed(self.name))
        scopes.at = state.trace
        return self.name

    def __exit__(self, *exc: object) -> None:
        scopes.names, scopes.at = self._outer.pop()

    def __call__(self, fun: F) -> F:
        @wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return scoped


_WRAPPERS: dict[type[Trace], str] = {
    JVPTrace: "jvp",
    LinearizeTrace: "jvp",
    BatchTrace: "vmap",
}


def _transformed(name: str) -> str:
    """The name of a scope inside of the transformations that began since the scope around it."""
    trace: Trace | None = state.trace
    while trace is not None and trace is not scopes.at and not isinstance(trace, StageTrace):
        wrapper = _WRAPPERS.get(type(trace))
        if wrapper is not None:
            name = f"{wrapper}({name})"
        trace = trace.parent
    return name


class _Known(Trace):
    """Runs at once what depends on no traced value, and records the rest as its parent does."""

    __slots__ = ()

    def process(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        traced = any(isinstance(a, Tracer) for a in args)
        target: Any = self.parent if traced else root
        with ambient(target):
            return target.process(op, args, params)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute in the block, while tracing, all that depends on no traced value.

    Its values may then steer Python. What depends on traced values is traced as ever.

    >>> import primal
    >>> def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = primal.numpy.arange(4).sum()
    ...     return x * int(n)
    >>> primal.jit(f)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    outer = state.trace
    with ambient(outer if outer is root else _Known(outer, "ensure_compile_time_eval")):
        yield


def named_call(fun: F, *, name: str | None = None) -> F:
    """The function with its operations in a scope of its name (or `name`).

    >>> named_call(abs, name="part")(-1)
    1
    """
    return named_scope(name_of(fun) if name is None else name)(fun)
