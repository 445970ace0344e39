"""Settings of JAX that programs make and nothing here depends on: accepted, kept, checked by type.

They concern XLA's optimiser, accelerators that are not there, JAX's own caches and locations, or a
choice between two ways of which this library has one. Settings that would change results, or write
something, are no part of it.
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
    "compilation_cache_check_contents": False,
    "compilation_cache_expect_pgle": False,
    "compilation_cache_include_metadata_in_key": False,
    "remove_custom_partitioning_ptr_from_cache_key": False,
    "share_binary_between_hosts": False,
    "share_binary_between_hosts_timeout_ms": 1_200_000,
    # XLA's optimiser and partitioner.
    "compiler_detailed_logging_min_ops": 10,
    "compiler_enable_remat_pass": True,
    "disable_most_optimizations": False,
    "enable_pgle": False,
    "exec_time_optimization_effort": 0.0,
    "memory_fitting_effort": 0.0,
    "memory_fitting_level": "O2",
    "optimization_level": "UNKNOWN",
    "pgle_aggregation_percentile": 90,
    "pgle_profiling_runs": 3,
    "xla_profile_version": 0,
    "use_shardy_partitioner": True,
    # Accelerators, and several hosts.
    "bcoo_cusparse_lowering": False,
    "cpu_collectives_implementation": "gloo",
    "cuda_visible_devices": "all",
    "experimental_unsafe_xla_runtime_errors": False,
    "ragged_dot_use_ragged_dot_instruction": True,
    "rocm_visible_devices": "all",
    "threefry_gpu_kernel_lowering": False,
    "use_magma": "auto",
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
