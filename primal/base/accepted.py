"""Settings of JAX that programs make and nothing here depends on: accepted, kept, checked by type.

They concern XLA's optimiser, JAX's own caches and locations, or a choice between two ways of which
this library has one. Settings that would change results are no part of it.
"""

from __future__ import annotations

from typing import Any

ACCEPTED: dict[str, Any] = {
    # Programs run when they are called, unless an accelerator runs them.
    "cpu_enable_async_dispatch": True,
    # Kernels are kept on disk whatever they took to compile, and however small they are.
    "persistent_cache_enable_xla_caches": "",
    "persistent_cache_min_compile_time_secs": 0.0,
    "persistent_cache_min_entry_size_bytes": 0,
    "raise_persistent_cache_errors": False,
    # XLA's optimiser and partitioner.
    "compiler_enable_remat_pass": True,
    "exec_time_optimization_effort": 0.0,
    "memory_fitting_effort": 0.0,
    "memory_fitting_level": "O2",
    "optimization_level": "UNKNOWN",
    "use_shardy_partitioner": True,
    # Locations and warnings.
    "captured_constants_report_frames": 0,
    "captured_constants_warn_bytes": 2_000_000_000,
    "include_full_tracebacks_in_locations": True,
    "traceback_in_locations_limit": 10,
    "tracer_error_num_traceback_frames": 5,
    # There is one way here.
    "mutable_array_checks": True,
    "softmax_custom_jvp": True,
    "use_direct_linearize": True,
}
