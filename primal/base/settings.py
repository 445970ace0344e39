"""Settings: one small record per flag, process-wide values, scoped overrides per thread.

Three ways to set a flag, in rising priority: the environment (`PRIMAL_ENABLE_X64=1`, read at
import), `config.update("enable_x64", True)` for the whole process, `with enable_x64(True):` for one
thread. Names are accepted as `enable_x64`, `primal_enable_x64` and `jax_enable_x64`.

Reading must be nearly free, because every dtype decision and every jit call reads. All values live
as plain attributes of one `Settings` object; `settings()`, the C method of a context variable,
returns that of the running thread (27 ns with the attribute; a `threading.local` took 85). A scope
makes a new object, a process-wide change is written into all live ones, and both bring `trace_key`
up to date, so that asking for it costs an attribute.
"""

from __future__ import annotations

import contextvars
import os
import weakref
from collections.abc import Callable
from typing import Any

from primal.base import command_line, forks
from primal.base.wrapping import wraps

__all__ = ["Config", "Flag", "Scope", "Settings", "config", "declare", "publish", "settings"]

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off", ""})
_PREFIXES = ("primal_", "jax_")

_lock = forks.rlock()
_flags: dict[str, Flag] = {}
_globals: dict[str, Any] = {}
_keyed: tuple[str, ...] = ()
_listeners: dict[str, list[Callable[[Any], None]]] = {}
_derived: dict[str, Callable[[dict[str, Any]], Any]] = {}
_absent = object()


class Settings:
    """All flag values as attributes; `trace_key` holds those that affect tracing or compiling."""

    # Attributes, not slots: flags of higher layers are added while the package is imported.
    trace_key: tuple[Any, ...]
    jit_key: tuple[Any, ...] | None

    def __init__(self, overrides: tuple[_Entry, ...] = ()) -> None:
        self.__dict__["_overrides"] = overrides
        self._refresh()

    def _refresh(self) -> None:
        values = dict(_globals)
        for entry in self._overrides:
            values[entry.name] = entry.value
        values["trace_key"] = tuple(map(values.__getitem__, _keyed))
        for name, fun in _derived.items():
            values[name] = fun(values)
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:  # only reached for names that are no flag
        raise AttributeError(f"[config] expected a flag name, got {name!r}.\n{_suggest(name)}")


class _Entry:
    __slots__ = ("name", "owner", "value")

    def __init__(self, owner: Scope, name: str, value: Any) -> None:
        self.owner, self.name, self.value = owner, name, value


_process = Settings()
_scoped: weakref.WeakSet[Settings] = weakref.WeakSet()
_current: contextvars.ContextVar[Settings] = contextvars.ContextVar("primal", default=_process)

settings: Callable[[], Settings] = _current.get
settings_variable = _current


def publish() -> None:
    """Write the process-wide values into every live Settings; the caller holds the lock."""
    _process._refresh()
    for scoped in _scoped:
        scoped._refresh()


def _enter(overrides: tuple[_Entry, ...]) -> None:
    if overrides:
        with _lock:
            scoped = Settings(overrides)
            _scoped.add(scoped)
        _current.set(scoped)
    else:
        _current.set(_process)


class Scope:
    """A context manager (and decorator) that overrides one flag for the running thread.

    It may be entered again while active, and by several threads at once.
    """

    __slots__ = ("names", "value")

    def __init__(self, name: str, value: Any, parts: tuple[str, ...] = ()) -> None:
        self.names, self.value = (name, *parts), value

    def __enter__(self) -> Any:
        entries = [_Entry(self, name, self.value) for name in self.names]
        _enter((*settings()._overrides, *entries))
        self._tell()
        return self.value

    def __exit__(self, *exc: object) -> None:
        overrides = list(settings()._overrides)
        # The newest entries of this scope, not simply the last: generators may leave out of order.
        left = len(self.names)
        for i in range(len(overrides) - 1, -1, -1):
            if overrides[i].owner is self and left:
                del overrides[i]
                left -= 1
        _enter(tuple(overrides))
        self._tell()

    def _tell(self) -> None:
        for name in self.names:
            for listener in _listeners.get(name, ()):
                listener(getattr(settings(), name))

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return scoped


