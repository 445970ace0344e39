"""Concrete arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from primal.base import dtypes, source
from primal.base.native import extension
from primal.engines.protocol import Device
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ir.trace import Array, Literal
from primal.runtime import devices, guards
from primal.runtime.sharding import Format, SingleDeviceSharding, row_major


class Placement:
    """Where an array lives when that is not simply the default CPU memory."""

    __slots__ = ("device", "committed")
    _interned: dict[tuple[Device, bool], Placement] = {}

    def __new__(cls, device: Device, committed: bool) -> Placement:
        key = (device, committed)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.device = device
            found.committed = committed
            found = cls._interned.setdefault(key, found)
        return found

    device: Device
    committed: bool


class Shard:
    """One part of an array: its device, its index in the whole, its data."""

    __slots__ = ("array", "device")

    def __init__(self, array: ArrayImpl, device: Device) -> None:
        self.array = array
        self.device = device

    @property
    def data(self) -> ArrayImpl:
        """The part as an array."""
        return self.array

    @property
    def index(self) -> tuple[slice, ...]:
        """The place of the part in the whole."""
        return (slice(None),) * self.array.aval.ndim

    @property
    def replica_id(self) -> int:
        """Which copy of the part this is."""
        return 0

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id=0)"


# The buffer protocol: before Python 3.12 it takes C to have it.
_Memory: Any = object if extension is None else extension.Memory


class ArrayImpl(Array, _Memory):
    """An array of values in the memory of a device.

    `host` is the NumPy array behind it, set whenever the array lives uncommitted in default CPU
    memory and has been read once: eager execution needs nothing else. Otherwise `buffer` is the
    engine's (a NumPy array for engines with host buffers), and `host` is None.
    """

    __slots__ = ("aval", "host", "buffer", "placement", "__weakref__")

    aval: Aval
    host: Any
    buffer: Any
    placement: Placement | None

    def __init__(
        self, aval: Aval, host: Any, buffer: Any = None, placement: Placement | None = None
    ) -> None:
        self.aval = aval
        self.host = host
        self.buffer = buffer
        self.placement = placement

    # Values.

    def numpy(self) -> Any:
        """The NumPy array behind this one, fetched on first use; not to be written to."""
        host = self.host
        if host is not None:
            return host
        buffer = self.buffer
        if buffer is None:
            raise self.deleted_error()
        if type(buffer) is np.ndarray:
            return buffer
        if buffer.is_deleted():
            raise self.deleted_error()
        if guards.ever and self.device.platform != "cpu":
            guards.device_to_host(self)
        host = devices.to_host(buffer, self.device)
        if self.placement is None:
            self.host = host
        return host

    def deleted_error(self) -> RuntimeError:
        """The error of using an array after it was deleted or donated."""
        return RuntimeError(
            "[array] expected an array with a buffer, got a deleted one: Array has been deleted "
            f"with shape={self.aval.str_short()}. Its buffer has been deleted or donated to a "
            "jitted function (donate_argnums); keep its result instead, or do not donate."
        )

    @property
    def __numpy_dtype__(self) -> Any:
        """What NumPy asks an array for that stands where a dtype should; deprecated."""
        warnings.warn(
            "Implicit conversion of an array to a dtype is deprecated; instead of dtype=x, give "
            "dtype=x.dtype.",
            DeprecationWarning,
            stacklevel=source.user_stacklevel(),
        )
        return self.aval.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self.numpy()
        if isinstance(self.aval.dtype, dtypes.KeyType):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                "primal.random.key_data(arr) if you wish to extract the underlying integer array."
            )
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError("[array] expected the array's dtype when copy=False.")
            return value.astype(dtype, order="C")
        if copy:
            return value.copy()
        view = value.view() if copy is False or value.flags.c_contiguous else value.copy()
        view.flags.writeable = False
        return view

    def _memory(self) -> Any:
        """What `memoryview` shows: the values row by row, not to be written to."""
        if self.is_deleted():
            raise BufferError(str(self.deleted_error()))
        dtype = self.aval.dtype
        if isinstance(dtype, dtypes.KeyType):
            raise TypeError("memoryview: a bytes-like object is required, not an array of keys")
        value = self.numpy()
        if value.dtype.isbuiltin != 1:
            raise BufferError(
                f"Buffers of type {dtype.name} are not supported by the Python buffer protocol."
            )
        view = value.view() if value.flags.c_contiguous else value.copy()
        view.flags.writeable = False
        return view

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(self._memory())

    def item(self, *args: Any) -> Any:
        """The Python scalar of an array with one element (or of the element at an index)."""
        return self.numpy().item(*args)

    def tolist(self) -> Any:
        """Nested Python lists of the values."""
        self._check_numeric("list")
        return self.numpy().tolist()

    def _check_numeric(self, name: str) -> None:
        if isinstance(self.aval.dtype, dtypes.KeyType):
            raise TypeError(
                f"[array] expected numbers to convert to {name}, got keys of dtype "
                f"{self.aval.dtype.name}. primal.random.key_data gives their words."
            )

    def tobytes(self, order: Any = "C") -> bytes:
        """The values as bytes."""
        return bytes(self.numpy().tobytes(order))

    def __bool__(self) -> bool:
        self._check_numeric("bool")
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(_scalar(self, "int").item())

    def __float__(self) -> float:
        return float(_scalar(self, "float"))

    def __complex__(self) -> complex:
        return complex(_scalar(self, "complex"))

    def __index__(self) -> int:
        if not dtypes.issubdtype(self.aval.dtype, np.integer) or self.aval.ndim:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.numpy())

    __hash__ = None  # type: ignore[assignment]

    def __format__(self, spec: str) -> str:
        if isinstance(self.aval.dtype, dtypes.KeyType):
            return object.__format__(self, spec)
        value = self.numpy()
        return format(value[()] if self.aval.ndim == 0 else value, spec)

    def __iter__(self) -> Iterator[Any]:
        if self.aval.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        rows = self.numpy()
        aval = Aval(self.aval.shape[1:], self.aval.dtype, self.aval.weak_type)
        if self.placement is not None:
            place = self.placement
            return iter([ArrayImpl(aval, None, np.asarray(row), place) for row in rows])
        return iter([boxed(aval, row) for row in rows])

    # Lifetime and placement.

    @property
    def device(self) -> Any:
        """The device the array lives on."""
        return devices.default() if self.placement is None else self.placement.device

    @property
    def committed(self) -> bool:
        """Whether computations with the array must run on its device."""
        return self.placement is not None and self.placement.committed

    # The name that programs for JAX read.
    _committed = committed

    def platform(self) -> str:
        """The platform of the device."""
        return str(self.device.platform)

    def clone(self) -> ArrayImpl:
        """Another array of the same values, in the same memory."""
        if self.is_deleted():
            raise self.deleted_error()
        return ArrayImpl(self.aval, self.host, self.buffer, self.placement)

    @property
    def format(self) -> Format:
        """How the array lies in memory, and on devices."""
        return row_major(self.aval.ndim, self.device)

    @property
    def sharding(self) -> SingleDeviceSharding:
        """How the array lies on devices."""
        return SingleDeviceSharding(self.device)

    def devices(self) -> set[Device]:
        """The devices that hold a part of the array."""
        return {self.device}

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read all of the array."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of the array holds all of it."""
        return True

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array that this process can read."""
        return [Shard(self, self.device)]

    @property
    def global_shards(self) -> list[Shard]:
        """All parts of the array."""
        return [Shard(self, self.device)]

    def addressable_data(self, index: int) -> ArrayImpl:
        """One of the addressable parts."""
        return self.addressable_shards[index].data

    def on_device_size_in_bytes(self) -> int:
        """The memory the values take."""
        return self.aval.size * self.aval.dtype.itemsize

    def unsafe_buffer_pointer(self) -> int:
        """The address of the values, row by row; they must not be written to."""
        if self.placement is not None and self.placement.device.platform != "cpu":
            return self.buffer.unsafe_buffer_pointer()
        value = self.numpy()
        if not value.flags.c_contiguous:
            # A view, as transposes, reversals and equal numbers are: who reads by an address
            # knows no strides, and read past its end.
            value = value.copy()
            if self.host is None:
                self.buffer = value
            else:
                self.host = value
        return value.ctypes.data

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if isinstance(self.aval.dtype, dtypes.KeyType):
            raise BufferError(
                f"[dlpack] expected an array of numbers, got random keys ({self.aval}): pass what "
                "random.key_data makes of them."
            )
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(
                f"[dlpack] expected the array's own device {self.__dlpack_device__()}, got "
                f"{dl_device}. Move the array first, with device_put."
            )
        if self.placement is not None and self.placement.device.platform != "cpu":
            return devices.export_dlpack(self.buffer, self.device, stream, max_version)
        value = np.asarray(self.numpy(), order="C")
        if dtypes.kind_of(self.aval.dtype) not in "biufc" or value.dtype.isbuiltin != 1:
            buffer = devices.to_xla(value, self.device)
            return devices.export_dlpack(buffer, self.device, stream, max_version)
        # Arrays are immutable: a reader that cannot be told so gets values of its own.
        shared = max_version is not None and max_version[0] >= 1 and not copy
        view = value.view() if shared else value.copy()
        if shared:
            view.flags.writeable = False
            return view.__dlpack__(stream=None, max_version=max_version)
        return view.__dlpack__(stream=None)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        kind = {"cpu": 1, "gpu": 2, "cuda": 2}.get(device.platform)
        if kind is None:
            raise BufferError(f"[dlpack] expected a CPU or GPU array, got one on {device!r}.")
        return kind, 0 if kind == 1 else device.id

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        buffer = self.buffer
        return self.host is None and (buffer is None or devices.buffer_deleted(buffer))

    def delete(self) -> None:
        """Free the memory now; any later use is an error."""
        self.host = None
        self.buffer = None

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        if self.is_deleted():
            raise self.deleted_error()
        return devices.is_ready(self.buffer)

    def block_until_ready(self) -> ArrayImpl:
        """Wait until the value has been computed; the array itself."""
        if self.host is None:
            if self.is_deleted():
                raise self.deleted_error()
            devices.wait(self.buffer, self.device)
        return self

    def copy_to_host_async(self) -> None:
        """Start fetching the value to host memory."""
        self.numpy()

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array({self.aval.str_short()}, deleted)"
        return format_array(self)

    def __str__(self) -> str:
        if isinstance(self.aval.dtype, dtypes.KeyType):
            return repr(self)
        return str(self.numpy())

    def __copy__(self) -> ArrayImpl:
        return from_numpy(np.array(self.numpy()), self.aval, self.placement)

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return self.__copy__()

    def __reduce__(self) -> Any:
        # Placement is not kept: the reader's devices need not be the writer's.
        return _restore, (np.array(self.numpy()), self.aval)


def _scalar(x: ArrayImpl, name: str) -> Any:
    x._check_numeric(name)
    if x.aval.ndim != 0:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got arr.ndim={x.aval.ndim}"
        )
    return x.numpy()


def _restore(value: Any, aval: Aval) -> ArrayImpl:
    return from_numpy(value, aval)


boxed: Callable[[Any, Any], ArrayImpl] = (
    (lambda aval, value: ArrayImpl(aval, np.asarray(value)))
    if extension is None
    else extension.boxed
)
"""boxed(aval, value): NumPy's result as an array of the default CPU memory."""


