"""Writes threefry.json: run where JAX is installed, `python record_threefry.py > threefry.json`."""

import json

import jax
import numpy as np
from jax import random

SEEDS = (18, 2**40 + 3)
SHAPES = ((), (1,), (2,), (3,), (5,), (2, 0, 3))


def figures(x):
    return np.asarray(x).ravel().tolist()


def main():
    jax.config.update("jax_enable_x64", True)
    bits, splits = [], []
    for scheme in (False, True):
        jax.config.update("jax_threefry_partitionable", scheme)
        for seed in SEEDS:
            key = random.PRNGKey(seed)
            case = {"scheme": scheme, "seed": seed}
            for width in (8, 16, 32, 64):
                for shape in SHAPES if seed == 18 else ((3,),):
                    values = figures(random.bits(key, shape, f"uint{width}"))
                    bits.append({**case, "width": width, "shape": shape, "values": values})
            for shape in ((2,), (1,), (3,), (2, 3), (0,), (5, 0)) if seed == 18 else ():
                splits.append({**case, "shape": shape, "values": figures(random.split(key, shape))})
    rows = {"bits": bits, "splits": splits}
    print("{")
    print(f' "source": "JAX {jax.__version__}: random.bits and random.split of PRNGKey(seed)",')
    for i, (name, cases) in enumerate(rows.items()):
        lines = ",\n".join(f"  {json.dumps(c)}" for c in cases)
        print(f' "{name}": [\n{lines}\n ]{"," if i == 0 else ""}')
    print("}")


if __name__ == "__main__":
    main()