class Flag:
    """One setting: name, default, legal values, meaning, and whether programs depend on it.

    `kind` is a type, a tuple of choices, a test that answers whether a value is legal and whose
    docstring says which are, or None for any value; `optional` admits None. The record is callable:
    `flag(value)` is a context manager for the running thread; `flag.value` is its value there.
    """

    # A record's own `__doc__`, which `help` shows, needs the dictionary.
    __slots__ = (
        "__dict__",
        "__name__",
        "default",
        "doc",
        "key",
        "kind",
        "name",
        "optional",
        "parts",
    )

    def __init__(
        self,
        name: str,
        default: Any,
        kind: type | tuple[Any, ...] | Callable[[Any], bool] | None,
        doc: str,
        *,
        key: bool = False,
        optional: bool = False,
        parts: tuple[str, ...] = (),
    ) -> None:
        self.parts = parts
        self.name = self.__name__ = name
        self.default, self.kind, self.doc = default, kind, doc
        self.key, self.optional = key, optional
        use = f">>> with {name}({default!r}):\n...     {name}.value"
        self.__doc__ = f"{doc}\n\n{use}" + ("" if default is None else f"\n{default!r}")

    @property
    def value(self) -> Any:
        """The value in the running thread."""
        return getattr(settings(), self.name)

    def __call__(self, new_val: Any = _absent) -> Scope:
        """Override the flag in a `with` block of this thread; a switch without a value is on."""
        if new_val is _absent:
            if self.kind is not bool:
                raise TypeError(f"[config] expected a value for {self.name!r}, got none.")
            new_val = True
        return Scope(self.name, self.check(new_val), self.parts)

    def check(self, value: Any) -> Any:
        """Return the value in its stored form, or raise a ValueError that lists the legal ones."""
        kind = self.kind
        if kind is None or (value is None and self.optional):
            return value
        if isinstance(kind, tuple):
            if value in kind:
                return value
        elif kind is bool:
            if isinstance(value, int) and value in (0, 1):
                return bool(value)
            if type(value).__module__ == "numpy" and type(value).__name__ == "bool":
                return bool(value)
        elif not isinstance(kind, type):
            if kind(value):
                return value
        elif isinstance(value, (int, kind)) if kind is float else isinstance(value, kind):
            if not isinstance(value, bool):
                return value
        raise ValueError(f"[config] expected {self.legal()} for {self.name!r}, got {value!r}.")

    def parse(self, text: str) -> Any:
        """Return the value that an environment variable's text stands for."""
        word = text.strip()
        if self.kind is bool:
            if word.lower() in _TRUE | _FALSE:
                return word.lower() in _TRUE
        elif self.optional and word.lower() in ("", "none"):
            return None
        elif self.kind in (int, float):
            try:
                return float(word) if self.kind is float else int(word)
            except ValueError:
                pass  # not a number: reported below with every other bad text
        elif isinstance(self.kind, tuple):
            if word in self.kind:
                return word
        else:
            return word
        raise ValueError(
            f"[config] expected {self.legal()} on the command line or in the environment "
            f"variable PRIMAL_{self.name.upper()}, got {text!r}."
        )

    def legal(self) -> str:
        """Return the legal values in words."""
        if isinstance(self.kind, tuple):
            words = "one of " + ", ".join(map(repr, self.kind))
        elif self.kind is bool:
            words = "True or False"
        elif self.kind is not None and not isinstance(self.kind, type):
            words = str(self.kind.__doc__)
        elif self.kind is None:
            words = "any value"
        else:
            words = f"a value of type {self.kind.__name__}"
        return words + " or None" if self.optional else words

    def __repr__(self) -> str:
        return f"Flag({self.name}={self.value!r}, default={self.default!r})"


