"""Measure Primal beside its peers, print the ratios and write RESULTS.md.

    make bench                              every case
    make bench ARGS="eager_add jit_call"    some: their rows are renewed, the others stay
    make bench ARGS="import --rounds 9"     with more processes, where the machine is busy
    python benchmarks/run.py --tiny         one call of each, Primal alone, no figures

Each figure is the best of several processes, and the libraries take turns: absolute times drift
with the machine and its neighbours, so the ratio within one run is what counts.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import measure
from llvmlite.binding import get_host_cpu_name
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER = ROOT / ".venv-peers" / "bin" / "python"
SCALE = {"s": 1.0, "ms": 1e3, "µs": 1e6}


@dataclass
class Row:
    """One case: its file, what it says about itself, and the best seconds of each library."""

    path: Path
    case: dict[str, Any]
    best: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def libraries(self) -> list[str]:
        guests = self.case.get("GUESTS", ("numpy", "torch"))
        fresh = "fresh" in self.case
        return ["primal", "jax", *(g for g in guests if fresh or f"setup_{g}" in self.case)]

    @property
    def ratio(self) -> float | None:
        both = "primal" in self.best and "jax" in self.best
        return self.best["primal"] / self.best["jax"] if both else None

    def figure(self, library: str) -> str:
        if library in self.errors:
            return "failed"
        if library not in self.best:
            return ""
        value = self.best[library] * SCALE[self.case["UNIT"]] / self.case.get("PER", 1)
        return f"{value:.3g}" if value < 100 else f"{value:,.0f}"

    def cells(self) -> list[str]:
        guests = [f"{lib} {self.figure(lib)}" for lib in self.libraries[2:] if self.figure(lib)]
        return [
            self.case["NAME"],
            self.case["UNIT"],
            self.figure("primal"),
            self.figure("jax"),
            "" if self.ratio is None else f"{self.ratio:.3f}",
            f"{self.case['TARGET']:.3f}",
            "" if self.ratio is None else "yes" if self.ratio <= self.case["TARGET"] else "no",
            ", ".join(guests),
            f"{datetime.now(UTC):%Y-%m-%d}, {get_host_cpu_name()}",
        ]


COLUMNS = ["what", "unit", "Primal", "JAX", "ratio", "target", "reached", "others", "measured"]


def run(row: Row, library: str, tiny: bool) -> None:
    """One process of one library for one case; the best time so far stays in the row."""
    python = sys.executable if library == "primal" else str(PEER)
    command = [python, str(HERE / "measure.py"), str(row.path), library, *["--tiny"][: int(tiny)]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        row.errors[library] = done.stderr.strip()
        return
    took = json.loads(done.stdout)["seconds"]
    row.best[library] = min(took, row.best.get(library, took))


def peer_versions() -> dict[str, str]:
    """The versions of the peers that are installed beside us."""
    code = (
        "import importlib.metadata as m, json\n"
        "have = {d.name: d.version for d in m.distributions()}\n"
        "print(json.dumps({n: have[n] for n in ('jax', 'numpy', 'torch') if n in have}))"
    )
    done = subprocess.run([PEER, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def written(report: Path) -> dict[str, list[str]]:
    """The cells of the rows of an earlier report, by what they measure."""
    lines = report.read_text().splitlines() if report.exists() else []
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:2] == "| "]
    return {row[0]: row for row in rows if len(row) == len(COLUMNS) and row != COLUMNS}


def merged(rows: list[Row], earlier: dict[str, list[str]], names: list[str]) -> list[list[str]]:
    """The cells of all rows in the order of `names`: those of this run, else the earlier ones."""
    cells = earlier | {row.case["NAME"]: row.cells() for row in rows}
    return [cells[name] for name in names if name in cells]


def report(rows: list[list[str]], peers: dict[str, str]) -> str:
    """RESULTS.md."""
    reached = sum(row[6] == "yes" for row in rows)
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    versions = ", ".join(f"{name} {number}" for name, number in peers.items())
    lines = [
        "# Primal beside its peers",
        "",
        f"Primal {ours}, {versions}, Python {platform.python_version()}, "
        f"{os.cpu_count()} CPU cores, {platform.machine()}.",
        "",
        f"{reached} of {len(rows)} targets reached. Absolute times drift between machines; the",
        "ratio Primal / JAX in one run is what counts, and the target is the highest it may be.",
        "Written by `make bench`, which [docs/benchmarks.md](../docs/benchmarks.md) explains.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="names of files in benchmarks/cases (all)")
    parser.add_argument("--rounds", type=int, default=3, help="processes per library (3)")
    parser.add_argument("--tiny", action="store_true", help="one call each, Primal alone")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md", help="where to write")
    args = parser.parse_args()
    known = {path.stem.rstrip("_"): path for path in sorted((HERE / "cases").glob("*.py"))}
    for name in args.cases:
        if name not in known:
            parser.error(f"there is no case {name!r}; there are {', '.join(known)}")
    if args.rounds < 1:
        parser.error(f"--rounds expected at least 1, got {args.rounds}")
    if not args.tiny and not PEER.exists():
        parser.error(f"{PEER.relative_to(ROOT)} is missing: `make peers` makes it")
    args.known = list(known.values())
    args.paths = [known[name] for name in args.cases or known]
    return args


def main() -> int:
    args = parse()
    console = Console()
    rows = [Row(path, measure.load(path, args.tiny)) for path in args.paths]
    peers = {} if args.tiny else peer_versions()
    absent = {"numpy", "torch"} - set(peers)
    plan = [
        (row, library)
        for row in rows
        for _ in range(1 if args.tiny else args.rounds)
        for library in (["primal"] if args.tiny else row.libraries)
        if library not in absent
    ]
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(plan))
        for row, library in plan:
            progress.update(task, description=f"{row.case['NAME']}: {library}")
            if library not in row.errors:
                run(row, library, args.tiny)
            progress.advance(task)
    if args.tiny:
        console.print(f"{sum(not row.errors for row in rows)} of {len(rows)} cases run")
    else:
        table = Table(*COLUMNS)
        for row in rows:
            table.add_row(*row.cells())
        console.print(table)
        # A case that failed keeps the figures that it had.
        names = [measure.load(path, tiny=True)["NAME"] for path in args.known]
        done = [row for row in rows if not row.errors]
        args.out.write_text(report(merged(done, written(args.out), names), peers))
        console.print(f"Written: {args.out}", soft_wrap=True)
    failed = [(row, lib, text) for row in rows for lib, text in row.errors.items()]
    for row, library, text in failed:
        console.print(f"[red]{row.case['NAME']}: {library} failed[/red]")
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
