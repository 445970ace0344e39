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
import threading
import weakref
from collections.abc import Callable
from typing import Any

from primal.base import command_line
from primal.base.accepted import ACCEPTED
from primal.base.wrapping import wraps

__all__ = ["Config", "Flag", "Scope", "Settings", "config", "settings"]

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off", ""})
_PREFIXES = ("primal_", "jax_")

_lock = threading.RLock()
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


def _publish() -> None:
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

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return scoped


class Flag:
    """One setting: name, default, legal values, meaning, and whether programs depend on it.

    `kind` is a type, a tuple of choices, or None for any value; `optional` admits None. The record
    is callable: `flag(value)` is a context manager for the running thread; `flag.value` is its
    value there.
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
        kind: type | tuple[Any, ...] | None,
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
                return self.kind(word)
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
            _publish()
        for listener in _listeners.get(flag.name, ()):
            listener(value)

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
        """Call `listener(value)` whenever `update` sets this flag (scopes do not call it)."""
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
            _publish()

    def define(self, flag: Flag) -> Flag:
        """Add a flag at import time; a set environment variable gives its first value."""
        global _keyed
        if flag.name in _flags:
            raise ValueError(f"[config] expected a new flag name, got {flag.name!r}, which exists.")
        text = os.environ.get(f"PRIMAL_{flag.name.upper()}")
        value = flag.default if text is None else flag.parse(text)
        with _lock:
            _flags[flag.name] = flag
            _globals[flag.name] = value
            if flag.key:
                _keyed = (*_keyed, flag.name)
            _publish()
        return flag


config = Config()
_publish()


def _flag(name: str, default: Any, kind: Any, doc: str, **options: Any) -> Flag:
    # As `Config.define`, less the publication, which happens once after the table below.
    global _keyed
    flag = _flags[name] = Flag(name, default, kind, doc, **options)
    text = os.environ.get(f"PRIMAL_{name.upper()}")
    _globals[name] = default if text is None else flag.parse(text)
    if flag.key:
        _keyed = (*_keyed, name)
    return flag


_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
_FILTERS = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")

# Dtypes and promotion.
enable_x64 = _flag(
    "enable_x64", False, bool, "64-bit dtypes; without it they become 32-bit.", key=True
)
numpy_dtype_promotion = _flag(
    "numpy_dtype_promotion",
    "standard",
    ("standard", "strict"),
    "Implicit promotion between dtypes: as documented, or an error.",
    key=True,
)
numpy_rank_promotion = _flag(
    "numpy_rank_promotion",
    "allow",
    ("allow", "warn", "raise"),
    "Implicit broadcasting between arrays of different rank.",
    key=True,
)
default_matmul_precision = _flag(
    "default_matmul_precision",
    None,
    _PRECISIONS,
    "Precision of products and convolutions that do not name one.",
    key=True,
    optional=True,
)

# Random numbers.
default_prng_impl = _flag(
    "default_prng_impl",
    "threefry2x32",
    ("threefry2x32", "rbg", "unsafe_rbg"),
    "The generator of keys made without `impl`.",
    key=True,
)
threefry_partitionable = _flag(
    "threefry_partitionable",
    False,
    bool,
    "The newer counter scheme of threefry, whose numbers differ from the original's.",
    key=True,
)
enable_custom_prng = _flag(
    "enable_custom_prng", False, bool, "`PRNGKey` returns a typed key, as `key` does.", key=True
)
legacy_prng_key = _flag(
    "legacy_prng_key",
    "allow",
    ("allow", "warn", "error"),
    "What a raw `uint32` key does where a typed one would do.",
    key=True,
)

# Debugging.
debug_nans = _flag(
    "debug_nans", False, bool, "Raise FloatingPointError where a NaN first appears.", key=True
)
debug_infs = _flag(
    "debug_infs", False, bool, "Raise FloatingPointError where an infinity first appears.", key=True
)
_disable_jit = _flag("disable_jit", False, bool, "Run the bodies of jitted functions op by op.")
check_tracer_leaks = _flag(
    "check_tracer_leaks", False, bool, "Raise when a tracer outlives its trace.", key=True
)
debug_key_reuse = _flag(
    "debug_key_reuse",
    False,
    bool,
    "Raise KeyReuseError when a typed key is consumed twice.",
    key=True,
)
enable_checks = _flag("enable_checks", False, bool, "Check every jaxpr after every transformation.")
explain_cache_misses = _flag(
    "explain_cache_misses", False, bool, "Log why a jitted function is traced again."
)
no_tracing = _flag(
    "no_tracing", False, bool, "Raise where a jitted function would be traced (again)."
)
no_execution = _flag("no_execution", False, bool, "Raise where a jitted function would run.")
logging_level = _flag(
    "logging_level",
    "NOTSET",
    ("NOTSET", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "FATAL", "CRITICAL"),
    "The level of the logger 'primal'.",
    optional=True,
)
log_compiles = _flag("log_compiles", False, bool, "Log every compilation.")
traceback_filtering = _flag(
    "traceback_filtering",
    "auto",
    _FILTERS,
    "Frames of this library in tracebacks: 'off' shows them, every other word hides them.",
)
show_internal_frames = _flag(
    "show_internal_frames", False, bool, "Show this library's frames in tracebacks."
)
pprint_use_color = _flag("pprint_use_color", True, bool, "Colour printed jaxprs on terminals.")

# Devices and engines.
cpu_engine = _flag(
    "cpu_engine", "cpu", ("xla", "cpu", "reference"), "The engine of `jit` on the CPU.", key=True
)
num_cpu_devices = _flag(
    "num_cpu_devices",
    -1,
    int,
    "How many virtual CPU devices to make; -1 leaves it to XLA_FLAGS, else 1.",
)
num_threads = _flag(
    "num_threads", -1, int, "Threads of a program on the cpu engine; -1: a thread per CPU allowed."
)
flush_subnormals = _flag(
    "flush_subnormals",
    False,
    bool,
    "Take numbers below the normal ones as zeros in programs on the cpu engine, as XLA does.",
    key=True,
)
default_device = _flag(
    "default_device", None, None, "Where arrays without a placement go.", key=True, optional=True
)
platforms = _flag(
    "platforms",
    None,
    str,
    "Platforms to start, in order of preference, e.g. 'cuda,cpu'.",
    optional=True,
)
platform_name = _flag("platform_name", "", str, "The platform of arrays without a placement.")
GUARDED = (
    "transfer_guard_host_to_device",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
)
transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host = [
    _flag(
        name,
        None,
        _GUARDS,
        f"What a transfer {name[15:].replace('_', ' ')} does: 'log' and 'disallow' concern those "
        "that nobody asked for, with '_explicit' all.",
        optional=True,
    )
    for name in GUARDED
]
transfer_guard = _flag(
    "transfer_guard",
    None,
    _GUARDS,
    "The three directions of `transfer_guard_…` at once.",
    optional=True,
    parts=GUARDED,
)
compilation_cache_dir = _flag(
    "compilation_cache_dir", None, str, "Folder of the persistent compilation cache.", optional=True
)
enable_compilation_cache = _flag(
    "enable_compilation_cache",
    True,
    bool,
    "Use the persistent compilation cache, if it has a folder.",
)
cache_dir = _flag(
    "cache_dir",
    None,
    str,
    "Folder of compiled kernels; None: `primal` in the user's cache folder. `compilation_cache_dir`"
    " comes first, and `enable_compilation_cache` switches both off.",
    optional=True,
)
compilation_cache_max_size = _flag(
    "compilation_cache_max_size",
    256 << 20,
    int,
    "Bytes of that folder; what was unused for longest goes. -1: no limit.",
)
for _name, _given in ACCEPTED.items():
    _flag(_name, _given, type(_given), "Accepted for programs of JAX; of no effect here.")

# What calls of jitted functions are remembered under; None while nothing may be.
# None keeps calls from what was remembered.
config.derive(
    "jit_key",
    lambda values: None
    if values["disable_jit"]
    or values["no_execution"]
    or any((values[name] or "allow") != "allow" for name in GUARDED)
    else values["trace_key"],
)


def disable_jit(disable: bool = True) -> Scope:
    """Run the bodies of jitted functions op by op inside a `with` block, in this thread only.

    >>> with disable_jit(), disable_jit(disable=False):
    ...     config.disable_jit
    False
    """
    return _disable_jit(disable)


def _set_level(level: str | None) -> None:
    import logging

    logging.getLogger("primal").setLevel(level or "NOTSET")


config.on_update("logging_level", _set_level)
