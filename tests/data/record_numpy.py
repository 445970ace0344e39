"""Recipe of `numpy_expressions.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_numpy.py > tests/data/numpy_expressions.json

Evaluates every line of `numpy_expressions.txt` over the operands of `namespace` and records the
result: dtype, weak type, shape and values of arrays, or the class of the error.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

EXPRESSIONS = Path(__file__).with_name("numpy_expressions.txt")
BUILT_IN = {
    "TypeError", "ValueError", "IndexError", "NotImplementedError", "OverflowError",
    "ZeroDivisionError", "AttributeError", "RuntimeError", "FloatingPointError",
}  # fmt: skip


def namespace(jnp: Any, library: Any) -> dict[str, Any]:
    """The names that expressions use: operands, `jnp`, the library as `J`, and NumPy."""
    return {
        "np": np,
        "jnp": jnp,
        "J": library,
        "x": jnp.arange(3.0),
        "i": jnp.arange(3),
        "m": jnp.arange(12.0).reshape(3, 4),
        "b": jnp.array([True, False, True]),
        "u": jnp.arange(3, dtype="uint8"),
        "i8": jnp.arange(3, dtype="int8"),
        "c": jnp.array([1 + 2j, 3, -1j]),
        "n": jnp.array([1.0, jnp.nan, 3.0]),
        "y": jnp.array([0.3, -0.7, 1.2, -1.9, 0.5]),
        "Y": jnp.sin(jnp.arange(25.0).reshape(5, 5) * 1.7),
        "S": jnp.array([[2.0, 0.3, 0.1], [0.2, 1.5, -0.4], [0.1, 0.5, 1.1]]),
    }


def encode(value: Any, array_type: type) -> Any:
    """A result as JSON: arrays as (dtype, weak, shape, parts), the rest by its text."""
    if isinstance(value, array_type):
        host = np.asarray(value)
        wide = np.complex128 if host.dtype.kind == "c" else np.float64
        flat = host.astype(wide).ravel().view(np.float64)
        weak = bool(value.weak_type)
        parts = [float(f"{v:.8g}") for v in flat]
        return ["array", str(value.dtype), weak, list(value.shape), parts]
    if isinstance(value, tuple | list):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, *[encode(v, array_type) for v in value]]
    return ["value", repr(value)]


def evaluate(text: str, names: dict[str, Any], array_type: type, wanted: Any = None) -> Any:
    """The encoded result of an expression, or ["error", the built-in class it belongs to].

    That which is `wanted`, if the error is of several: who catches the peer's catches ours.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = encode(eval(text, dict(names)), array_type)
        except Exception as error:
            kinds = [c.__name__ for c in type(error).__mro__ if c.__name__ in BUILT_IN]
            if isinstance(wanted, list) and wanted[0] == "error" and wanted[1] in kinds:
                return wanted
            return ["error", kinds[0] if kinds else type(error).__name__]
    # Users' code must warn as it does: but not about what a library plans to change.
    warned = any("float64" in str(w.message) or "Casting from" in str(w.message) for w in caught)
    return ["warned", out] if warned else out


def expressions() -> list[str]:
    """The lines of the table."""
    return EXPRESSIONS.read_text().splitlines()


if __name__ == "__main__":
    import jax
    import jax.numpy

    known = namespace(jax.numpy, jax)
    rows = [(text, evaluate(text, known, jax.Array)) for text in expressions()]
    lines = [f"{json.dumps(text)}: {json.dumps(result)}" for text, result in rows]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
