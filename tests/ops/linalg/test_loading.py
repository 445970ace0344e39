"""What the first factorisation loads, in processes of their own."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from primal.ops.linalg import _lapack
from primal.ops.linalg.eig import eig
from primal.ops.linalg.eigh import eigh
from primal.ops.linalg.svd import svd

ALONE = """
import sys, threading
import numpy as np
import primal.numpy as jnp

x = jnp.array([[2.0, 1.0], [1.0, 3.0]])
results = []
threads = [threading.Thread(target=lambda: results.append(jnp.linalg.eigh(x)[0])) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert len(results) == 8
assert "scipy.linalg._flapack" in sys.modules
assert "scipy" not in sys.modules, "the packages take 0.35 s to import"

import scipy.linalg.lapack
from scipy.linalg import _flapack

assert scipy.linalg.lapack._flapack is _flapack is sys.modules["scipy.linalg._flapack"]
np.testing.assert_allclose(scipy.linalg.eigh(np.asarray(x))[0], results[0], rtol=1e-6)
np.testing.assert_allclose(jnp.linalg.qr(x + 1j * x)[0] @ jnp.linalg.qr(x + 1j * x)[1], x + 1j * x,
                           rtol=1e-5)
"""

AFTER = """
import scipy.linalg
import primal.numpy as jnp
assert jnp.linalg.svd(jnp.eye(2))[1].tolist() == [1.0, 1.0]
"""

# As editable builds are found: by a finder of their own, which no other knows.
ELSEWHERE = """
import importlib.machinery, sys

by_path = importlib.machinery.PathFinder.find_spec

class Finder:
    find_spec = staticmethod(by_path)

def others(name, path=None, target=None):
    return None if name.startswith("scipy.linalg") else by_path(name, path, target)

importlib.machinery.PathFinder.find_spec = others
sys.meta_path.append(Finder)

import primal.numpy as jnp

assert jnp.linalg.svd(jnp.eye(2))[1].tolist() == [1.0, 1.0]
assert "scipy.linalg" in sys.modules
"""


def test_lapack_is_loaded_without_the_package_around_it():
    for program in (ALONE, AFTER, ELSEWHERE):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_stacks_are_called_alike_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)

    def found() -> list[Any]:
        wants = {"compute_left_eigenvectors": True, "compute_right_eigenvectors": True}
        svd_wants = {"full_matrices": True, "compute_uv": True, "algorithm": "gesdd"}
        return [
            *eigh.impl(a, lower=True, compute_eigenvectors=True),
            *eig.impl(a, **wants),
            *svd.impl(a, **svd_wants),
        ]

    want = found()
    monkeypatch.setattr(_lapack, "_call_each", _lapack._by_ctypes)
    for x, y in zip(found(), want, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_loop_that_numpy_does_not_have_is_named() -> None:
    with pytest.raises(NotImplementedError, match=f"'svd_of_rings'.*{np.__version__}"):
        _lapack.numpys_loop("svd_of_rings")
