"""Recipe of `jax_names.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_jax_names.py > tests/data/jax_names.json

The public names of JAX's documented modules: `__all__` where there is one, else what does not begin
with an underscore and was not imported from the standard library or NumPy.
"""

import importlib
import inspect
import json
import sys
import warnings
from typing import Any

STATS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r
laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform
vonmises wrapcauchy
""".split()
MODULES = [
    *"""
jax jax.numpy jax.numpy.linalg jax.numpy.fft jax.scipy.cluster.vq jax.scipy.fft jax.scipy.integrate
jax.scipy.interpolate jax.scipy.linalg jax.scipy.ndimage jax.scipy.optimize jax.scipy.signal
jax.scipy.sparse.linalg jax.scipy.spatial.transform jax.scipy.special jax.scipy.stats
""".split(),
    *[f"jax.scipy.stats.{name}" for name in STATS],
    *"""
jax.lax jax.lax.linalg jax.random jax.nn jax.nn.initializers jax.image jax.ops jax.flatten_util
jax.typing jax.dtypes jax.test_util jax.dlpack jax.tree jax.tree_util jax.stages jax.errors
jax.sharding jax.debug jax.profiler jax.distributed jax.export jax.ffi jax.custom_batching
jax.custom_derivatives jax.ad_checkpoint jax.monitoring jax.ref jax.example_libraries.stax
jax.example_libraries.optimizers jax.experimental jax.experimental.checkify jax.experimental.sparse
jax.experimental.shard_map jax.experimental.mesh_utils jax.experimental.multihost_utils
jax.experimental.jet jax.experimental.ode jax.experimental.layout jax.experimental.random
jax.experimental.compilation_cache jax.experimental.custom_partitioning
jax.experimental.serialize_executable jax.experimental.pallas jax.experimental.pallas.tpu
jax.experimental.pallas.triton jax.extend.core jax.extend.backend jax.extend.linear_util
jax.extend.random jax.interpreters.ad jax.interpreters.batching jax.interpreters.mlir
jax.interpreters.partial_eval jax.core jax.api_util
""".split(),
]
FOREIGN = {
    "__future__", "abc", "builtins", "collections", "collections.abc", "contextlib", "dataclasses",
    "enum", "functools", "itertools", "numpy", "operator", "threading", "types", "typing", "re",
    "jax._src.util",
}  # fmt: skip
TYPING = {"Any", "Callable", "Iterable", "NamedTuple", "Sequence", "annotations", "map", "zip"}
HELPERS = {"unsafe_map", "unsafe_zip", "safe_map", "safe_zip", "partial", "unzip2", "namedtuple"}


def own(module: str, name: str, value: Any) -> bool:
    """Whether a name belongs to the module's interface."""
    if inspect.ismodule(value) or name in TYPING | HELPERS:
        return False
    if module in ("jax", "jax.numpy", "jax.lax"):
        return True
    where = getattr(value, "__module__", None)
    if isinstance(value, type) or callable(value):
        return str(where).partition(".")[0] in {"jax", "jaxlib"} and where not in FOREIGN
    return True


def names(module: str) -> list[str]:
    """The public names of a module, sorted."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return sorted(set(found.__all__))
    public = [name for name in dir(found) if not name.startswith("_")]
    return sorted([name for name in public if own(module, name, getattr(found, name))])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    lines = [f"{json.dumps(m)}: {json.dumps(names(m))}" for m in MODULES]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
