"""How arrays lie on devices; one device so far."""

from primal.runtime.sharding import Sharding, SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
