"""The settings there are, each with its default, its legal values and its meaning.

How they are set and read is told in `settings`.
"""

from __future__ import annotations

from typing import Any

from primal.base.accepted import ACCEPTED
from primal.base.settings import (
    Config,
    Flag,
    Scope,
    Settings,
    config,
    declare,
    settings,
    settings_variable,
)

__all__ = ["Config", "Flag", "Scope", "Settings", "config", "settings", "settings_variable"]


def _flag(name: str, default: Any, kind: Any, doc: str, **options: Any) -> Flag:
    return declare(Flag(name, default, kind, doc, **options))


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
_flag(
    "explicit_x64_dtypes",
    "warn",
    ("warn", "error"),
    "What a 64-bit dtype that is asked for comes to without enable_x64: 32 bits, or an error.",
    key=True,
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
_flag("random_seed_offset", 0, int, "A number that is added to the seeds of all keys.", key=True)
_flag(
    "high_dynamic_range_gumbel",
    False,
    bool,
    "Gumbel numbers, and choices by them, have the mode 'high' where none is given.",
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
_flag(
    "check_static_indices",
    False,
    bool,
    "Raise IndexError where an integer known while tracing is read out of bounds.",
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
    "num_threads", -1, int, "Threads of a program on the cpu engine, or a sum; -1: one per CPU."
)
flush_subnormals = _flag(
    "flush_subnormals",
    False,
    bool,
    "Take numbers below the normal ones as zeros in programs on the cpu engine, as XLA does.",
    key=True,
)


def _names_device(value: Any) -> bool:
    """a device or the name of a platform"""
    # Devices are a class of the runtime, which imports this module.
    return isinstance(value, str) or hasattr(value, "platform")


default_device = _flag(
    "default_device",
    None,
    _names_device,
    "Where arrays without a placement go.",
    key=True,
    optional=True,
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

# What calls of jitted functions are remembered under; None keeps them from what was remembered.
# This publishes the settings above, too.
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