def from_numpy(value: Any, aval: Aval, placement: Placement | None = None) -> ArrayImpl:
    """An array over a NumPy array of the aval's shape and dtype, which nobody else writes to."""
    if placement is None and devices.default_is_host():
        return ArrayImpl(aval, value)
    if placement is None:
        placement = Placement(devices.default(), False)
    buffer = devices.put_on(value, placement.device)
    return ArrayImpl(aval, None, buffer, placement)


def from_literal(x: Any) -> Any:
    """A Literal as an array, which programs being recorded know; everything else as it is."""
    if type(x) is not Literal:
        return x
    array = from_numpy(np.asarray(x.val), x.aval)
    trace = state.trace
    if trace.parent is not None:
        trace.know(array, x)
    return array


def format_array(x: ArrayImpl) -> str:
    """The printed form, as in `Array([1., 2.], dtype=float32)`."""
    dtype = x.aval.dtype
    if isinstance(dtype, dtypes.KeyType):
        words = np.array(x.numpy(), order="C")[..., None].view(np.uint32)
        return f"Array({x.aval.shape}, dtype={dtype.name}) overlaying:\n{words}"
    weak = ", weak_type=True" if x.aval.weak_type else ""
    tail = f"dtype={dtype.name}{weak})"
    prefix = "Array("
    width = np.get_printoptions()["linewidth"]
    if x.aval.size == 0:
        body = f"[], shape={x.aval.shape}"
    else:
        body = np.array2string(
            x.numpy(), separator=", ", prefix=prefix, suffix=",", max_line_width=width
        )
    # Where the dtype does not fit the line, the literature's form is a wide gap, and no new line.
    last_line = len(body) - body.rfind("\n") + 1
    separator = " " * len(prefix) if last_line + len(tail) + 1 > width else " "
    return f"{prefix}{body},{separator}{tail}"
