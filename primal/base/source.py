"""The user's line of code, recorded as (code object, instruction offset) and formatted on demand.

Every traced equation records one location, so recording must cost a fraction of a microsecond: it
is a walk over `sys._getframe` with one dict lookup of an interned file name per frame. Code
objects are never hashed (hashing one compares its constants and costs microseconds), line tables
are read only to format.
"""

from __future__ import annotations

import itertools
import os
import sys
from types import FrameType, TracebackType
from typing import Any

__all__ = [
    "Location",
    "current_location",
    "format_location",
    "hide",
    "is_internal",
    "line_of",
    "names_of",
    "package_root",
    "scoped",
    "transposed",
    "user_frame",
    "user_stacklevel",
    "without_internal_frames",
]

Location = tuple[Any, ...]
"""(code object, instruction offset), then the names of the scopes around it if there are any."""

package_root: str = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_hidden_roots: tuple[str, ...] = (package_root,)


# file name -> whether its frames are the library's own. A plain dict, whose subscript the
# interpreter specialises: a subclass with __missing__ costs a third more per frame.
_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Return whether a file belongs to the library, so that its frames are not the user's."""
    found = _internal.get(filename)
    if found is None:
        found = filename.startswith(_hidden_roots) or filename.startswith("<frozen ")
        _internal[filename] = found
    return found


def hide(root: str) -> None:
    """Count the files under a further folder, or one file, as the library's own."""
    global _hidden_roots
    _hidden_roots = (*_hidden_roots, root)
    _internal.clear()


def current_location(skip: int = 1) -> Location | None:
    """Return (code, instruction offset) of the innermost frame outside the library, or None.

    About 0.1 us per frame of the library; a caller that is always called through `n` of its own
    frames passes `skip=n`, which costs nothing.

    >>> code, offset = current_location()
    >>> code.co_name
    '<module>'
    """
    frame: FrameType | None = sys._getframe(skip)
    internal = _internal
    while frame is not None:
        code = frame.f_code
        try:
            if not internal[code.co_filename]:
                return code, frame.f_lasti
        except KeyError:
            is_internal(code.co_filename)
            continue
        frame = frame.f_back
    return None


def user_frame() -> FrameType | None:
    """Return the innermost frame outside the library, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_stacklevel() -> int:
    """Return the `stacklevel` with which the caller's `warnings.warn` names the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level


def line_of(location: Location) -> int | None:
    """Return the line number of a location."""
    code, offset = location[:2]
    for start, end, line in code.co_lines():
        if start <= offset < end:
            return line
    return code.co_firstlineno


def scoped(location: Location | None, names: tuple[str, ...]) -> Location | None:
    """The location with further scopes around those it has."""
    if location is None or not names:
        return location
    return location[0], location[1], (*names, *names_of(location))


def transposed(location: Location | None) -> Location | None:
    """The location of what transposes an operation: scopes `jvp(s)` are `transpose(jvp(s))` there.

    >>> names_of(transposed(("code", 0, ("vmap(jvp(s))", "t"))))
    ('vmap(transpose(jvp(s)))', 't')
    """
    if location is None or len(location) < 3:
        return location
    names = names_of(location)
    found = [(i, n.find("jvp(")) for i, n in enumerate(names) if "jvp(" in n]
    i, at = found[0] if found else (0, 0)
    name = names[i] if found else f"jvp({names[0]})"
    depth, end = 0, at
    while end < len(name) and (end < at + 4 or depth):
        depth += (name[end] == "(") - (name[end] == ")")
        end += 1
    new = f"{name[:at]}transpose({name[at:end]}){name[end:]}"
    return location[0], location[1], (*names[:i], new, *names[i + 1 :])


def names_of(location: Location | None) -> tuple[str, ...]:
    """The names of the scopes that a location is in, outermost first.

    >>> names_of(None)
    ()
    """
    return location[2] if location is not None and len(location) > 2 else ()


def format_location(location: Location | None, *, full_path: bool = False) -> str:
    """Return a location as `file.py:12 (function)`; with its full path also with its column.

    >>> format_location(None)
    '<unknown>'
    """
    if location is None:
        return "<unknown>"
    code = location[0]
    if not full_path:
        return f"{os.path.basename(code.co_filename)}:{line_of(location)} ({code.co_qualname})"
    # One entry per instruction, which are two bytes long.
    column = next(itertools.islice(code.co_positions(), location[1] // 2, None))[2]
    where = f"{code.co_filename}:{line_of(location)}" + ("" if column is None else f":{column}")
    return f"{where} ({code.co_qualname})"


def without_internal_frames(tb: TracebackType | None) -> TracebackType | None:
    """Return a copy of a traceback without the library's own frames, None if it has no others."""
    kept: list[TracebackType] = []
    while tb is not None:
        if not is_internal(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        tb = tb.tb_next
    out: TracebackType | None = None
    for entry in reversed(kept):
        out = TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out
