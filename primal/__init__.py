"""Primal: array programs with composable transformations.

`import primal as jax, primal.numpy as jnp` runs a JAX program. Submodules that are not needed for
arrays themselves are loaded on first use.
"""

import gc as _gc
import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

_collecting = _gc.isenabled()
# A fifth of the time of the imports would go to collections that find nothing.
_gc.disable()

# NumPy's own imports are deep, and began beneath ours they crossed the end of a block of Python's
# stack a thousand times, which is a system call each way: 10 of 90 ms (CPython 3.11).
import numpy as _numpy  # noqa: F401

from primal import numpy
from primal import ops as _ops
from primal.base.caches import clear_all as clear_caches
from primal.base.config import (
    check_tracer_leaks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    explain_cache_misses,
    legacy_prng_key,
    log_compiles,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from primal.base.config import check_tracer_leaks as checking_leaks
from primal.base.dtypes import float0
from primal.base.later import Later as _Later
from primal.engines.protocol import Device
from primal.ir.trace import Array
from primal.ir.trace import aval_of as _aval_of
from primal.runtime.eager import install_program_runner as _install_program_runner
from primal.version import __version__, __version_info__

if _collecting:
    if not _gc.get_freeze_count():
        # Everything made so far goes to the oldest generation as it is. Switched on without this,
        # the collector looks through all of it at once, which takes 5 ms and finds nothing.
        _gc.freeze()
        _gc.unfreeze()
    _gc.enable()

if _TYPE_CHECKING:
    from primal import ad as ad
    from primal import ad_checkpoint as ad_checkpoint
    from primal import api_util as api_util
    from primal import checkpoint_policies as checkpoint_policies
    from primal import core as core
    from primal import custom_batching as custom_batching
    from primal import custom_derivatives as custom_derivatives
    from primal import debug as debug
    from primal import dlpack as dlpack
    from primal import dtypes as dtypes
    from primal import errors as errors
    from primal import example_libraries as example_libraries
    from primal import experimental as experimental
    from primal import extend as extend
    from primal import flatten_util as flatten_util
    from primal import image as image
    from primal import interpreters as interpreters
    from primal import lax as lax
    from primal import monitoring as monitoring
    from primal import nn as nn
    from primal import profiler as profiler
    from primal import random as random
    from primal import ref as ref
    from primal import scipy as scipy
    from primal import segments as _segments
    from primal import sharding as sharding
    from primal import stages as stages
    from primal import tree as tree
    from primal import tree_util as tree_util
    from primal import typing as typing
    from primal.api import (
        ShapeDtypeStruct,
        block_until_ready,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        device_put,
        devices,
        eval_shape,
        fwd_and_bwd,
        grad,
        hessian,
        jacfwd,
        jacrev,
        jit,
        jvp,
        linear_transpose,
        linearize,
        live_arrays,
        local_device_count,
        local_devices,
        make_jaxpr,
        print_environment_info,
        process_count,
        process_index,
        process_indices,
        value_and_grad,
        vjp,
        vmap,
    )
    from primal.api.callbacks import effects_barrier, pure_callback
    from primal.api.control import (
        checkpoint,
        closure_convert,
        custom_gradient,
        custom_jvp,
        custom_vjp,
        remat,
    )
    from primal.api.jacobian import jacrev as jacobian
    from primal.api.scopes import ensure_compile_time_eval, named_call, named_scope
    from primal.runtime.refs import Ref, empty_ref, free_ref, freeze, new_ref

    ops = _segments  # what is public of it

_operands = _Later("primal.api.operands")
_refs = _Later("primal.runtime.refs")
_programs = _Later("primal.runtime.programs")
# Loaded with the first program, it stands above eager execution, which runs programs with it.
_install_program_runner(lambda *call: _programs.run_closed(*call))
# Loaded with the first use of one of them: name -> module.
_LATER = {
    "Ref": "primal.runtime.refs",
    "effects_barrier": "primal.api.callbacks",
    "empty_ref": "primal.runtime.refs",
    "ensure_compile_time_eval": "primal.api.scopes",
    "free_ref": "primal.runtime.refs",
    "freeze": "primal.runtime.refs",
    "named_call": "primal.api.scopes",
    "named_scope": "primal.api.scopes",
    "new_ref": "primal.runtime.refs",
    "pure_callback": "primal.api.callbacks",
}
_API = frozenset({
    "ShapeDtypeStruct", "block_until_ready", "copy_to_host_async", "default_backend",
    "device_count", "device_get", "device_put", "devices", "eval_shape", "fwd_and_bwd", "grad",
    "hessian", "jacfwd", "jacrev", "jit", "jvp", "linear_transpose", "linearize", "live_arrays",
    "local_device_count", "local_devices", "make_jaxpr", "print_environment_info",
    "process_count", "process_index", "process_indices", "value_and_grad", "vjp", "vmap",
})  # fmt: skip
_CONTROL = frozenset({
    "checkpoint", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp", "remat",
})  # fmt: skip
_SUBMODULES = frozenset({
    "ad", "ad_checkpoint", "api_util", "checkpoint_policies", "core", "custom_batching",
    "custom_derivatives", "debug", "dlpack", "dtypes", "errors", "example_libraries",
    "experimental", "extend", "flatten_util", "image", "interpreters", "lax", "monitoring", "nn",
    "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "tree", "tree_util",
    "typing",
})  # fmt: skip


def typeof(x: _Any) -> _Any:
    """The abstract value of an array or a ShapeDtypeStruct: shape, dtype, weak type.

    >>> typeof(jnp.ones(3))
    ShapedArray(float32[3])
    """
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, _refs.Ref):
        return _refs.AbstractRef(x._aval)
    struct = isinstance(x, _operands.ShapeDtypeStruct)
    return _operands.abstract(x) if struct else _aval_of(x)


def _segment_reduction(name: str) -> _Any:
    """`primal.ops.segment_sum` and its kin, which are built far above the rooms in `ops/`."""
    # Who looks for `__wrapped__`, as doctest does, loads nothing.
    asked = not name.startswith("_")
    found = getattr(_importlib.import_module("primal.segments"), name, None) if asked else None
    if found is None:
        raise AttributeError(f"module 'primal.ops' has no attribute {name!r}")
    return found


def _names_of_ops() -> list[str]:
    return [*vars(_ops), *_importlib.import_module("primal.segments").NAMES]


_ops.__getattr__ = _segment_reduction  # type: ignore[method-assign]
_ops.__dir__ = _names_of_ops  # type: ignore[method-assign]


def __getattr__(name: str) -> _Any:
    if name in _API:
        home = "primal.api"
    elif name in _CONTROL:
        home = "primal.api.control"
    elif name in _LATER:
        home = _LATER[name]
    elif name == "jacobian":
        value = globals()[name] = __getattr__("jacrev")
        return value
    else:
        home = ""
    if home:
        # Kept: asking a module's `__getattr__` takes 20 times as long as finding an attribute.
        value = globals()[name] = getattr(_importlib.import_module(home), name)
        return value
    if name in _SUBMODULES:
        return _importlib.import_module(f"primal.{name}")
    raise AttributeError(f"module 'primal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LATER, *_API, *_CONTROL, "jacobian"})


__all__ = [
    "Array",
    "Device",
    "Ref",
    "ShapeDtypeStruct",
    "__version__",
    "__version_info__",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "effects_barrier",
    "ensure_compile_time_eval",
    "eval_shape",
    "explain_cache_misses",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "new_ref",
    "named_call",
    "named_scope",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "pure_callback",
    "remat",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]
