"""Recipe of `lax_expressions.json`: run with the Python of the peer environment (JAX 0.10.2).

    PYTHONPATH=. .venv-peers/bin/python tests/data/record_lax.py > tests/data/lax_expressions.json

Evaluates every line of `lax_expressions.txt` as `record_numpy.py` does its own.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.data.record_numpy import evaluate
from tests.data.record_numpy import namespace as numpy_namespace

EXPRESSIONS = Path(__file__).with_name("lax_expressions.txt")


def namespace(library: Any) -> dict[str, Any]:
    """The operands of NumPy's expressions, and `lax`."""
    return {**numpy_namespace(library.numpy, library), "lax": library.lax}


def expressions() -> list[str]:
    """The lines of the table."""
    return EXPRESSIONS.read_text().splitlines()


if __name__ == "__main__":
    import jax
    import jax.numpy

    known = namespace(jax)
    rows = [(text, evaluate(text, known, jax.Array)) for text in expressions()]
    lines = [f"{json.dumps(text)}: {json.dumps(result)}" for text, result in rows]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
