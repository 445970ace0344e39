"""The runtimes behind the devices, as libraries ask for them."""

from __future__ import annotations

from typing import Any

from primal.runtime.devices import default, devices

__all__ = ["backends", "get_backend", "get_default_device"]


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, or of the default one: its devices, its name and version.

    RuntimeError for a platform that is not there.

    >>> primal.extend.backend.get_backend("cpu").platform
    'cpu'
    """
    return devices(platform)[0].client


def backends() -> dict[str, Any]:
    """The clients that are there, by platform.

    >>> "cpu" in primal.extend.backend.backends()
    True
    """
    return {client.platform: client for client in (get_backend(), get_backend("cpu"))}


def get_default_device() -> Any:
    """The device that values go to where nothing else is said.

    >>> primal.extend.backend.get_default_device() in primal.devices()
    True
    """
    return default()
