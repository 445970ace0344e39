"""How an array lies on devices; one device so far."""

from __future__ import annotations

from typing import Any

from primal.engines.protocol import Device


class Sharding:
    """How an array is split over devices.

    >>> isinstance(jnp.zeros(2).sharding, Sharding)
    True
    """

    device_set: set[Device]

    @property
    def num_devices(self) -> int:
        return len(self.device_set)


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class SingleDeviceSharding(Sharding):
    """The whole array on one device, in the memory of a kind; ValueError for unknown kinds.

    >>> SingleDeviceSharding(primal.devices()[0]).is_fully_replicated
    True
    """

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        if memory_kind is not None and memory_kind not in MEMORY_KINDS:
            raise ValueError(
                f"[SingleDeviceSharding] expected a memory kind of {', '.join(MEMORY_KINDS)}, got "
                f"{memory_kind!r}: could not find memory addressable by device {device.platform}."
            )
        self.device = device
        self.memory_kind = memory_kind or "device"

    @property
    def device_set(self) -> set[Device]:  # type: ignore[override]
        """The devices that hold a part."""
        return {self.device}

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read all parts."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process that hold a part."""
        return {self.device}

    def devices_indices_map(self, shape: tuple[int, ...]) -> dict[Device, Any]:
        """The index of the part on each device."""
        return {self.device: (slice(None),) * len(shape)}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a part."""
        return tuple(shape)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of that rank lie alike under both."""
        return self == other

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another memory."""
        return SingleDeviceSharding(self.device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return False
        return self.device is other.device and self.memory_kind == other.memory_kind

    def __hash__(self) -> int:
        return hash((self.device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"
