"""Measure one case under one library, in this process, and print the figure as JSON.

`run.py` starts this file in the environment of the library, in turn with the other libraries; it is
of no use to call it by hand except to look into one case:

    python benchmarks/measure.py benchmarks/cases/eager_add.py primal
"""

import argparse
import importlib
import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# One sample lasts at least this long, so that the clock's grain and the loop's own cost vanish.
SAMPLE_S = 0.01
REPEATS = 7


def load(path: Path, tiny: bool) -> dict[str, Any]:
    """The names a case file defines; with `tiny` its `TINY` names take the place of the full sizes.

    The functions of the file read their sizes as globals, hence the second step: the dictionary
    that `run_path` returns is a copy of the one that the functions see.
    """
    case = runpy.run_path(str(path))
    if tiny:
        for function in filter(callable, case.values()):
            getattr(function, "__globals__", {}).update(case.get("TINY", {}))
    return case


def prepared(case: dict[str, Any], library: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """The call to be timed, and what waits for its result."""
    if library in ("numpy", "torch"):
        return case[f"setup_{library}"](importlib.import_module(library)), lambda out: out
    jax = importlib.import_module(library)
    jnp, lax = (importlib.import_module(f"{library}.{name}") for name in ("numpy", "lax"))
    return case["setup"](jax, jnp, lax), jax.block_until_ready


def sample(call: Callable[[], Any], wait: Callable[[Any], Any], loops: int) -> float:
    """Seconds that `loops` calls take, the results of the last of them being there at the end."""
    start = time.perf_counter()
    for _ in range(loops):
        out = call()
    wait(out)
    return time.perf_counter() - start


def seconds(case: dict[str, Any], library: str, tiny: bool) -> float:
    """The best time of one call."""
    if "fresh" in case:
        # What a process does once is measured by processes.
        runs = [fresh(case["fresh"](library)) for _ in range(1 if tiny else REPEATS)]
        return min(runs)
    call, wait = prepared(case, library)
    loops = 1 if tiny else case.get("LOOPS", 0)
    took = sample(call, wait, max(loops, 1))
    if tiny:
        return took
    if not loops:
        loops = 1
        while (took := sample(call, wait, loops)) < SAMPLE_S:
            loops = max(2 * loops, int(1.2 * loops * SAMPLE_S / max(took, 1e-6)))
    return min(sample(call, wait, loops) for _ in range(case.get("REPEATS", REPEATS))) / loops


def fresh(code: str) -> float:
    """Run code that prints a number of seconds in a new interpreter, and return that number.

    Bytecode is kept between runs, as it is for any installed package.
    """
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", type=Path)
    parser.add_argument("library", choices=["primal", "jax", "numpy", "torch"])
    parser.add_argument("--tiny", action="store_true", help="one call of the smallest size")
    args = parser.parse_args()
    # JAX says on stderr that it found no GPU; it is not told apart from what goes wrong.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    case = load(args.case, args.tiny)
    if args.library == "primal":
        os.environ.update(case.get("ENV", {}))
        sys.path.insert(0, str(ROOT))
    print(json.dumps({"seconds": seconds(case, args.library, args.tiny)}))


if __name__ == "__main__":
    main()
