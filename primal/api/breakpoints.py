"""debug.breakpoint: a prompt at a place of a traced program, with the values of that run."""

from __future__ import annotations

import cmd
import sys
from types import FrameType
from typing import Any

from primal.api.debugging import debug_callback
from primal.api.operands import abstract
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, unflatten
from primal.base.source import is_internal, user_frame
from primal.ir.trace import Array

_BACKENDS = ("cli", "web", "colab")


class Frame:
    """One frame of the call stack, with values of its variables."""

    __slots__ = ("filename", "name", "line", "lines", "first", "locals", "globals")

    def __init__(self, frame: FrameType) -> None:
        import inspect

        self.filename = frame.f_code.co_filename
        self.name = frame.f_code.co_name
        self.line = frame.f_lineno
        self.locals: dict[str, Any] = {}
        self.globals = frame.f_globals
        try:
            self.lines, first = inspect.getsourcelines(frame)
        except OSError:
            self.lines, first = [], self.line
        self.first = max(first, 1)

    def listing(self, around: int = 3) -> str:
        """The lines around the current one, which is marked."""
        here = self.line - self.first
        out = []
        for i in range(max(here - around + 1, 0), min(here + around, len(self.lines))):
            mark = "->  " if i == here else "    "
            out.append(mark + self.lines[i].rstrip("\n"))
        return "\n".join(out)


class Debugger(cmd.Cmd):
    """The prompt: looks at variables and moves along the stack; it changes nothing."""

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame]) -> None:
        super().__init__(stdin=sys.stdin, stdout=sys.stdout)
        self.use_rawinput = sys.stdin is sys.__stdin__
        self.frames = frames
        self.at = 0
        self.intro = f"Entering jdb:\n{self._where()}"

    @property
    def frame(self) -> Frame:
        return self.frames[self.at]

    def _where(self) -> str:
        return f"> {self.frame.filename}({self.frame.line})\n{self.frame.listing()}"

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def evaluate(self, source: str) -> Any:
        return eval(source, {**self.frame.globals}, self.frame.locals)

    def do_p(self, arg: str) -> None:
        """p expression: print its value."""
        try:
            self.say(repr(self.evaluate(arg)))
        except Exception as e:
            self.say(f"*** {type(e).__name__}: {e}")

    do_pp = do_p

    def default(self, line: str) -> None:
        """Any other line is an expression whose value is printed."""
        self.do_p(line)

    def emptyline(self) -> bool:
        return False

    def do_list(self, arg: str) -> None:
        """l(ist): the source around the current line."""
        self.say(self._where())

    do_l = do_list

    def do_up(self, arg: str) -> None:
        """u(p): to the caller's frame."""
        self._move(1, "Oldest frame")

    do_u = do_up

    def do_down(self, arg: str) -> None:
        """d(own): back towards the breakpoint."""
        self._move(-1, "Newest frame")

    do_d = do_down

    def _move(self, step: int, end: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
            self.say(self._where())
        else:
            self.say(end)

    def do_where(self, arg: str) -> None:
        """w(here), bt: the call stack."""
        self.say("Traceback:")
        for f in reversed(self.frames):
            text = f.lines[f.line - f.first].strip() if 0 <= f.line - f.first < len(f.lines) else ""
            self.say(f'  File "{f.filename}", line {f.line}, in {f.name}\n    {text}')

    do_w = do_bt = do_where

    def do_continue(self, arg: str) -> bool:
        """c(ont(inue)): go on with the program."""
        return True

    do_c = do_cont = do_continue

    def do_quit(self, arg: str) -> bool:
        """q(uit): end the program by SystemExit, or EOF."""
        raise SystemExit(0)

    do_q = do_EOF = do_exit = do_quit


def _stack(filter_frames: bool, num_frames: int | None) -> list[tuple[Frame, FrameType]]:
    found: list[tuple[Frame, FrameType]] = []
    frame = user_frame()
    while frame is not None and (num_frames is None or len(found) < num_frames):
        if not (filter_frames and is_internal(frame.f_code.co_filename)):
            found.append((Frame(frame), frame))
        frame = frame.f_back
    return found


@api_boundary
def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Stop at this place when the program runs, at a prompt with the values that it has there.

    Inside jit the variables of the functions being traced are recorded, and each run stops with
    their values. Commands: p and pp (print), l(ist), u(p), d(own), w(here) or bt, c(ontinue),
    q(uit). `filter_frames` leaves out this library's frames, `num_frames` limits their number.
    `backend` is 'cli' or None. With a `token` to return, the breakpoint is not moved past it.

    ValueError for another backend.
    """
    if backend not in (None, "cli"):
        known = " (not available here)" if backend in _BACKENDS else ""
        raise ValueError(f"[breakpoint] expected the backend 'cli', got {backend!r}{known}.")
    stack = _stack(filter_frames, num_frames)
    frames = [f for f, _ in stack]
    arrays: list[Any] = []
    places: list[Any] = []
    for frame, raw in stack:
        for name, value in list(raw.f_locals.items()):
            try:
                leaves, spec = flatten(value)
            except Exception:
                leaves, spec = [value], None  # no tree: shown as it is
            if spec is None or not any(isinstance(x, Array) for x in leaves):
                frame.locals[name] = value
                continue
            marks = []
            for x in leaves:
                is_array = isinstance(x, Array) and abstract(x) is not None
                marks.append((len(arrays), True) if is_array else (x, False))
                if is_array:
                    arrays.append(x)
            places.append((frame, name, spec, marks))

    def stop(*values: Any) -> None:
        for frame, name, spec, marks in places:
            leaves = [values[x] if is_array else x for x, is_array in marks]
            frame.locals[name] = unflatten(spec, leaves)
        Debugger(frames).cmdloop()

    debug_callback(stop, *arrays, ordered=ordered)


__all__ = ["Debugger", "breakpoint"]