def _bare_name(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def _suggest(name: str) -> str:
    import difflib  # stdlib, needed on the error path only

    close = difflib.get_close_matches(_bare_name(name), _flags, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}The flags are: {', '.join(sorted(_flags))}."


def _find(name: str) -> Flag:
    flag = _flags.get(_bare_name(name)) if isinstance(name, str) else None
    if flag is None:
        raise AttributeError(
            f"[config] expected a flag name, got {name!r}.\n{_suggest(str(name))}\n"
            "Each may also be written with the prefix 'primal_' or 'jax_'."
        )
    return flag


class Config:
    """Reads and sets flags: `config.enable_x64`, `config.update("enable_x64", True)`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        value = settings().__dict__.get(name, _absent)
        if value is not _absent:
            return value
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(settings(), _find(name).name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *_flags]

    def update(self, name: str, val: Any) -> None:
        """Set a flag for the whole process; scopes that are active keep their own values.

        Raises AttributeError for an unknown name and ValueError for an illegal value.

        >>> config.update("jax_numpy_rank_promotion", "allow")
        >>> config.numpy_rank_promotion
        'allow'
        """
        flag = _find(name)
        value = flag.check(val)
        with _lock:
            for part in (flag.name, *flag.parts):
                _globals[part] = value
            publish()
        for listener in _listeners.get(flag.name, ()):
            listener(getattr(settings(), flag.name))

    def read(self, name: str) -> Any:
        """Return the value of a flag in the running thread, under any of its spellings."""
        return getattr(settings(), _find(name).name)

    def trace_key(self) -> tuple[Any, ...]:
        """Return a hashable of all flags on which a traced or compiled program depends.

        It is built when a flag changes, so a call costs one attribute read.
        """
        return settings().trace_key

    def flag(self, name: str) -> Flag:
        """Return the record of a flag."""
        return _find(name)

    def flags(self) -> dict[str, Flag]:
        """Return the records of all flags by name."""
        return dict(_flags)

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are kept in the running thread: `enable_x64` as a question."""
        return settings().enable_x64

    @property
    def values(self) -> dict[str, Any]:
        """All values in the running thread, by names as in `jax_enable_x64`."""
        current = settings()
        return {f"jax_{name}": getattr(current, name) for name in _flags}

    def on_update(self, name: str, listener: Callable[[Any], None]) -> None:
        """Call `listener(value)` whenever `update` sets this flag, and as scopes begin and end.

        What listens (threads, the level of logs) exists once, so that a scope of one thread is felt
        by all while it is active.
        """
        _listeners.setdefault(_find(name).name, []).append(listener)

    def config_with_absl(self) -> None:
        """Make every setting a flag of `absl.app.run`, as `--jax_enable_x64`."""
        command_line.define(_flags.values(), _PREFIXES, self.update)

    def parse_flags_with_absl(self) -> None:
        """Take what the command line says of the settings now, as absl reads it."""
        command_line.parse(_flags.values(), _PREFIXES, self.update)

    def derive(self, name: str, fun: Callable[[dict[str, Any]], Any]) -> None:
        """Keep `settings().name` equal to `fun(values by flag name)`, computed once per change."""
        with _lock:
            _derived[name] = fun
            publish()

    def define(self, flag: Flag) -> Flag:
        """Add a flag at import time; a set environment variable gives its first value."""
        if flag.name in _flags:
            raise ValueError(f"[config] expected a new flag name, got {flag.name!r}, which exists.")
        with _lock:
            declare(flag)
            publish()
        return flag


def declare(flag: Flag) -> Flag:
    """Add a flag, which settings have once they are published: many flags, one publication."""
    global _keyed
    text = os.environ.get(f"PRIMAL_{flag.name.upper()}")
    value = flag.default if text is None else flag.parse(text)
    _flags[flag.name] = flag
    _globals[flag.name] = value
    if flag.key:
        _keyed = (*_keyed, flag.name)
    return flag


config = Config()
publish()
