"""What the runtime asks of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from primal.ir.jaxpr import ClosedJaxpr


class Device:
    """One device of an engine's client: platform, id and process.

    >>> primal.devices("cpu")[0].platform
    'cpu'
    """

    __slots__ = ("platform", "id", "process_index", "device_kind", "handle", "engine", "client")

    def __init__(
        self,
        platform: str,
        id: int,
        process_index: int = 0,
        device_kind: str = "",
        handle: Any = None,
        engine: Any = None,
        client: Any = None,
    ) -> None:
        self.client = client
        self.platform = platform
        self.id = id
        self.process_index = process_index
        self.device_kind = device_kind or platform
        self.handle = handle
        self.engine = engine

    @property
    def local_hardware_id(self) -> int:
        return self.id

    def memory_stats(self) -> dict[str, Any] | None:
        """Bytes in use and limits, where the engine knows them."""
        return self.engine.memory_stats(self) if self.engine is not None else None

    def __str__(self) -> str:
        return f"{'cuda' if self.platform == 'gpu' else self.platform}:{self.id}"

    def __repr__(self) -> str:
        names = {"cpu": "CpuDevice", "gpu": "CudaDevice", "cuda": "CudaDevice", "tpu": "TpuDevice"}
        return f"{names.get(self.platform, 'Device')}(id={self.id})"


class Executable(Protocol):
    """A compiled program. Buffers are NumPy arrays for engines with `host_buffers`."""

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on buffers of the program's input avals; the output buffers."""
        ...

    def as_text(self) -> str:
        """The compiled program as text."""
        ...

    def cost_analysis(self) -> dict[str, float]:
        """Estimated costs: flops, bytes accessed."""
        ...

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, outputs and temporaries."""
        ...


class Engine(Protocol):
    """Runs programs on the devices of one platform.

    `host_buffers`: buffers are NumPy arrays in host memory, and `put` and `get` are the identity.
    """

    name: str
    host_buffers: bool

    def devices(self) -> list[Device]:
        """All devices, in order of id."""
        ...

    def put(self, array: Any, device: Device) -> Any:
        """A buffer with the values of a NumPy array, which nobody will write to."""
        ...

    def get(self, buffer: Any) -> Any:
        """The buffer as a NumPy array."""
        ...

    def lower(self, program: ClosedJaxpr, name: str, donated: Sequence[bool] = ()) -> str:
        """The program in the engine's language, as text."""
        ...

    def compile(
        self, program: ClosedJaxpr, *, name: str, device: Device, donated: tuple[bool, ...]
    ) -> Executable:
        """An executable of a program without constants and without call equations."""
        ...
