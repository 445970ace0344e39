"""debug.callback, debug.print, debug.log: values of running programs, for people."""

from __future__ import annotations

import functools
import string
import sys
from collections.abc import Callable, Sequence
from typing import Any

from primal.api.callbacks import HostCallback, make_callback
from primal.base.dtypes import KeyType
from primal.base.errors import api_boundary
from primal.base.pytree import tree_map
from primal.ir.state import state
from primal.ir.trace import Tracer
from primal.ops import host
from primal.ops.bits import random_unwrap
from primal.runtime.eager import root

LOGGER = "primal.debug"


class DebugCallback(HostCallback):
    """A callback whose results nobody wants."""

    __slots__ = ()

    def results(self, result: Any) -> list[Any]:
        return []


def _bind(
    op: Any,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    **params: Any,
) -> None:
    made, operands = make_callback(op.name, fun, args, kwargs, allow_fixed=True)
    quiet = DebugCallback(op.name, fun, made.spec, made.fixed, made.key_types, (), None)
    if state.trace is root and not any(isinstance(x, Tracer) for x in operands):
        quiet.call(operands)  # no program is between the function and its caller
        return
    op(*operands, callback=quiet, **params)


@api_boundary
def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values of a traced program, each time the program runs.

    Results are ignored. Under vmap it is called once per example; derivatives look through it; it
    may run for branches that are not taken where vmap makes a choice differ. With `ordered`, calls
    keep the order of the program. Arguments that are no arrays are passed as they are. Without a
    function, a decorator. `partitioned` would call it per shard.

    >>> import primal
    >>> seen = []
    >>> f = primal.jit(lambda x: (debug_callback(lambda v: seen.append(float(v)), x), x * 2)[1])
    >>> f(1.0), seen
    (Array(2., dtype=float32, weak_type=True), [1.0])
    """
    if callback is None:
        return functools.partial(debug_callback, ordered=ordered, partitioned=partitioned)
    _bind(host.debug_callback, callback, args, kwargs, ordered=ordered, partitioned=partitioned)
    return None


class _Fields(string.Formatter):
    """Finds what a format string uses, without formatting: traced values have no text yet."""

    def check(self, fmt: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        used: set[int | str] = set()
        self._collect(fmt, args, kwargs, used, [0], 2)
        spare = [a for i, a in enumerate(args) if i not in used]
        if spare:
            raise ValueError(
                f"[debug.print] expected a place in {fmt!r} for every argument, got none for: "
                f"Unused positional arguments to `debug.print`: {spare}."
            )
        left = [k for k in kwargs if k not in used]
        if left:
            raise ValueError(
                f"[debug.print] expected a place in {fmt!r} for every argument, got none for: "
                f"Unused keyword arguments to `debug.print`: {left}. An f-string is formatted "
                "before the value is known: pass a plain string, with the value as an argument."
            )

    def _collect(
        self,
        fmt: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        used: set[int | str],
        count: list[int],
        depth: int,
    ) -> None:
        for _, field, spec, _ in self.parse(fmt):
            if field is None:
                continue
            if field == "" or field[0] in ".[":
                field = f"{count[0]}{field}"
                count[0] += 1
            name = string._string.formatter_field_name_split(field)[0]  # type: ignore[attr-defined]
            self.get_value(name, args, kwargs)  # KeyError, IndexError: no such argument
            used.add(name)
            if spec and depth:
                self._collect(spec, args, kwargs, used, count, depth - 1)


_fields = _Fields()


def _words(x: Any) -> Any:
    """A random key as the numbers that it is."""
    aval = getattr(x, "aval", None)
    return random_unwrap(x) if isinstance(getattr(aval, "dtype", None), KeyType) else x


class _Print:
    """What `debug.print` calls: equal for equal formats, so that programs are found again."""

    __slots__ = ("fmt", "logs")
    _made: dict[tuple[str, bool], _Print] = {}

    def __new__(cls, fmt: str, logs: bool) -> _Print:
        found = cls._made.get((fmt, logs))
        if found is None:
            found = cls._made[(fmt, logs)] = object.__new__(cls)
            found.fmt, found.logs = fmt, logs
        return found

    fmt: str
    logs: bool

    @property
    def __name__(self) -> str:
        return f"print({self.fmt!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree_map(_words, (args, kwargs))
        text = self.fmt.format(*args, **kwargs)
        if self.logs:
            import logging

            logging.getLogger(LOGGER).info("%s", text)
        else:
            sys.stdout.write(text + "\n")


@api_boundary
def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values of a traced program when it runs: `fmt` is formatted as by `str.format`.

    Under vmap it prints once per example, under jvp and grad the values. With `ordered`, lines keep
    the order of the program. ValueError for arguments without a place in `fmt` (not with
    `skip_format_check`), KeyError and IndexError for places without an argument. TypeError where
    fmt is no string.

    >>> import primal
    >>> primal.jit(lambda x: debug_print("x = {x:.1f}", x=x))(2.0)
    x = 2.0
    """
    if fmt is None:
        return functools.partial(
            debug_print,
            ordered=ordered,
            partitioned=partitioned,
            skip_format_check=skip_format_check,
            _use_logging=_use_logging,
        )
    if not isinstance(fmt, str):
        raise TypeError(f"[debug.print] expected a format string, got {fmt!r}.")
    if not skip_format_check:
        _fields.check(fmt, args, kwargs)
    run: Any = _Print(fmt, _use_logging)
    _bind(
        host.debug_print, run, args, kwargs, fmt=fmt, ordered=ordered, partitioned=partitioned
    )
    return None


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """`debug.print` to Python's logging, logger 'primal.debug', level INFO.

    >>> debug_log("x = {}", 1.0)
    """
    return debug_print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=True,
        **kwargs,
    )


__all__ = ["debug_callback", "debug_log", "debug_print"]
