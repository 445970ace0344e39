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

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Any]:
        """The index of the part on each device."""
        return {self.device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a part."""
        return tuple(global_shape)

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


class Layout:
    """The order in which an array's dimensions lie in memory; the slowest first.

    >>> Layout((0, 1)) == Layout((1, 0))
    False
    """

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _fields(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """Layout and sharding of an array.

    >>> jnp.zeros((2, 3)).format.layout.major_to_minor
    (0, 1)
    """

    def __init__(self, layout: Layout | None = None, sharding: Sharding | None = None) -> None:
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(f"[Format] expected a Layout or None as layout, got {layout!r}.")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(f"[Format] expected a Sharding or None as sharding, got {sharding!r}.")
        if layout is not None and sharding is None:
            raise ValueError("[Format] expected a sharding beside the layout, got None.")
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Format) and self.layout == other.layout
        return same and self.sharding == getattr(other, "sharding", None)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout!r}, sharding={self.sharding!r})"


def row_major(ndim: int, device: Device) -> Format:
    """The format of every array here: rows one after the other, on one device."""
    return Format(Layout(tuple(range(ndim)), ()), SingleDeviceSharding(device))
