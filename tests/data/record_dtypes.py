"""Recipe of `dtypes.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_dtypes.py > tests/data/dtypes.json

Records, for every pair of lattice nodes (the dtypes and the weak Python scalars), JAX's result type
with the 64-bit switch on and off and in strict mode, or the error where there is none; and of each
dtype the names in jaxprs and StableHLO, and its place in the hierarchy.
"""

import itertools
import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.simplefilter("ignore")
NAMES = (
    "bool uint1 uint2 uint4 uint8 uint16 uint32 uint64 int1 int2 int4 int8 int16 int32 int64 "
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
    "bfloat16 float16 float32 float64 complex64 complex128"
).split()
SCALARS = {"i*": 1, "f*": 1.0, "c*": 1j}
NODES = NAMES + list(SCALARS)
PAIRS = list(itertools.combinations_with_replacement(NODES, 2))
SOME = "bool uint8 int8 uint32 int32 bfloat16 float16 float32 i* f* c*".split()
TRIPLES = list(itertools.combinations(SOME, 3))
PARENTS = {
    "generic": np.generic,
    "number": np.number,
    "integer": np.integer,
    "signedinteger": np.signedinteger,
    "unsignedinteger": np.unsignedinteger,
    "inexact": np.inexact,
    "floating": np.floating,
    "complexfloating": np.complexfloating,
    "bool": np.bool_,
}
KINDS = (
    "bool,signed integer,unsigned integer,integral,real floating,complex floating,numeric"
).split(",")


def operand(node):
    return SCALARS[node] if node in SCALARS else np.dtype(node)


def join(nodes):
    try:
        dtype, weak = jax.dtypes.result_type(*map(operand, nodes), return_weak_type_flag=True)
    except Exception as error:
        return type(error).__name__
    return [dtype.name, weak]


def joins(groups):
    return {",".join(nodes): join(nodes) for nodes in groups}


def names(name):
    dtype = np.dtype(name)
    aval = jax.core.ShapedArray((2,), dtype)
    lowered = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((), dtype))
    return {
        "short": aval.str_short(short_dtypes=True).split("[")[0],
        "mlir": lowered.as_text().split("%arg0: tensor<")[1].split(">)")[0].split("> {")[0],
        "bits": jax.dtypes.itemsize_bits(dtype),
    }


def recorded():
    with jax.enable_x64(True):
        wide = joins(PAIRS + TRIPLES)
        texts = {name: names(name) for name in NAMES}
    with jax.numpy_dtype_promotion("strict"):
        strict = joins(PAIRS)
    dtypes = {name: np.dtype(name) for name in NAMES}
    return {
        "jax": jax.__version__,
        "x64": wide,
        "x32": joins(PAIRS + TRIPLES),
        "strict": strict,
        "names": texts,
        "canonical": {name: jax.dtypes.canonicalize_dtype(name).name for name in NAMES},
        "issubdtype": {
            f"{name},{parent}": bool(jnp.issubdtype(dtype, PARENTS[parent]))
            for name, dtype in dtypes.items()
            for parent in PARENTS
        },
        "isdtype": {
            f"{name},{kind}": bool(jnp.isdtype(dtype, kind))
            for name, dtype in dtypes.items()
            for kind in KINDS
        },
        "can_cast": {
            f"{a},{b}": bool(jnp.can_cast(dtypes[a], dtypes[b])) for a in NAMES for b in NAMES
        },
    }


def compact(value):
    # One line per entry of each table: readable in a diff, and a tenth of the indented size.
    parts = []
    for key in sorted(value):
        if isinstance(value[key], dict):
            rows = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value[key].items())]
            parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(rows) + "\n}")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value[key])}")
    return "{" + ",\n".join(parts) + "}"


print(compact(recorded()), file=sys.stdout)
