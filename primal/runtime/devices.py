"""Devices and engines: what is there, what is the default, and how memory moves."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import forks
from primal.base.config import config, settings
from primal.engines import cpu, xla
from primal.engines.protocol import Device
from primal.engines.reference import ReferenceEngine

_lock = forks.rlock()
_platforms: dict[str, list[Device]] = {}
_xla: dict[str, Any] = {}
reference = ReferenceEngine()
_ACCELERATORS = {
    "cuda": ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"),
    "tpu": ("libtpu",),
}
_ALIASES = {"gpu": "cuda", "cuda": "cuda", "cpu": "cpu", "tpu": "tpu"}


def xla_engine(platform: str) -> Any:
    """The XLA engine of a platform; its client is made on first use."""
    engine = _xla.get(platform)
    if engine is None:
        with _lock:
            engine = _xla.get(platform)
            if engine is None:
                count = len(devices("cpu")) if platform == "cpu" else None
                engine = _xla[platform] = xla.XlaEngine(platform, count)
    return engine


@functools.cache
def _cpu_engine() -> Any:
    return cpu.CpuEngine()


_host_engines: dict[str, Callable[[], Any]] = {
    "reference": lambda: reference,
    "cpu": _cpu_engine,
}


def compiling_engine(device: Device) -> Any:
    """The engine that runs jitted programs on a device."""
    if device.platform != "cpu":
        return xla_engine(_ALIASES[device.platform])
    name = settings().cpu_engine
    make = _host_engines.get(name)
    return xla_engine("cpu") if make is None else make()


def get_ready(device: Device | None) -> None:
    """Let the CPU's compiler begin with what every program needs, while one is being traced."""
    if settings().cpu_engine == "cpu":
        where = default() if device is None else device
        if where.platform == "cpu":
            _cpu_engine().get_ready()


def has_plugin(platform: str) -> bool:
    """Whether the packages that drive an accelerator are installed."""
    for module in _ACCELERATORS[platform]:
        try:
            if importlib.util.find_spec(module) is not None:
                return True
        except ModuleNotFoundError:
            continue
    return False


def platforms() -> list[str]:
    """The platforms that can be used, the default first."""
    wanted = config.platforms
    if wanted:
        return [_alias(p.strip()) for p in wanted.split(",") if p.strip()]
    return [*(p for p in _ACCELERATORS if has_plugin(p)), "cpu"]


def _alias(platform: str) -> str:
    try:
        return _ALIASES[platform]
    except KeyError:
        raise RuntimeError(
            f"[devices] expected a platform among cpu, gpu, cuda and tpu, got {platform!r}: "
            f"Unknown backend {platform}."
        ) from None


def devices(platform: str | None = None) -> list[Device]:
    """All devices of a platform (default: the default platform)."""
    name = default_platform() if platform is None else _alias(platform)
    found = _platforms.get(name)
    if found is None:
        with _lock:
            found = _platforms.get(name)
            if found is None:
                found = _platforms[name] = _make_devices(name)
    return found


class Client:
    """What a platform's devices have in common.

    >>> primal.devices("cpu")[0].client.platform
    'cpu'
    """

    def __init__(self, platform: str, version: str, runtime_type: str, process: int = 0) -> None:
        self._process = process
        self.platform = platform
        self.platform_version = version
        self.runtime_type = runtime_type

    def devices(self) -> list[Device]:
        """All devices of the platform."""
        return list(devices(self.platform))

    def local_devices(self) -> list[Device]:
        """Those of this process."""
        return [d for d in self.devices() if d.process_index == self.process_index()]

    def device_count(self) -> int:
        """How many devices there are."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """How many of them are this process'."""
        return len(self.local_devices())

    def process_index(self) -> int:
        """The number of this process."""
        return self._process

    def __repr__(self) -> str:
        return f"Client(platform={self.platform!r}, runtime_type={self.runtime_type!r})"


