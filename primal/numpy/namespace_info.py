"""What the array API's `__array_namespace_info__` tells of the namespace."""

from __future__ import annotations

from typing import Any

from primal.base import dtypes
from primal.runtime import devices as runtime_devices

KINDS = {
    "bool": ("b",),
    "signed integer": ("i",),
    "unsigned integer": ("u",),
    "integral": ("i", "u"),
    "real floating": ("f",),
    "complex floating": ("c",),
    "numeric": ("i", "u", "f", "c"),
}
NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


class __array_namespace_info__:
    """Capabilities, devices and dtypes of the namespace, by the array API standard.

    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    def capabilities(self) -> dict[str, Any]:
        """What is optional: sizes that depend on values are not available inside `jit`."""
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": 64,
        }

    def default_device(self) -> Any:
        """None: arrays go where `config.default_device` says, and follow their operands."""
        return None

    def devices(self) -> list[Any]:
        """None and all devices."""
        return [None, *runtime_devices.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that Python's numbers get, by kind."""
        kinds = {"real floating": float, "complex floating": complex, "integral": int}
        found = {kind: dtypes.canonicalize_dtype(t) for kind, t in kinds.items()}
        return {**found, "indexing": found["integral"]}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes of a kind, or of several; those of 64 bits where they are enabled.

        ValueError for kinds that the standard does not know.
        """
        asked = tuple(KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in asked if k not in KINDS]
        if unknown:
            raise ValueError(
                f"[__array_namespace_info__.dtypes] expected kinds among {list(KINDS)}, got "
                f"{unknown[0]!r}."
            )
        letters = {letter for k in asked for letter in KINDS[k]}
        known = {name: dtypes.as_dtype(name) for name in NAMES}
        return {
            name: dtype
            for name, dtype in known.items()
            if dtypes.kind_of(dtype) in letters and dtypes.canonicalize_dtype(dtype) == dtype
        }
