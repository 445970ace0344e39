"""Random reads and updates, out of bounds and badly cast ones too, beside the peer library.

Skipped where the peer is not installed; nothing else rests on it.
"""

import json
import random
import warnings

import numpy as np

import primal.numpy as jnp

COUNT = 40
OPS = ["get", "set", "add", "mul", "min", "max", "subtract", "divide", "power"]

# Runs in both libraries: a case becomes [values, dtype, weak type] or an error class, and warnings.
RUN = """
def index_of(items):
    made = []
    for kind, value in items:
        if kind == "slice":
            made.append(slice(*value))
        elif kind == "array":
            made.append(np.array(value[0], value[1]))
        else:
            made.append({"none": None, "dots": ...}.get(kind, value))
    return tuple(made)


def run(case):
    shape, items, dtype, op, mode, value = case
    index = index_of(items)
    x = jnp.asarray((np.arange(np.prod(shape, dtype=int)) % 7 + 1).reshape(shape).astype(dtype))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ref = x.at[index]
            if op == "get":
                got = ref.get(mode=mode)
            else:
                if isinstance(value, str):
                    part = ref.get().shape
                    value = jnp.asarray(
                        (np.arange(np.prod(part, dtype=int)).reshape(part) % 3 + 1).astype(
                            dtype if value == "own" else value
                        )
                    )
                got = getattr(ref, op)(value, mode=mode)
            values = np.asarray(got).astype("complex64")
            out = [values.real.tolist(), values.imag.tolist(), str(got.dtype), bool(got.weak_type)]
        except Exception as error:
            out = type(error).__name__
    return [out, sorted({w.category.__name__ for w in caught})]
"""


def draw_index(draw, shape):
    items = []
    common = draw.choice([(), (2,), (3, 1), (1,)])
    for n in shape:
        if draw.random() < 0.15:
            items.append(["none", None])
        kind = draw.random()
        if kind < 0.25:
            items.append(["slice", [draw.choice([None, -7, -2, 0, 1, 2]),
                                    draw.choice([None, -1, 0, 2, 9]),
                                    draw.choice([None, 1, -1, 2, -2])]])
        elif kind < 0.5:
            items.append(["int", draw.randint(-n - 2, n + 1)])
        else:
            own = common[len(common) - draw.randint(0, len(common)) :]
            values = np.array([draw.randint(-n - 2, n + 1) for _ in range(int(np.prod(own)))])
            dtype = draw.choice(["int8", "int32", "uint8"])
            values = np.abs(values) if dtype == "uint8" else values
            items.append(["array", [values.reshape(own).tolist(), dtype]])
        if draw.random() < 0.1:
            break
    if draw.random() < 0.3:
        items.insert(draw.randint(0, len(items)), ["dots", None])
    return items


def draw_case(draw):
    shape = [draw.randint(1, 4) for _ in range(draw.randint(0, 3))]
    return [
        shape,
        draw_index(draw, shape),
        draw.choice(["float32", "int32", "bool", "complex64", "int8"]),
        draw.choice(OPS),
        draw.choice([None, "clip", "fill", "drop"]),
        draw.choice([1, 2, 0.5, "own", "int8"]),
    ]


def test_random_cases_agree_with_the_peer(peer):
    draw = random.Random(11)
    cases = [draw_case(draw) for _ in range(COUNT)]
    text = json.dumps(cases)
    code = (
        "import json, warnings\nimport numpy as np\nimport jax.numpy as jnp\n"
        f"{RUN}\nprint(json.dumps([run(c) for c in json.loads({text!r})]))"
    )
    theirs = json.loads(peer(code, timeout=300).stdout.splitlines()[-1])
    space = {"np": np, "jnp": jnp, "warnings": warnings}
    exec(RUN, space)
    for case, want in zip(cases, theirs, strict=True):
        got = space["run"](case)
        assert got[1] == want[1], case
        if isinstance(want[0], str) or isinstance(got[0], str):
            assert got[0] == want[0], case
            continue
        assert got[0][2:] == want[0][2:], case
        for a, b in zip(got[0][:2], want[0][:2], strict=True):
            assert np.shape(a) == np.shape(b), case
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=str(case))
