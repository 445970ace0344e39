"""Which element of a window its extremum is: against loops, on every engine."""

from typing import Any

import numpy as np
import pytest

from primal.api import jit
from primal.base.config import cpu_engine
from primal.ops.window.pooling import select_and_gather_add, select_and_scatter_add

SHAPE = (5, 6)
WINDOWS = {
    "padded": {"window_dimensions": (2, 3), "window_strides": (2, 1), "padding": ((1, 0), (1, 2)),
               "base_dilation": (1, 1), "window_dilation": (1, 1)},
    "dilated": {"window_dimensions": (2, 2), "window_strides": (1, 1), "padding": ((1, 1), (0, 1)),
                "base_dilation": (2, 1), "window_dilation": (1, 2)},
    "cropped": {"window_dimensions": (2, 2), "window_strides": (1, 1),
                "padding": ((-1, 1), (0, -1)), "base_dilation": (1, 1),
                "window_dilation": (1, 1)},
}  # fmt: skip


def chosen(x: Any, i: tuple[int, ...], select: str, window: dict[str, Any]) -> Any:
    """The place of the first NaN of a window, or of its first extremum; padding is none."""
    found = None
    for k in np.ndindex(window["window_dimensions"]):
        at = [
            p * s + q * d - lo
            for p, s, q, d, (lo, _) in zip(
                i, window["window_strides"], k, window["window_dilation"], window["padding"],
                strict=True,
            )
        ]  # fmt: skip
        parts = [divmod(a, b) for a, b in zip(at, window["base_dilation"], strict=True)]
        if any(rest or not 0 <= p < n for (p, rest), n in zip(parts, SHAPE, strict=True)):
            continue
        place = tuple([p for p, _ in parts])
        if found is None or (
            not np.isnan(x[found])
            and (np.isnan(x[place])
                 or (x[place] > x[found] if select == "ge" else x[place] < x[found]))
        ):  # fmt: skip
            found = place
    return found


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("select", ["ge", "le"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extrema_of_windows_with_padding_and_special_values(
    name: str, select: str, dtype: str
) -> None:
    """Infinite elements come before padding, which is as infinite, and NaN before all."""
    window: dict[str, Any] = WINDOWS[name]
    drawn = np.random.default_rng(0)
    values = [np.nan, np.inf, -np.inf, 1, 2, -0.0, 0.0]
    if dtype == "int32":
        values = [2**31 - 1, -(2**31), 0, 1]
    options = {"select": select, **window}
    gather = lambda t, x: select_and_gather_add(t, x, **options)  # noqa: E731
    scatter = lambda ct, x: select_and_scatter_add(ct, x, **options)  # noqa: E731
    for _ in range(4):
        x = drawn.choice(values, SHAPE).astype(dtype)
        t = np.arange(1, x.size + 1).reshape(SHAPE).astype(dtype)
        got = np.asarray(gather(t, x))
        ct = np.arange(1, got.size + 1).reshape(got.shape).astype(dtype)
        read, added = np.zeros_like(got), np.zeros_like(x)
        for i in np.ndindex(got.shape):
            if (place := chosen(x, i, select, window)) is not None:
                read[i] = t[place]
                added[place] += ct[i]
        np.testing.assert_array_equal(got, read)
        np.testing.assert_array_equal(scatter(ct, x), added)
        for engine in ("cpu", "xla"):
            with cpu_engine(engine):
                np.testing.assert_array_equal(jit(gather)(t, x), read, err_msg=engine)
                np.testing.assert_array_equal(jit(scatter)(ct, x), added, err_msg=engine)
