"""The direction of imports, read from the source: DESIGN's layers as a test.

Beside what import-linter sees, this covers imports inside functions, imports of the facade, the
files where third parties enter, and the length of files.
"""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "primal"

# Lowest first. Names on one line may import each other.
LAYERS = [
    {"base"},
    {"ir"},
    {"ops"},
    {"transforms"},
    {"control"},
    {"engines"},
    {"runtime"},
    {"api"},
    {
        "numpy", "scipy", "random", "nn", "lax", "image", "errors", "tree", "tree_util", "dtypes",
        "typing", "stages", "sharding", "flatten_util", "dlpack", "test_util", "version",
        "segments", "monitoring", "custom_derivatives", "debug", "profiler", "ad_checkpoint",
        "ad", "api_util", "checkpoint_policies", "core", "custom_batching", "ref",
    },
    {"experimental", "example_libraries", "extend", "interpreters"},
    {"compat"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Not only downwards: an engine knows what a program is, and nothing of who makes it.
ENGINES_MAY = {"base", "ir", "engines"}
# The one file where each optional third party enters; None is nowhere.
ENTRY = {
    "jax": None,
    "llvmlite": "primal/engines/cpu/_llvm.py",
    "jaxlib": "primal/engines/xla/_jaxlib.py",
    "optree": "primal/base/pytree/core.py",
}
MAX_LINES = 600
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda


@functools.cache
def imports(source: str, module: str) -> list[tuple[int, str, bool]]:
    """Every import as (line, dotted target, is it inside a function), TYPE_CHECKING's included.

    `from a.b import c` counts as `a.b.c`: whether c is a module or a name, its layer is the same.
    `module` is the dotted name relative imports start from, ending in `__init__` for a package.
    """

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[int, str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((child.lineno, alias.name, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                up = module.split(".")[: -child.level] if child.level else []
                base = ".".join([*up, *filter(None, [child.module])])
                yield from ((child.lineno, f"{base}.{a.name}", inside) for a in child.names)
            elif isinstance(child, ast.Call) and (target := _dynamic(child)):
                yield child.lineno, target, inside
            yield from visit(child, inside or isinstance(child, FUNCTIONS))

    return list(visit(ast.parse(source), False))


def _dynamic(call: ast.Call) -> str | None:
    """The target of `import_module("x")`, `__import__("x")`, `Later("x")`, f-strings by prefix."""
    name = getattr(call.func, "attr", getattr(call.func, "id", None))
    if name not in {"import_module", "__import__", "Later"} or not call.args:
        return None
    target = call.args[0]
    if isinstance(target, ast.JoinedStr) and target.values:
        target = target.values[0]
    return target.value if isinstance(target, ast.Constant) and target.value else None


def faults(source: str, path: str) -> list[str]:
    """What is wrong with one file of the package, `path` being relative to the root."""
    module = path.removesuffix(".py").replace("/", ".")
    layer = module.split(".")[1]
    # primal/__init__.py is the facade: above everything, and it loads submodules on first use.
    facade = path == "primal/__init__.py"
    found = []
    if not facade and layer not in RANK:
        found.append(f"{path}: `{layer}` is not one of the layers")
    for line, target, inside in imports(source, module):
        top, _, rest = target.partition(".")
        other = rest.partition(".")[0]
        if top in ENTRY and path != ENTRY[top]:
            place = f"enters at {ENTRY[top]} alone" if ENTRY[top] else "is never imported"
            found.append(f"{path}:{line}: {top} {place}")
        elif top != "primal" or facade:
            continue
        elif inside and not path.endswith("/__init__.py"):
            found.append(f"{path}:{line}: imports {target} inside a function")
        elif other not in RANK:
            found.append(f"{path}:{line}: imports the facade ({target}); name the layer instead")
        elif layer == "engines" and other not in ENGINES_MAY:
            found.append(f"{path}:{line}: an engine imports {target}; base and ir are all it may")
        elif RANK[other] > RANK.get(layer, len(LAYERS)):
            found.append(f"{path}:{line}: {layer} imports {target}, which is above it")
    if (count := source.count("\n")) > MAX_LINES:
        found.append(f"{path}: {count} lines, {MAX_LINES} allowed; make it a folder of that name")
    return found


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import one another in a ring."""
    while ends := [m for m, nexts in graph.items() if not nexts & graph.keys()]:
        graph = {m: nexts for m, nexts in graph.items() if m not in ends}
    reach = {start: set(nexts) for start, nexts in graph.items()}
    for middle in graph:
        for start in graph:
            if middle in reach[start]:
                reach[start] |= reach[middle]
    rings = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in graph}
    return [list(ring) for ring in sorted(rings) if ring]


def files() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))
    }


def test_the_package_keeps_its_layers() -> None:
    found = [fault for path, source in files().items() for fault in faults(source, path)]
    assert not found, "\n".join(["", *found])


def test_files_of_c_are_short_and_in_use() -> None:
    base = PACKAGE / "base"
    themes = sorted(path.name for path in (base / "fast").glob("*.c"))
    included = re.findall(r'#include "fast/(.*)"', (base / "_fast.c").read_text())
    assert sorted(included) == themes
    texts = {path.name: path.read_text() for path in PACKAGE.rglob("*.[ch]")}
    for name in texts:
        assert name.endswith(".c") or any(f'#include "{name}"' in text for text in texts.values())
    counts = {name: text.count("\n") for name, text in texts.items()}
    assert max(counts.values()) <= MAX_LINES, counts


def test_no_ring_of_modules() -> None:
    known = {path.removesuffix(".py").replace("/", "."): text for path, text in files().items()}
    graph = {}
    for module, source in known.items():
        targets = {target for _, target, inside in imports(source, module) if not inside}
        graph[module] = {named(target, known) for target in targets} - {None, module}
    assert cycles(graph) == []


def named(target: str, known: dict[str, str]) -> str | None:
    """The module an import names: `a.b.c` where there is one, else the `a.b` it is taken from."""
    for name in (target, target.rpartition(".")[0]):
        for module in (name, f"{name}.__init__"):
            if module in known:
                return module
    return None


def test_import_linter_has_the_same_layers() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = config["tool"]["importlinter"]["contracts"][0]["layers"]
    theirs = [{name.strip(" ()") for name in line.split(":")} for line in reversed(lines)]
    assert theirs == LAYERS


PLANTED = [
    ("from primal.ops import shape", "primal/ir/op.py", "above it"),
    ("import primal.numpy as jnp", "primal/api/jit.py", "above it"),
    ("from ..api import jit", "primal/runtime/array.py", "above it"),
    ("from . import api", "primal/lax.py", None),
    ("from primal import api", "primal/control/scan.py", "above it"),
    ("if TYPE_CHECKING:\n    from primal.ops.shape import pad", "primal/ir/op.py", "above it"),
    ("try:\n    import primal.api.jit\nexcept ImportError: x = 1", "primal/ir/op.py", "above it"),
    ("def f():\n    from primal.base import errors", "primal/ops/shape.py", "inside a function"),
    ("class A:\n  def f(self):\n    import primal.ir", "primal/ops/shape.py", "inside a function"),
    ("f = lambda: import_module('primal.ir.op')", "primal/ops/shape.py", "inside a function"),
    ("def f(n):\n  return import_module(f'primal.{n}')", "primal/api/jit.py", "inside a function"),
    ("def f(n):\n    return import_module(f'primal.{n}')", "primal/__init__.py", None),
    ("import primal", "primal/api/jit.py", "the facade"),
    ("from primal import Array", "primal/nn/layers.py", "the facade"),
    ("x = 1", "primal/helpers/text.py", "not one of the layers"),
    ("from primal.ops import shape", "primal/engines/cpu/emit.py", "base and ir are all"),
    ("from primal.transforms.stage import x", "primal/engines/xla/a.py", "base and ir are all"),
    ("from primal.engines.protocol import Engine", "primal/engines/cpu/emit.py", None),
    ("import jax", "primal/numpy/__init__.py", "never imported"),
    ("def f():\n    from jax.numpy import sin", "primal/engines/xla/_jaxlib.py", "never imported"),
    ("x = __import__('jax')", "primal/__init__.py", "never imported"),
    ("from jaxlib import xla_client", "primal/engines/xla/client.py", "_jaxlib.py alone"),
    ("def f():\n    import jaxlib", "primal/engines/xla/_jaxlib.py", None),
    ("import llvmlite.binding", "primal/engines/cpu/emit.py", "_llvm.py alone"),
    ("def f():\n    import llvmlite.binding", "primal/engines/cpu/_llvm.py", None),
    ("def f():\n    import scipy.linalg", "primal/ops/linalg.py", None),
    ("x = 1\n" * 601, "primal/ops/shape.py", "601 lines"),
    ("x = 1\n" * 600, "primal/ops/shape.py", None),
]


@pytest.mark.parametrize(("source", "path", "fault"), PLANTED)
def test_the_checker_finds_planted_faults(source: str, path: str, fault: str | None) -> None:
    found = faults(source, path)
    assert [fault in one for one in found] == [True] if fault else found == []


def test_the_checker_finds_a_planted_ring() -> None:
    ring = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}
    assert cycles(ring) == [["a", "b", "c"]]
    assert cycles({**ring, "c": set()}) == []
