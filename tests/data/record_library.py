"""Recipe of `library_expressions.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_library.py > tests/data/library_expressions.json

As record_numpy.py, of `library_expressions.txt`: nn, image, ops, flatten_util.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.data.record_numpy import evaluate, namespace

EXPRESSIONS = Path(__file__).with_name("library_expressions.txt")

if __name__ == "__main__":
    import jax
    import jax.flatten_util
    import jax.image
    import jax.numpy
    import jax.ops

    # The scheme that is the default where the expressions are tested.
    jax.config.update("jax_threefry_partitionable", False)
    known = namespace(jax.numpy, jax)
    texts = EXPRESSIONS.read_text().splitlines()
    lines = [f"{json.dumps(t)}: {json.dumps(evaluate(t, known, jax.Array))}" for t in texts]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
