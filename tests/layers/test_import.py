"""What `import primal` costs, counted in modules."""

import json

HEAVY = [
    "scipy",
    "jaxlib",
    "jax",
    "llvmlite",
    "optree",
    "opt_einsum",
    "rich",
    "matplotlib",
    "hypothesis",
    "pytest",
]


def _loaded(fresh_process, code: str) -> set[str]:
    done = fresh_process(f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))")
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_import_loads_numpy_and_little_else(fresh_process) -> None:
    loaded = _loaded(fresh_process, "import primal")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_import_of_numpy_side_loads_no_more(fresh_process) -> None:
    code = "import primal as jax, primal.numpy as jnp\nfrom primal import lax"
    loaded = _loaded(fresh_process, code)
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_import_starts_no_thread_and_no_process(fresh_process) -> None:
    done = fresh_process(
        "import os, threading\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "import numpy\n"
        "numpy_s = len(os.listdir('/proc/self/task'))\n"
        "import primal\n"
        "assert len(os.listdir('/proc/self/task')) == numpy_s, 'a thread was started'\n"
        "assert threading.active_count() == 1\n"
    )
    assert done.stderr == ""


def test_numpy_is_loaded_from_the_top(fresh_process) -> None:
    done = fresh_process(
        "import json, sys\nimport primal\n"
        "print(json.dumps([n for n in sys.modules if n.partition('.')[0] in ('numpy', 'primal')]))"
    )
    order = json.loads(done.stdout)  # as their loading ended
    ours = [name for name in order[: order.index("numpy")] if name.startswith("primal")]
    assert ours == [], "NumPy's imports began beneath ours: see primal/__init__.py"
