"""A PJRT client: devices, buffers, and executables made from StableHLO text."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.base import dtype_table, dtypes
from primal.base.errors import CallbackError
from primal.engines import protocol
from primal.engines.xla import _jaxlib
from primal.engines.xla.builder.types import element, physical
from primal.ir.avals import Aval

Buffer = Any  # jaxlib's array: one device's memory, with an aval

_MAGIC = b"PRIMALXLA1"


class Device(protocol.Device):
    """One device of a client."""

    __slots__ = ("client", "raw", "placement")

    def __init__(self, client: Client, raw: Any) -> None:
        super().__init__(raw.platform, raw.id, raw.process_index, raw.device_kind)
        self.client = client
        self.raw = raw
        self.placement = client.bindings.placement(raw)

    @property
    def local_hardware_id(self) -> int:
        """The device's number on its own host."""
        found = self.raw.local_hardware_id
        return self.id if found is None else int(found)

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use and the like; None on the CPU, which does not count."""
        return self.raw.memory_stats()


class Signature(NamedTuple):
    """What an executable takes and gives, and what must be known to load it again."""

    inputs: tuple[Aval, ...]
    outputs: tuple[Aval, ...]
    donated: tuple[bool, ...] = ()
    custom_targets: frozenset[str] = frozenset()


class Client:
    """All devices of one platform, and what can be done on them.

    `num_devices` asks for that many virtual devices on the CPU.
    """

    def __init__(self, platform: str, num_devices: int | None = None, **options: Any) -> None:
        self.bindings = _jaxlib.load()
        self.raw = _jaxlib.make_client(platform, num_devices, **options)
        self.platform = "cuda" if platform == "gpu" else platform
        self.platform_version: str = self.raw.platform_version
        self.process_index: int = self.raw.process_index()
        self._by_raw = {id(d): Device(self, d) for d in self.raw.devices()}
        self.devices = list(self._by_raw.values())
        self.local_devices = [self._by_raw[id(d)] for d in self.raw.local_devices()]

    # Buffers.

    def put(self, x: Any, device: Device, immutable: bool = False) -> Buffer:
        """A NumPy array on a device, as a buffer.

        With `immutable` the caller promises that nobody writes to x any more: the CPU then borrows
        its memory if that is 64-byte aligned and contiguous. Raises TypeError for arrays of no
        numeric dtype.
        """
        if x.__class__ is np.ndarray and x.dtype in _PLAIN:
            aval = Aval(x.shape, x.dtype)
        else:
            x, aval = _host_array(x)
        return self.bindings.put(x, aval, device.placement, device.raw, immutable)

    def get(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The buffer's contents as a read-only array, without a copy where it is on the host."""
        if buffer.is_deleted():
            raise deleted(buffer)
        try:
            return buffer._single_device_array_to_np_array_did_copy()[0]
        except self.bindings.Error as e:
            raise _jaxlib.wrapped(e) from None

    def copy(self, buffer: Buffer, device: Device) -> Buffer:
        """The buffer on another device; the same buffer when it is there already."""
        if buffer.is_deleted():
            raise deleted(buffer)
        if buffer._sharding is device.placement:
            return buffer
        try:
            return self.bindings.put(buffer, buffer.aval, device.placement, device.raw, False)
        except self.bindings.Error as e:
            raise _jaxlib.wrapped(e) from None

    def device_of(self, buffer: Buffer) -> Device:
        """Where the buffer is."""
        found = self._by_raw.get(id(buffer._sharding._internal_device_list[0]))
        if found is None:
            raise ValueError("[xla] expected a buffer of this client, got one of another client.")
        return found

    def block_until_ready(self, buffers: Sequence[Buffer]) -> None:
        """Wait until the buffers hold their values; errors of the runs that make them come here."""
        for buffer in buffers:
            if buffer.is_deleted():
                raise deleted(buffer)
        try:
            self.bindings.raw.batched_block_until_ready(list(buffers))
        except self.bindings.Error as e:
            raise _jaxlib.wrapped(e) from None

    def is_ready(self, buffer: Buffer) -> bool:
        """Whether the value is there."""
        if buffer.is_deleted():
            raise deleted(buffer)
        return buffer.is_ready()

    def pointer(self, buffer: Buffer) -> int:
        """The address of the buffer's memory on its device."""
        if buffer.is_deleted():
            raise deleted(buffer)
        return buffer.unsafe_buffer_pointer()

    def to_dlpack(self, buffer: Buffer, stream: Any = None, max_version: Any = None) -> Any:
        """A DLPack capsule sharing the buffer's memory."""
        if buffer.is_deleted():
            raise deleted(buffer)
        try:
            return self.bindings.export_dlpack(buffer, stream, max_version)
        except self.bindings.Error as e:
            raise TypeError(f"[dlpack] expected a dtype DLPack knows: {e}") from None

    def from_dlpack(
        self, source: Any, device: Device, stream: Any = None, copy: bool | None = None
    ) -> Buffer:
        """A buffer over the memory of any object with `__dlpack__`, copied where it must be."""
        if copy:
            # jaxlib takes copy=True for None and aliases.
            return self.put(np.from_dlpack(source), device)
        try:
            buffer = self.bindings.import_dlpack(source, device.raw, stream, copy)
        except self.bindings.Error as e:
            if copy is False:
                raise ValueError(f"[dlpack] expected memory usable without a copy: {e}") from None
            # Strided memory, which PJRT refuses and NumPy can walk.
            return self.put(np.from_dlpack(source), device)
        x = self.get(buffer)
        rank = x.ndim
        order = "{" + ",".join([str(d) for d in range(rank - 1, -1, -1)]) + "}"
        # A transposed operand is accepted with its layout, which execution then ignores.
        if rank > 1 and not str(buffer._pjrt_layout).startswith(order):
            if copy is False:
                raise ValueError(
                    "[dlpack] expected row-major memory when copy=False, got layout "
                    f"{buffer._pjrt_layout}. Pass copy=None, which allows a copy."
                )
            return self.put(x, device)
        return buffer._rewrap_with_aval_and_sharding(Aval(x.shape, x.dtype), device.placement)

    # Programs.

    def compile(
        self,
        text: str,
        signature: Signature,
        device: Device,
        flags: Sequence[tuple[str, Any]] = (),
        callbacks: Sequence[tuple[Callable[..., Any], tuple[Aval, ...]]] = (),
    ) -> Executable:
        """Compile a module whose entry is `@main`.

        `flags` are XLA's debug options by name. Raises JaxRuntimeError with XLA's text.
        """
        self._prepare(signature)
        options = self.bindings.compile_options(device.raw, flags)
        # Of calls in many threads; what nobody asked for is forgotten.
        failures: deque[BaseException] = deque(maxlen=16)
        module: Any = text
        args: tuple[Any, ...] = ()
        if callbacks:
            # Callables are accepted beside a parsed module only.
            module = self.bindings.parse(text)
            args = ([_checked(f, outs, failures) for f, outs in callbacks],)
        try:
            raw = self.raw.compile_and_load(
                module, self.bindings.device_list([device.raw]), options, *args
            )
        except self.bindings.Error as e:
            raise _jaxlib.wrapped(e) from None
        return Executable(self, raw, signature, device, text, failures)

    def load(self, data: bytes, device: Device) -> Executable:
        """An executable from `Executable.serialize`; only what this very set-up wrote.

        XLA loads what another version or machine compiled without a word and runs it wrongly, so
        the bytes carry a mark of the set-up. Raises ValueError when it differs, and for rubbish.
        Never load bytes from a source you do not trust: they are code.
        """
        head, text, body = _unpack(data)
        if head["setup"] != self.setup():
            raise ValueError(
                "[xla] expected an executable compiled by this jaxlib, on this kind of machine, "
                "with these XLA_FLAGS, got one of another set-up. Compile the program again."
            )
        signature = Signature(
            tuple([_aval(a) for a in head["inputs"]]),
            tuple([_aval(a) for a in head["outputs"]]),
            tuple(head["donated"]),
            frozenset(head["targets"]),
        )
        self._prepare(signature)
        options = self.bindings.compile_options(device.raw)
        try:
            raw = self.raw.deserialize_executable(
                body, self.bindings.device_list([device.raw]), options
            )
        except self.bindings.Error as e:
            raise _jaxlib.wrapped(e) from None
        return Executable(self, raw, signature, device, text, deque())

    def _prepare(self, signature: Signature) -> None:
        if self.platform == "cpu" and any(
            t.startswith("lapack_") for t in signature.custom_targets
        ):
            assert self.bindings.lapack

    def setup(self) -> str:
        """A digest of all that compiled code depends on besides the program."""
        import hashlib

        raw = self.bindings.xc
        parts = (
            self.bindings.version,
            raw._version,
            self.platform,
            self.platform_version,
            sorted({d.device_kind for d in self.devices}),
            os.environ.get("XLA_FLAGS", ""),
            _cpu_features() if self.platform == "cpu" else "",
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()


class Executable:
    """A compiled program on one device.

    `execute(buffers)` runs it; `donated` inputs are gone afterwards. `text` is its StableHLO.
    """

    __slots__ = (
        "client", "raw", "signature", "device", "stablehlo",
        "_run", "_avals", "_handlers", "_error", "_failures", "_constants", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        client: Client,
        raw: Any,
        signature: Signature,
        device: Device,
        stablehlo: str,
        failures: deque[BaseException],
    ) -> None:
        self.client = client
        self.raw = raw
        self.signature = signature
        self.device = device
        self.stablehlo = stablehlo
        self._run = raw.execute_sharded
        self._avals = [stored(a) for a in signature.inputs]
        self._error = client.bindings.Error
        self._failures = failures
        self._constants: list[Buffer] = []
        place, handler = device.placement, client.bindings.handler
        self._handlers = [handler(stored(a), place) for a in signature.outputs]

    def bind(self, constants: Sequence[Buffer]) -> None:
        """Pass these buffers after the caller's arguments in every run from now on."""
        bound = list(constants)
        run = self._run
        self._run = lambda buffers: run([*buffers, *bound])
        self._avals = self._avals[: len(self._avals) - len(bound)]
        self._constants = bound

    @property
    def donated(self) -> tuple[bool, ...]:
        """Which inputs give their memory to an output."""
        return self.signature.donated

    def execute(self, buffers: list[Buffer]) -> list[Buffer]:
        """Run on buffers of the input avals, on this device; one buffer per output.

        Raises TypeError for buffers that do not fit, RuntimeError for deleted ones and
        JaxRuntimeError for what XLA reports.
        """
        # Avals are interned, so this compares pointers: 0.1 us that XLA does not spend, which
        # would run int32 bits as float32.
        if [b.aval for b in buffers] != self._avals:
            raise self._misfit(buffers)
        try:
            return self._run(buffers).consume_with_handlers(self._handlers)
        except self._error as e:
            failure = self._failure(e, buffers)
            raise failure from failure.__cause__

    def _misfit(self, buffers: Sequence[Buffer]) -> Exception:
        expected = self._avals
        if len(buffers) != len(expected):
            return TypeError(
                f"[execute] expected {len(expected)} arguments, got {len(buffers)}. Pass one "
                "buffer for each input of the compiled program."
            )
        for i, (buffer, aval) in enumerate(zip(buffers, expected, strict=True)):
            got = buffer.aval
            if got is not aval:
                return TypeError(
                    f"[execute] expected argument {i} to be {aval}, got {got}. Convert or reshape "
                    "it, or compile for these types."
                )
        return TypeError("[execute] expected arguments that fit.")

    def _failure(self, error: RuntimeError, buffers: Sequence[Buffer]) -> BaseException:
        for buffer in buffers:
            if buffer.is_deleted():
                return deleted(buffer)
        made: Exception = _jaxlib.wrapped(error)
        failures = list(self._failures)
        if failures:
            # XLA's text tells this call's failure from those of other threads.
            text = str(error)
            first = next((f for f in failures if str(f) in text), failures[-1])
            with contextlib.suppress(ValueError):  # two of one text, and another took this one
                self._failures.remove(first)
            if isinstance(first, CallbackError) or not isinstance(first, Exception):
                return first  # it says more than XLA's text, and is what other engines raise
            made.__cause__ = first
        return made

    def as_text(self) -> str:
        """The program as XLA optimised it."""
        return self.raw.get_hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: flops, transcendentals, bytes accessed."""
        return dict(self.raw.cost_analysis())

    def memory_analysis(self) -> Any:
        """Sizes in bytes, as attributes such as `temp_size_in_bytes`."""
        return self.raw.get_compiled_memory_stats()

    def serialize(self) -> bytes:
        """Bytes for `Client.load`. Raises ValueError for programs with host callbacks."""
        if "xla_ffi_python_cpu_callback" in self.signature.custom_targets or (
            "xla_ffi_python_gpu_callback" in self.signature.custom_targets
        ):
            raise ValueError(
                "[serialize] expected a program without host callbacks: a Python function cannot "
                "be stored with it."
            )
        if self._constants:
            raise ValueError(
                "[serialize] expected a program whose big constants are arguments, got one that "
                "holds them as buffers. Hoist the constants of the jaxpr before compiling."
            )
        head = {
            "setup": self.client.setup(),
            "inputs": [_spell(a) for a in self.signature.inputs],
            "outputs": [_spell(a) for a in self.signature.outputs],
            "donated": self.signature.donated,
            "targets": sorted(self.signature.custom_targets),
        }
        return _pack(head, self.stablehlo, self.raw.serialize())


_stored: dict[Aval, Aval] = {}


def stored(aval: Aval) -> Aval:
    """The aval of a buffer: strong, unsharded, of the physical dtype."""
    found = _stored.get(aval)
    if found is None:
        found = _stored[aval] = Aval(aval.shape, physical(aval.dtype))
    return found


def deleted(buffer: Buffer) -> RuntimeError:
    """The error for the use of a buffer that was deleted or donated."""
    return RuntimeError(
        "[array] expected an array with a buffer, got a deleted one: Array has been deleted with "
        f"shape={buffer.aval.str_short()}."
    )


# What XLA reads as it lies. Big-endian dtypes are not equal to these.
_PLAIN = frozenset(np.dtype(c) for c in "?bhilqBHILQefdFD")


def _host_array(x: Any) -> tuple[np.ndarray[Any, Any], Aval]:
    if not isinstance(x, np.ndarray):
        x = np.asarray(x)
    dtype = x.dtype
    if not dtype.isnative:
        x = x.astype(dtype.newbyteorder("="))  # XLA would read the bytes as they lie.
        dtype = x.dtype
    if dtype == dtypes.float0:
        x, dtype = np.zeros(x.shape, bool), np.dtype(bool)
    elif dtype not in dtype_table.KIND:
        raise TypeError(dtype_table.unsupported("put", dtype))
    else:
        element(dtype)  # Raises for the few dtypes that XLA lacks.
    if type(x) is not np.ndarray:
        x = np.asarray(x)  # A subclass (matrix, masked array, memmap) as its data.
    return x, Aval(x.shape, dtype)


def _checked(
    callback: Callable[..., Any], outs: Sequence[Aval], failures: deque[BaseException]
) -> Callable[..., tuple[Any, ...]]:
    """The callback with its results made what XLA will read: it checks neither shape nor dtype."""
    wanted = [stored(a) for a in outs]

    def run(*args: Any) -> tuple[Any, ...]:
        try:
            results = callback(*args)
            if not isinstance(results, tuple | list):
                results = (results,)
            if len(results) != len(wanted):
                raise TypeError(f"[callback] expected {len(wanted)} results, got {len(results)}.")
            arrays = [np.asarray(r) for r in results]
            for i, (array, aval) in enumerate(zip(arrays, wanted, strict=True)):
                if array.shape != aval.shape or array.dtype != aval.dtype:
                    raise TypeError(
                        f"[callback] expected result {i} to be {aval}, got "
                        f"{array.dtype}{list(array.shape)}. Return arrays of the declared types."
                    )
            return tuple([np.asarray(a, order="C") for a in arrays])
        except BaseException as e:
            # XLA keeps the text alone; the exception itself becomes the cause of the error.
            failures.append(e)
            raise

    return run


def _pack(head: dict[str, Any], text: str, body: bytes) -> bytes:
    import hashlib
    import json
    import struct

    parts = (json.dumps(head).encode(), text.encode(), body)
    digest = hashlib.sha256(b"".join(parts)).digest()
    sizes = struct.pack("<3Q", *[len(p) for p in parts])
    return b"".join((_MAGIC, digest, sizes, *parts))


def _unpack(data: bytes) -> tuple[dict[str, Any], str, bytes]:
    import hashlib
    import json
    import struct

    start = len(_MAGIC) + 32 + 24
    if data[: len(_MAGIC)] == _MAGIC and len(data) >= start:
        sizes = struct.unpack("<3Q", data[start - 24 : start])
        rest = data[start:]
        if len(rest) == sum(sizes) and hashlib.sha256(rest).digest() == data[10:42]:
            a, b = sizes[0], sizes[0] + sizes[1]
            return json.loads(rest[:a]), rest[a:b].decode(), rest[b:]
    raise ValueError(
        "[xla] expected the bytes of a serialised executable, got something else or a damaged "
        "copy. Compile the program again."
    )


def _spell(aval: Aval) -> list[Any]:
    aval = stored(aval)
    return [list(aval.shape), str(aval.dtype)]


def _aval(spelled: list[Any]) -> Aval:
    return Aval(tuple(spelled[0]), dtypes.as_dtype(spelled[1]))


def _cpu_features() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith(("flags", "Features")):
                    return line
    except OSError:
        pass  # Not Linux: the processor's name must do.
    import platform

    return platform.processor()
