"""Every function that takes a dtype warns of one that the 32-bit default narrows, as JAX does."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import random
from tests.docs.test_public_docs import names

X, M, KEY = jnp.arange(3.0), jnp.eye(2), random.key(0)
IMAGE, KERNEL = jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2))
PRODUCT = (((0,), (0,)), ((), ()))
# What operands are called with by the names of their parameters, and where that does not do.
GIVEN = {
    "a": X, "x": X, "object": [1.0], "v": X, "b": X, "m": X, "arrays": [X, X], "tup": [M, M],
    "shape": (2,), "prototype": X, "N": 3, "n": 3, "start": 1.0, "stop": 5.0, "fill_value": 1,
    "dimensions": (2,), "x1": M, "x2": M, "key": KEY, "d": 2, "p": 0.5, "df": 3.0, "lam": 2.0,
    "alpha": jnp.ones(3), "loc": 0.0, "scale": 1.0, "dfnum": 2.0, "dfden": 5.0, "minval": 0,
    "maxval": 5, "left": 0.0, "mode": 0.5, "right": 1.0, "lower": -1.0, "upper": 1.0,
    "concentration": 1.0, "num_classes": 3, "operand": X, "axis": 0, "lhs": X, "rhs": X,
    "value": 1.0, "mean": 1.0, "size": 3, "dimension": 0,
}  # fmt: skip
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "numpy.einsum": ("i,i", X, X), "numpy.trace": (M,), "numpy.linalg.trace": (M,),
    "numpy.tensordot": (X, X, 1), "nn.one_hot": (jnp.arange(3), 3),
    "numpy.fromfunction": (lambda i: i, (3,)),
    "random.generalized_normal": (KEY, 2.0), "random.beta": (KEY, 1.0, 2.0),
    "random.pareto": (KEY, 2.0), "random.gamma": (KEY, 2.0),
    "random.loggamma": (KEY, 2.0), "random.multinomial": (KEY, 5, jnp.ones(2) / 2),
    "random.multivariate_normal": (KEY, jnp.zeros(2), M), "random.binomial": (KEY, 5, 0.5),
    "lax.conv": (IMAGE, KERNEL, (1, 1), "SAME"),
    "lax.conv_general_dilated": (IMAGE, KERNEL, (1, 1), "SAME"),
    "lax.conv_general_dilated_local": (jnp.ones((1, 1, 2)), jnp.ones((2, 1, 1)), (1,), "VALID",
                                       (1,)),
    "lax.conv_general_dilated_patches": (IMAGE, (2, 2), (1, 1), "SAME"),
    "lax.conv_transpose": (jnp.ones((1, 4, 1)), jnp.ones((2, 1, 1)), (1,), "SAME"),
    "lax.conv_with_general_padding": (IMAGE, KERNEL, (1, 1), "SAME", None, None),
    "lax.dot_general": (X, X, PRODUCT),
    "numpy.dstack": ([M, M],), "random.orthogonal": (KEY, 2),
}  # fmt: skip
BY_POSITION: dict[str, Callable[[Any, Any], Any]] = {
    "lax.broadcasted_iota": lambda f, dtype: f(dtype, (2,), 0),
    "lax.iota": lambda f, dtype: f(dtype, 3),
    "numpy.astype": lambda f, dtype: f(X, dtype),
}
OF_INTEGERS = {"random.bits", "random.randint", "random.multinomial", "random.poisson",
               "random.geometric", "random.rademacher", "numpy.argsort",
               "lax.argmax", "lax.argmin"}  # fmt: skip
WITHOUT = {
    "numpy.isdtype": "asks about a dtype",
    "numpy.ravel_multi_index": "makes places of the default width",
    "numpy.frombuffer": "says what its bytes are", "numpy.fromstring": "says what its text is",
    "random.key": "of keys",
    "random.wrap_key_data": "of keys",
    "lax.bitcast_convert_type": "of bits, which stay as many",
    "lax.rng_bit_generator": "of unsigned integers only: tests/lax",
    "lax.ragged_dot": "tests/lax", "lax.ragged_dot_general": "tests/lax",
    "lax.scaled_dot": "tests/lax",
    "nn.scaled_dot_general": "test_scaled.py", "nn.scaled_matmul": "test_scaled.py",
}  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., Any], str]]:
    for name, value in names().items():
        room = name.removeprefix("primal.")
        if not room.startswith(("numpy.", "random.", "nn.", "lax.")) or isinstance(value, type):
            continue
        parameters = inspect.signature(value).parameters if inspect.isfunction(
            inspect.unwrap(value)) else {}  # fmt: skip
        for p in ("dtype", "preferred_element_type", "index_dtype", "new_dtype"):
            if p in parameters:
                yield room, value, p


FOUND = {room: (value, parameter) for room, value, parameter in functions()}


def requested(room: str, dtype: Any) -> Any:
    function, parameter = FOUND[room]
    if room in BY_POSITION:
        return BY_POSITION[room](function, dtype)
    if room.startswith("nn.initializers.") and room.split(".")[-1] not in ("zeros", "ones"):
        values = {"value": (1.0,), "scale": (1.0, "fan_in", "normal")}
        first = next(iter(inspect.signature(function).parameters))
        made = function(*values.get(first, ()) if room.split(".")[-1] in (
            "constant", "variance_scaling") else ())  # fmt: skip
        return made(KEY, (3, 3, 3) if "delta" in room else (3, 3), dtype)
    arguments = ARGUMENTS.get(room)
    if arguments is None:
        arguments = tuple([
            GIVEN[p.name] for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            and p.name != parameter
        ])  # fmt: skip
    return function(*arguments, **{parameter: dtype})


@pytest.mark.parametrize("room", sorted(set(FOUND) - set(WITHOUT)))
def test_wide_dtypes_are_narrowed_with_a_warning(room: str) -> None:
    wide, narrow = ("int64", "int32") if room in OF_INTEGERS else ("float64", "float32")
    if room == "random.bits":
        wide, narrow = "uint64", "uint32"
    with pytest.warns(UserWarning, match=f"{wide} .*will be truncated to dtype {narrow}"):
        out = requested(room, wide)
    assert {x.dtype.name for x in primal.tree.leaves(out)} == {narrow}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python's names are those of the default width
        if room != "random.bits":
            requested(room, {"f": float, "i": int}[np.dtype(wide).kind])
            requested(room, narrow)
    with primal.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        out = requested(room, wide)
    assert {x.dtype.name for x in primal.tree.leaves(out)} == {wide}


def test_what_is_left_out_takes_dtypes() -> None:
    assert set(WITHOUT) <= set(FOUND)
