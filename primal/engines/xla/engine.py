"""The engine protocol on XLA: jaxprs in, executables out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import forks
from primal.base.config import config
from primal.engines.xla import _jaxlib
from primal.engines.xla.client import Buffer, Client, Device, Executable
from primal.engines.xla.lower import Lowered, lower_jaxpr
from primal.ir.jaxpr import ClosedJaxpr, has_scopes


class XlaEngine:
    """XLA on one platform: 'cpu', 'cuda' or 'tpu'.

    Nothing of XLA is loaded until a device is asked for. `num_devices`, for the CPU, defaults to
    `config.num_cpu_devices`.

    >>> from primal.ir.avals import Aval
    >>> from primal.ir.jaxpr import Jaxpr, Var
    >>> x = Var(Aval((3,), np.dtype('float32')))
    >>> engine = XlaEngine("cpu")
    >>> device = engine.devices()[0]
    >>> identity = engine.compile(ClosedJaxpr(Jaxpr([], [x], [x], [])), device=device)
    >>> (y,) = identity.execute([engine.put(np.arange(3, dtype='float32'), device)])
    >>> engine.get(y)
    array([0., 1., 2.], dtype=float32)
    """

    name = "xla"
    host_buffers = False

    def __init__(self, platform: str = "cpu", num_devices: int | None = None) -> None:
        self.platform = "cuda" if platform == "gpu" else platform
        self._num_devices = num_devices
        self._client: Client | None = None
        self._lock = forks.lock()

    @property
    def client(self) -> Client:
        """The PJRT client, made on first use.

        Raises RuntimeError that names the package to install where a platform's plugin is missing.
        """
        if self._client is None:
            with self._lock:
                if self._client is None:
                    wanted = self._num_devices
                    if wanted is None and self.platform == "cpu" and config.num_cpu_devices > 0:
                        wanted = config.num_cpu_devices
                    self._client = Client(self.platform, wanted)
        return self._client

    @property
    def started(self) -> bool:
        """Whether the client exists, after which the number of devices is settled."""
        return self._client is not None

    def devices(self) -> list[Device]:
        """All devices, those of other processes included."""
        return self.client.devices

    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return self.client.local_devices

    def put(self, x: Any, device: Device, immutable: bool = False) -> Buffer:
        """A NumPy array on a device; see `Client.put`."""
        return self.client.put(x, device, immutable)

    def get(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The contents of a buffer, read-only, without a copy where it is on the host."""
        return self.client.get(buffer)

    def memory_stats(self, device: Any) -> dict[str, int] | None:
        """Bytes in use and limits of a device, where its platform counts them."""
        own = device if isinstance(device, Device) else device.handle
        return None if own is None else own.memory_stats()

    def lower(self, program: ClosedJaxpr, name: str = "main", donated: Sequence[bool] = ()) -> str:
        """The StableHLO of a program as text, without loading XLA."""
        return self.lowered(program, name=name, donated=donated).text

    def lowered(
        self,
        program: ClosedJaxpr,
        *,
        name: str = "main",
        donated: Sequence[bool] = (),
        locations: bool = False,
    ) -> Lowered:
        """What `compile` compiles: text, signature, constants that travel as arguments."""
        return lower_jaxpr(program, name, donated, platform=self.platform, locations=locations)

    @staticmethod
    def module(text: str) -> Any:
        """What `lower` wrote, as a module of jaxlib's MLIR bindings."""
        return _jaxlib.load().parse(text)

    @staticmethod
    def hlo(text: str) -> Any:
        """What `lower` wrote, as XLA's computation: `as_hlo_text()` prints it."""
        return _jaxlib.load().hlo(text)

    def compile(
        self,
        program: ClosedJaxpr | Lowered,
        *,
        device: Device,
        donated: Sequence[bool] = (),
        name: str = "main",
        flags: Sequence[tuple[str, Any]] = (),
    ) -> Executable:
        """Compile a program, or what `lowered` made of it, for one device.

        `flags` are XLA's debug options by name. The result's `donated` says which donations an
        output could use; the other inputs stay alive. Raises JaxRuntimeError with XLA's text.
        """
        if isinstance(program, ClosedJaxpr):
            # XLA shows scopes in profiles; without any, locations would only be text to read.
            scopes = has_scopes(program.jaxpr)
            program = self.lowered(program, name=name, donated=donated, locations=scopes)
        executable = self.client.compile(
            program.text, program.signature, device, flags, program.callbacks
        )
        if program.constants:
            executable.bind([self.put(c, device, immutable=True) for c in program.constants])
        return executable

    def load(self, data: bytes, *, device: Device) -> Executable:
        """An executable out of `Executable.serialize()`; see `Client.load`."""
        return self.client.load(data, device)
