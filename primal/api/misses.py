"""Why a jitted function is traced again, in words."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from primal.api.operands import name_of
from primal.base.config import config
from primal.base.pytree import PyTreeDef
from primal.base.source import current_location, format_location
from primal.ir.avals import Aval

LOGGER = "primal.jit"

Key = tuple[Any, ...]  # (spec, avals, statics, configuration, axes, ...)


AGAIN = (
    "\n  but a function defined there was traced before. It was made anew, or is jitted anew, "
    "maybe\n  with other options, and a new function remembers nothing: define and jit it once, "
    "outside of\n  the loop."
)
# Of functions whose first call was explained; code is held by nobody else here.
_explained: weakref.WeakSet[Any] = weakref.WeakSet()


def log_miss(fun: Callable[..., Any], key: Key, seen: Iterable[Key], names: Sequence[str]) -> None:
    """Log that a call is traced, and what differs from the closest call before it."""
    import logging

    logging.getLogger(LOGGER).warning("%s", explanation(fun, key, seen, names))


def explanation(
    fun: Callable[..., Any], key: Key, seen: Iterable[Key], names: Sequence[str]
) -> str:
    """The text of `log_miss`: which argument changed, and how.

    >>> print(explanation(abs, ("*", (), (), (), ()), [], []).splitlines()[1].strip())
    never seen function: abs
    """
    where = format_location(current_location(), full_path=True)
    head = f"TRACING CACHE MISS at {where}:\n  "
    code = getattr(fun, "__code__", None)
    defined = f" defined at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    # Of equally close ones, the latest.
    before = min(reversed(list(seen)), key=lambda k: _distance(key, k), default=None)
    if before is None:
        again = AGAIN if code in _explained else ""
        if code is not None:
            _explained.add(code)
        return f"{head}never seen function: {name_of(fun)}{defined}{again}"
    return (
        f"{head}for {name_of(fun)}{defined}\n"
        "  all previously seen signatures differ. From the closest one:\n"
        + "\n".join(f"  * {line}" for line in _differences(key, before, names))
    )


def _distance(a: Key, b: Key) -> tuple[int, ...]:
    """How different two calls are: configuration and trees count more than types."""
    pairs = list(zip(a[1], b[1], strict=False))
    avals = sum((x is not y) + (x.strong() is not y.strong()) for x, y in pairs)
    return (
        int(a[0] != b[0])
        + int(a[2] != b[2])
        + sum(x != y for x, y in zip(a[3], b[3], strict=False))
        + int(a[4:] != b[4:]),
        2 * abs(len(a[1]) - len(b[1])) + avals,
    )


def _differences(now: Key, before: Key, names: Sequence[str]) -> list[str]:
    lines = []
    if now[0] != before[0]:
        lines.append(
            f"different structure of the arguments: now {_tree(now[0])} and before "
            f"{_tree(before[0])}"
        )
    else:
        for i, (a, b) in enumerate(zip(now[1], before[1], strict=True)):
            if a is not b:
                where = names[i] if i < len(names) else f"leaf {i}"
                lines.append(f"different type at {where}: {_types(a, b)}")
    if now[2] != before[2]:
        old = {where: value for where, _, value in before[2]}
        for where, _, value in now[2]:
            if where not in old or old[where] != value:
                previous = f"before {old[where]!r}" if where in old else "not before"
                lines.append(
                    f"different static argument {where!r}: now {value!r} and {previous}"
                )
    if now[3] != before[3]:
        keyed = [name for name, flag in config.flags().items() if flag.key]
        for name, a, b in zip(keyed, now[3], before[3], strict=False):
            if a != b:
                lines.append(f"different configuration: {name} is now {a!r} and was {b!r}")
    if now[4:] != before[4:]:
        lines.append(f"different named axes: now {now[4]} and before {before[4]}")
    return lines or ["nothing: what the function closed over has ended with its transformation"]


def _tree(spec: Any) -> str:
    return str(PyTreeDef(spec))


def _types(a: Aval, b: Aval) -> str:
    text = f"now {a.short()} and before {b.short()}"
    if a.strong() is b.strong():
        text = (
            f"now {a.short()}, weak_type={a.weak_type}, and before weak_type={b.weak_type}: "
            "Python scalars are weak, arrays made by jnp.asarray(x, dtype) are not"
        )
    return text
