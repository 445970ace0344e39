"""Writes docs/coverage.md: every public name of JAX's documented modules, present or absent.

    python tools/coverage.py            # write the table
    python tools/coverage.py --check    # fail if it is not current or a name lacks a reason

The names are recorded in tests/data/jax_names.json. A name that is absent needs a reason in
`ABSENT`; writing tells of reasons that no absent name needs any more.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ROOT / "tests" / "data" / "jax_names.json"
PAGE = ROOT / "docs" / "coverage.md"

DEVICES = "later: several devices, meshes and shardings"
HOSTS = "later: several hosts"
EXPORT = "later: export and serialised programs"
PALLAS = "later: kernels"
FFI = "later: foreign functions"
SPARSE = "later: sparse arrays"
PROFILE = "later: profiling"
RECORDS = (
    "an operation is one callable record here, without rules kept in tables beside it; see "
    "docs/architecture.md"
)
INTERNAL = "an implementation detail of JAX, not of its documented interface"

# Pattern of "module.name" -> why it is absent. The first that fits counts.
ABSENT: dict[str, str] = {
    "jax.sharding.*": DEVICES,
    "jax.P": DEVICES,
    "jax.NamedSharding": DEVICES,
    "jax.Shard": DEVICES,
    "jax.make_mesh": DEVICES,
    "jax.make_array_from_*": DEVICES,
    "jax.pmap": DEVICES,
    "jax.shard_map": DEVICES,
    "jax.smap": DEVICES,
    "jax.set_mesh": DEVICES,
    "jax.reshard": DEVICES,
    "jax.memory": DEVICES,
    "jax.auto_pcast": DEVICES,
    "jax.remove_size_one_mesh_axis_from_type": DEVICES,
    "jax.host_*": HOSTS,
    "jax.lax.ragged_all_to_all": DEVICES,
    "jax.lax.psend": DEVICES,
    "jax.lax.precv": DEVICES,
    "jax.lax.*_p": RECORDS,
    "jax.lax.linalg.*_p": RECORDS,
    "jax.random.random_gamma_p": RECORDS,
    "jax.custom_derivatives.remat_opt_p": RECORDS,
    "jax.allow_f16_reductions": INTERNAL,
    "jax.array_garbage_collection_guard": INTERNAL,
    "jax.jax2tf_associative_scan_reductions": INTERNAL,
    "jax.make_user_context": INTERNAL,
    "jax.softmax_custom_jvp": INTERNAL,
    "jax.thread_guard": INTERNAL,
    "jax.ds": PALLAS,
    "jax.profiler.*": PROFILE,
    "jax.distributed.*": HOSTS,
    "jax.export.*": EXPORT,
    "jax.ffi.*": FFI,
    "jax.experimental.sparse.*": SPARSE,
    "jax.experimental.mesh_utils.*": DEVICES,
    "jax.experimental.multihost_utils.*": HOSTS,
    "jax.experimental.layout.with_layout_constraint": DEVICES,
    "jax.experimental.custom_partitioning.*": DEVICES,
    "jax.experimental.serialize_executable.*": EXPORT,
    "jax.experimental.pallas.*": PALLAS,
    "jax.experimental.ode.*": INTERNAL,
    "jax.experimental.jet.*": INTERNAL,
    "jax.experimental.EArray": INTERNAL,
    "jax.experimental.cur_qdd": INTERNAL,
    "jax.experimental.primal_tangent_dtype": INTERNAL,
    "jax.extend.random.*": RECORDS,
    "jax.extend.*": INTERNAL,
    "jax.interpreters.*": RECORDS,
    "jax.core.*": INTERNAL,
    "jax.api_util.*": INTERNAL,
}


def present(module: str, names: list[str]) -> set[str]:
    """Those of JAX's names of a module that Primal has."""
    ours = "primal" + module.removeprefix("jax")
    try:
        found = importlib.import_module(ours)
    except ModuleNotFoundError as error:
        # Only a module that is not there: one that fails to import is a fault, and so is a
        # package that is not found at all, of which the table would say that it has nothing.
        if error.name and error.name != "primal" and ours.startswith(error.name):
            return set()
        raise
    return {name for name in names if hasattr(found, name)}


def reason(full: str) -> str | None:
    """The reason for the absence of "module.name", if one is given."""
    return next((why for pattern, why in ABSENT.items() if fnmatchcase(full, pattern)), None)


def page() -> tuple[str, list[str], list[str]]:
    """The table, names without reason, and reasons without names."""
    recorded = json.loads(NAMES.read_text())
    lines, faults, used = [], [], set()
    total = there = 0
    for module, names in recorded.items():
        have = present(module, names)
        total, there = total + len(names), there + len(have)
        absent: dict[str, list[str]] = {}
        for name in names:
            if name in have:
                continue
            full = f"{module}.{name}"
            used |= {p for p in ABSENT if fnmatchcase(full, p)}
            why = reason(full)
            if why is None:
                faults.append(f"{full} is absent without a reason")
            else:
                absent.setdefault(why, []).append(name)
        lines.append(f"\n## `{module}`: {len(have)} of {len(names)}\n")
        if have:
            lines.append("Present: " + ", ".join(f"`{n}`" for n in sorted(have)) + ".\n")
        for why, missing in absent.items():
            lines.append(f"Absent ({why}): " + ", ".join(f"`{n}`" for n in missing) + ".\n")
    head = (
        "# Coverage of JAX's public names\n\n"
        "Generated by `python tools/coverage.py` from the names of JAX 0.10.2 "
        "(`tests/data/jax_names.json`). What is absent has a reason.\n\n"
        f"{there} of {total} names are present.\n"
    )
    return head + "\n".join(lines), faults, [p for p in ABSENT if p not in used]


def main() -> int:
    parser = argparse.ArgumentParser(description="The table of JAX's names.")
    parser.add_argument("--check", action="store_true", help="fail instead of writing")
    check = parser.parse_args().check
    sys.path.insert(0, str(ROOT))
    text, faults, idle = page()
    if check and (not PAGE.exists() or PAGE.read_text() != text):
        faults.append("docs/coverage.md is not current: run python tools/coverage.py")
    if not check:
        PAGE.write_text(text)
        for pattern in idle:
            print(f"nothing is absent that fits {pattern!r}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
