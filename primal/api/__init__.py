"""Function transformations on functions of trees."""

from primal.api.autodiff import (
    fwd_and_bwd,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from primal.api.jacobian import hessian, jacfwd, jacrev
from primal.api.jit import jit
from primal.api.placement import (
    block_until_ready,
    copy_to_host_async,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    live_arrays,
    local_device_count,
    local_devices,
    print_environment_info,
    process_count,
    process_index,
    process_indices,
)
from primal.api.staging import ShapeDtypeStruct, eval_shape, make_jaxpr
from primal.api.vectorize import vmap

__all__ = [
    "ShapeDtypeStruct",
    "block_until_ready",
    "copy_to_host_async",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "eval_shape",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "value_and_grad",
    "vjp",
    "vmap",
]
