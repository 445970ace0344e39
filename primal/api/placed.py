"""Pictures of how arrays lie on devices."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from primal.base.errors import api_boundary
from primal.base.pytree import flatten
from primal.ir.trace import Tracer
from primal.runtime import devices
from primal.runtime.sharding import SingleDeviceSharding

# A character is about 2.5 times as high as it is wide.
_ASPECT = 2.5
_HEIGHT = 10


@api_boundary
def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call `callback(sharding)` for every array of a tree, also of traced ones.

    As early as the sharding is known: at once for arrays. A program of one device has one sharding
    only, which is known while it is traced.

    >>> import primal
    >>> inspect_array_sharding(primal.numpy.ones(3), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    for x in flatten(value)[0]:
        if isinstance(x, Tracer):
            known = getattr(x.aval, "sharding", None)
            callback(SingleDeviceSharding(devices.default()) if known is None else known)
        else:
            callback(x.sharding)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print where the parts of a one- or two-dimensional array lie; see `visualize_sharding`.

    >>> primal.debug.visualize_array_sharding(jnp.arange(4.0))
    ┌───────────────────────┐
    │         CPU 0         │
    └───────────────────────┘
    """
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs)
    )


@api_boundary
def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print a picture of a sharding of an array of that shape: one box per part, with its devices.

    Colours, one per device, on terminals only; `color_map(id)` names them as ANSI numbers.
    ValueError for other than one or two dimensions.

    >>> import primal
    >>> visualize_sharding((8,), primal.numpy.ones(8).sharding)
    ┌───────────────────────┐
    │         CPU 0         │
    └───────────────────────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError(
            "[visualize_sharding] expected an array of one or two dimensions, got shape "
            f"{tuple(shape)}: `visualize_sharding` only works for shapes with 1 and 2 dimensions."
        )
    boxes: dict[tuple[tuple[int, int], ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        spans = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        boxes.setdefault(tuple(spans if len(shape) == 2 else [(0, 1), *spans]), []).append(device)
    names = {
        spans: f"{found[0].platform.upper()} {','.join(str(d.id) for d in found)}"
        for spans, found in boxes.items()
    }
    colors = _colors(use_color, color_map)
    heights = sorted({rows for rows, _ in boxes})
    widths = sorted({columns for _, columns in boxes})
    ratio = shape[1] / shape[0] if len(shape) == 2 and shape[0] else 1.0
    whole = min(max(_HEIGHT * scale * _ASPECT * ratio, min_width), max_width)
    longest = max(len(n) for n in names.values())
    width = max(math.floor(whole / len(widths)) - 2, longest + 2)
    height = max(math.floor(_HEIGHT * scale / len(heights)) - 1, 1) if len(shape) == 2 else 1
    print(_picture(heights, widths, names, boxes, width, height, colors), file=sys.stdout)


def _picture(
    heights: Sequence[Any],
    widths: Sequence[Any],
    names: dict[Any, str],
    boxes: dict[Any, list[Any]],
    width: int,
    height: int,
    colors: Callable[[int, str], str],
) -> str:
    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * len(widths)) + right

    lines = [rule("┌", "┬", "┐")]
    for i, rows in enumerate(heights):
        if i:
            lines.append(rule("├", "┼", "┤"))
        for k in range(height):
            cells = []
            for columns in widths:
                found = boxes.get((rows, columns))
                text = names[rows, columns] if found and k == height // 2 else ""
                cell = text.center(width)
                cells.append(colors(found[0].id, cell) if found else cell)
            lines.append("│" + "│".join(cells) + "│")
    lines.append(rule("└", "┴", "┘"))
    return "\n".join(lines)


def _colors(use_color: bool, color_map: Any) -> Callable[[int, str], str]:
    if not use_color or not sys.stdout.isatty():
        return lambda number, text: text
    choose = color_map if color_map is not None else lambda number: 17 + 36 * (number % 6)
    return lambda number, text: f"\x1b[48;5;{choose(number)}m{text}\x1b[0m"
