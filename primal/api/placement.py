"""Devices and moving values: device_put, device_get, block_until_ready, what there is."""

from __future__ import annotations

import gc
import platform as host_platform
import sys
from typing import Any, TypeVar, overload

import numpy as np

from primal.base import dtypes
from primal.base.config import config
from primal.base.pytree import broadcast_to_spec, flatten, tree_leaves, tree_map, unflatten
from primal.base.pytree.prefix import is_none
from primal.engines.protocol import Device
from primal.ir.trace import Array, Arrays, Tracer
from primal.ops.choose import copy
from primal.runtime import devices as runtime_devices
from primal.runtime import guards
from primal.runtime.array import ArrayImpl, Placement
from primal.runtime.eager import as_array
from primal.runtime.sharding import SingleDeviceSharding

T = TypeVar("T")


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform; by default of the default one.

    >>> devices("cpu")[0]
    CpuDevice(id=0)
    """
    return list(runtime_devices.devices(backend))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process. Raises ValueError for a process that does not exist.

    >>> set(primal.local_devices()) <= set(primal.devices())
    True
    """
    wanted = 0 if process_index is None else process_index
    found = [d for d in devices(backend) if d.process_index == wanted]
    if not found and wanted not in process_indices(backend):
        raise ValueError(
            f"[local_devices] expected a process among {process_indices(backend)}, got "
            f"{wanted}: Unknown process_index {wanted}."
        )
    return found


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes.

    >>> primal.device_count() == len(primal.devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    >>> primal.local_device_count() == len(primal.local_devices())
    True
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The index of this process among those that compute together.

    >>> primal.process_index()
    0
    """
    return 0


def process_indices(backend: str | None = None) -> list[int]:
    """The indices of the processes that compute together, in order.

    >>> primal.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together.

    >>> primal.process_count()
    1
    """
    return 1


def default_backend() -> str:
    """The platform of arrays without a placement: cpu, gpu or tpu.

    >>> primal.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return runtime_devices.devices()[0].platform


@overload
def device_put(
    x: Arrays,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Arrays: ...
@overload
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any: ...
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Put the arrays of a tree on a device, where computations with them will then run.

    `device`: a Device, a SingleDeviceSharding, None (leave them where they are), or a tree of
    these, a prefix of x. Arrays that are there already are returned themselves unless
    `may_alias=False` asks for copies. NumPy values are copied, so that writing to them later
    changes nothing. ValueError for other devices, and for `donate` together with `may_alias`.

    >>> device_put(np.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if donate and may_alias:
        raise ValueError(
            "[device_put] expected donate or may_alias, got both: may_alias and donate cannot be "
            "True at the same time."
        )
    copied = may_alias is False
    if device is None or isinstance(device, Device | SingleDeviceSharding):
        target = _device_of(device)
        return tree_map(lambda leaf: _put(leaf, target, donate, copied), x)
    for leaf in tree_leaves(device, is_leaf=is_none):
        _device_of(leaf)  # what no device can be is told before structures that differ
    leaves, spec = flatten(x)
    places = broadcast_to_spec(device, spec, "device_put", "x", is_leaf=is_none)
    pairs = zip(leaves, places, strict=True)
    return unflatten(spec, [_put(leaf, _device_of(d), donate, copied) for leaf, d in pairs])


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays of a tree, where `shardings`, one or a prefix of the tree, says they lie.

    Outside of programs arrays are put there. A program runs on one device: inside, a sharding says
    that the value lies on it, and has to name the default device. ValueError for others, and None.

    >>> where = primal.sharding.SingleDeviceSharding(primal.devices()[0])
    >>> primal.jit(lambda x: with_sharding_constraint(x + 1, where))(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    leaves, spec = flatten(x)
    wanted = broadcast_to_spec(shardings, spec, "with_sharding_constraint", "x", is_leaf=is_none)
    out = []
    for leaf, sharding in zip(leaves, wanted, strict=True):
        if not isinstance(sharding, SingleDeviceSharding):
            raise ValueError(
                "[with_sharding_constraint] expected a SingleDeviceSharding for every array, got "
                f"{sharding!r}: None and partition specs are not allowed, as there is no mesh."
            )
        if not isinstance(leaf, Tracer):
            out.append(device_put(leaf, sharding))
            continue
        device = runtime_devices.default()
        if sharding.device is not device:
            raise ValueError(
                "[with_sharding_constraint] expected the device on which the program runs, "
                f"{device!r}, got {sharding!r}: incompatible devices. Put the arguments there."
            )
        out.append(leaf)
    return unflatten(spec, out)


def _device_of(device: Any) -> Device | None:
    if device is None or isinstance(device, Device):
        return device
    if isinstance(device, SingleDeviceSharding):
        return device.device
    raise ValueError(
        f"[device_put] expected a Device, a SingleDeviceSharding, None or a tree of them, got "
        f"{device!r} of type {type(device)}: Received invalid value. primal.devices() lists the "
        "devices."
    )


def _put(x: Any, device: Device | None, donate: bool, copied: bool) -> Any:
    if isinstance(x, Tracer):
        return copy(x)
    if guards.ever and not isinstance(x, Array):
        guards.host_to_device(x, explicit=True)
    array: ArrayImpl = x if isinstance(x, Array) else as_array(x)  # type: ignore[assignment]
    here = array.device
    place = array.placement
    stays = device is None or (here is device and place is not None and place.committed)
    if stays and not copied:
        if array.is_deleted():
            raise array.deleted_error()
        return array
    if copied and array is x and (device is None or here is device):
        fresh = runtime_devices.put_on(array.numpy().copy(), here)
        if stays and place is None:
            return ArrayImpl(array.aval, fresh)
        return ArrayImpl(array.aval, None, fresh, place if stays else Placement(here, True))
    assert device is not None
    if here is device:
        buffer = array.buffer if array.buffer is not None else array.host
        if buffer is None:
            raise array.deleted_error()
    else:
        if guards.ever and isinstance(x, Array):
            guards.device_to_device(array, device)
        with guards.reading():
            buffer = runtime_devices.put_on(array.numpy(), device)
    moved = ArrayImpl(array.aval, None, buffer, Placement(device, True))
    if donate and here is not device:
        array.delete()
    return moved


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays; random keys, which NumPy has not, stay keys.

    >>> device_get({"a": device_put(np.ones(2))})
    {'a': array([1., 1.], dtype=float32)}
    """
    with guards.reading():
        return tree_map(_get, x)


def _get(leaf: Any) -> Any:
    # A traced value stays one: the values come where the results do.
    if not isinstance(leaf, Array | np.generic) or isinstance(leaf, Tracer):
        return leaf
    return leaf if dtypes.issubdtype(leaf.dtype, dtypes.prng_key) else np.asarray(leaf)


def block_until_ready(x: T) -> T:
    """Wait until all arrays of a tree have been computed; the tree itself.

    >>> primal.block_until_ready({"a": jnp.arange(2)})
    {'a': Array([0, 1], dtype=int32)}
    """
    for leaf in tree_leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start fetching the arrays of a tree to host memory.

    >>> primal.copy_to_host_async(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    for leaf in tree_leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that exist and have not been deleted.

    >>> x = jnp.arange(3.0) + 1
    >>> any(y is x for y in primal.live_arrays())
    True
    """
    return [
        x
        for x in gc.get_objects()
        if type(x) is ArrayImpl
        and not x.is_deleted()
        and (platform is None or x.device.platform == platform)
    ]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions of what matters in a bug report, and the devices.

    >>> "numpy" in primal.print_environment_info(return_string=True)
    True
    """
    versions = []
    for name in ("primal", "numpy", "scipy", "ml_dtypes", "jaxlib", "llvmlite"):
        module = sys.modules.get(name)
        version = getattr(module, "__version__", None) if module else None
        versions.append(f"{name + ':':<11}{version or 'not loaded'}")
    text = "\n".join(
        [
            *versions,
            f"python:    {sys.version}",
            f"device info: {devices()[0].device_kind}-{device_count()}, "
            f"{local_device_count()} local devices",
            f"process_count: {process_count()}",
            f"platform: {host_platform.uname()}",
            f"engine of jit on the CPU: {config.cpu_engine}",
        ]
    )
    if return_string:
        return text
    print(text)
    return None
