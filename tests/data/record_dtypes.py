"""Recipe of `dtypes.json`: run with the Python of the peer environment (real JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_dtypes.py > tests/data/dtypes.json

Records, for every pair of lattice nodes (dtypes and the weak Python scalar kinds), JAX's result type with the
64-bit switch on and off, the error where there is none, and per dtype the name in jaxprs and in StableHLO.
"""

import itertools
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.simplefilter("ignore")
NAMES = [
    "bool", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "int2", "int4", "int8", "int16", "int32", "int64",
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
SCALARS = {"i*": 1, "f*": 1.0, "c*": 1j}
NODES = NAMES + list(SCALARS)


def operand(node):
    return SCALARS[node] if node in SCALARS else np.dtype(node)


def join(nodes):
    try:
        dtype, weak = jax.dtypes.result_type(*map(operand, nodes), return_weak_type_flag=True)
        return [dtype.name, weak]
    except Exception as e:
        return type(e).__name__


def weak_array(node, dtype):
    return jax.lax.full((), 1, dtype)


def table():
    pairs = {f"{a},{b}": join((a, b)) for a, b in itertools.combinations_with_replacement(NODES, 2)}
    triples = {}
    some = ["bool", "uint8", "int8", "uint32", "int32", "bfloat16", "float16", "float32", "i*", "f*", "c*"]
    for t in itertools.combinations(some, 3):
        triples[",".join(t)] = join(t)
    return {"pairs": pairs, "triples": triples}


def strict():
    with jax.numpy_dtype_promotion("strict"):
        return {f"{a},{b}": join((a, b)) for a, b in itertools.combinations_with_replacement(NODES, 2)}


def names():
    out = {}
    with jax.enable_x64(True):
        for n in NAMES:
            dtype = np.dtype(n)
            aval = jax.core.ShapedArray((2,), dtype)
            try:
                text = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((), dtype)).as_text()
                mlir = text.split("%arg0: tensor<")[1].split(">)")[0].split("> {")[0]
            except Exception as e:
                mlir = type(e).__name__
            out[n] = {"short": aval.str_short(short_dtypes=True).split("[")[0], "mlir": mlir,
                      "bits": jax.dtypes.itemsize_bits(dtype)}  # fmt: skip
    return out


def subtypes():
    parents = ["generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating",
               "complexfloating", "bool"]  # fmt: skip
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
             "numeric"]  # fmt: skip
    return {
        "issubdtype": {f"{n},{p}": bool(jnp.issubdtype(np.dtype(n), getattr(np, p if p != "bool" else "bool_")))
                       for n in NAMES for p in parents},
        "isdtype": {f"{n},{k}": bool(jnp.isdtype(np.dtype(n), k)) for n in NAMES for k in kinds},
        "can_cast": {f"{a},{b}": bool(jnp.can_cast(np.dtype(a), np.dtype(b))) for a in NAMES for b in NAMES},
    }  # fmt: skip


with jax.enable_x64(True):
    wide = table()
json.dump({"jax": jax.__version__, "x64": wide, "x32": table(), "strict": strict(), "names": names(), **subtypes(),
           "canonical": {n: jax.dtypes.canonicalize_dtype(n).name for n in NAMES}},
          __import__("sys").stdout, indent=0, sort_keys=True)  # fmt: skip