def _make_devices(platform: str) -> list[Device]:
    if platform == "cpu":
        client = Client("cpu", "cpu", "primal")
        count = config.num_cpu_devices
        if count < 1:
            flag = re.search(
                r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
            )
            count = int(flag.group(1)) if flag else 1
        return [Device("cpu", i, engine=reference, client=client) for i in range(count)]
    engine = xla_engine(platform)
    made = engine.client
    client = Client(_alias(platform), made.platform_version, "pjrt", made.process_index)
    return [
        Device(
            "gpu" if d.platform == "cuda" else d.platform,
            d.id,
            d.process_index,
            d.device_kind,
            handle=d,
            engine=engine,
            client=client,
        )
        for d in engine.devices()
    ]


def started() -> dict[str, list[Device]]:
    """The devices of the platforms that were used so far."""
    return dict(_platforms)


_default_platform: str | None = None


def default_platform() -> str:
    """The platform of arrays without a placement: an accelerator that works, else the CPU."""
    global _default_platform
    if _default_platform is None:
        with _lock:
            if _default_platform is None:
                _default_platform = _choose_platform()
    return _default_platform


def _choose_platform() -> str:
    names = platforms()
    for name in names[:-1]:
        try:
            if devices(name):
                return name
        except RuntimeError as error:
            if config.platforms:
                raise
            _warn_unused(name, names[-1], error)
    return names[-1]


def _warn_unused(name: str, instead: str, error: RuntimeError) -> None:
    import logging  # 4 ms, which nobody with a working accelerator needs to spend.

    logging.getLogger("primal").warning(
        "[devices] the packages for %s are installed, but it did not start; using %s. Set "
        "config.platforms (PRIMAL_PLATFORMS=%s) to choose without asking. %s",
        name, instead, instead, error,
    )  # fmt: skip


def default() -> Device:
    """The device of arrays without a placement."""
    chosen = settings().default_device
    if chosen is None:
        return devices()[0]
    return chosen if isinstance(chosen, Device) else devices(chosen)[0]


def default_is_host() -> bool:
    """Whether arrays without a placement are plain NumPy memory."""
    if settings().default_device is None:
        return (_default_platform or default_platform()) == "cpu"
    device = default()
    return device.platform == "cpu" and device.id == 0


def xla_device(device: Device) -> Any:
    """The XLA client's own record of a device."""
    if device.platform != "cpu":
        return device.handle
    return xla_engine("cpu").devices()[device.id]


def put_on(value: Any, device: Device) -> Any:
    """A NumPy array, which nobody will write to, as a buffer of a device."""
    if device.platform == "cpu":
        return value
    return device.engine.put(np.ascontiguousarray(value), device.handle, True)


def to_xla(value: Any, device: Device) -> Any:
    """Host memory as an XLA buffer, borrowed where its alignment allows."""
    engine = xla_engine("cpu") if device.platform == "cpu" else device.engine
    return engine.put(value, xla_device(device), True)


def to_host(buffer: Any, device: Device) -> Any:
    """The NumPy array of an engine's buffer."""
    if type(buffer) is np.ndarray:
        return buffer
    engine = xla_engine("cpu") if device.platform == "cpu" else device.engine
    return engine.get(buffer)


def buffer_deleted(buffer: Any) -> bool:
    """Whether the engine has freed the buffer, as after a donation."""
    return type(buffer) is not np.ndarray and buffer.is_deleted()


def is_ready(buffer: Any) -> bool:
    """Whether the value of a buffer has been computed."""
    return buffer is None or type(buffer) is np.ndarray or buffer.is_ready()


def wait(buffer: Any, device: Device) -> None:
    """Wait until the value of a buffer has been computed; errors of its run come here."""
    if type(buffer) is not np.ndarray:
        engine = xla_engine("cpu") if device.platform == "cpu" else device.engine
        engine.client.block_until_ready([buffer])


def export_dlpack(buffer: Any, device: Device, stream: Any, max_version: Any) -> Any:
    """A DLPack capsule of an XLA buffer."""
    engine = xla_engine("cpu") if device.platform == "cpu" else device.engine
    return engine.client.to_dlpack(buffer, stream, max_version)
