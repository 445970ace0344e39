"""Arrays among other libraries: NumPy, SciPy, matplotlib, pandas, scikit-learn, torch, mypy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primal
import primal.numpy as jnp

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"


def matrix() -> primal.Array:
    return jnp.arange(6.0).reshape(2, 3) + 1


def test_numpy_sees_the_memory_without_a_copy() -> None:
    x = matrix()
    host = np.asarray(x)
    assert np.shares_memory(host, np.asarray(x))
    assert not host.flags.writeable
    assert np.array(x).flags.writeable
    assert np.asarray(x, np.int32).dtype == np.int32


def test_numpy_functions_take_arrays() -> None:
    x = matrix()
    host = np.asarray(x)
    np.testing.assert_array_equal(np.sin(x), np.sin(host))
    np.testing.assert_array_equal(np.concatenate([x, host]), np.concatenate([host, host]))
    np.testing.assert_allclose(np.linalg.norm(x), np.linalg.norm(host))
    assert np.mean(x) == host.mean()
    # Operators give our arrays, whichever side NumPy's are on.
    assert isinstance(host + x, primal.Array) and isinstance(np.float32(2) * x, primal.Array)


def test_ours_take_theirs() -> None:
    host = np.arange(3, dtype=np.float32)
    assert isinstance(jnp.sin(host), primal.Array)
    assert jnp.add(host, 1).dtype == np.float32
    assert primal.jit(lambda x: x * 2)(host).tolist() == [0.0, 2.0, 4.0]
    assert jnp.from_dlpack(host).tolist() == [0.0, 1.0, 2.0]


def test_numbers_convert() -> None:
    one = jnp.array(1)
    assert [10, 20][one] == 20 and list(range(one)) == [0]
    assert f"{jnp.array(1.5):.2f}" == "1.50" and hex(jnp.array(10)) == "0xa"
    assert [float(v) for v in matrix()[0]] == [1.0, 2.0, 3.0]


def test_scipy() -> None:
    linalg = pytest.importorskip("scipy.linalg", reason="SciPy is not installed")
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    x = matrix()
    np.testing.assert_allclose(linalg.svdvals(x), np.linalg.svd(np.asarray(x))[1], rtol=1e-5)
    assert sparse.csr_matrix(x).nnz == 6
    np.testing.assert_allclose(stats.norm.pdf(x), stats.norm.pdf(np.asarray(x)))


def test_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots()
    x = matrix()
    (line,) = axes.plot(x[0], x[1])
    np.testing.assert_array_equal(line.get_ydata(), [4.0, 5.0, 6.0])
    axes.imshow(x)
    axes.scatter(x[0], x[1], c=x[0])
    plt.close(figure)


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(matrix(), columns=["a", "b", "c"])
    assert frame["b"].tolist() == [2.0, 5.0]
    assert jnp.asarray(frame["b"].to_numpy()).tolist() == [2.0, 5.0]


def test_scikit_learn() -> None:
    models = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    x = jnp.arange(4.0)[:, None]
    fit = models.LinearRegression().fit(x, 2 * x[:, 0] + 1)
    np.testing.assert_allclose(fit.predict(x), [1.0, 3.0, 5.0, 7.0], rtol=1e-5)


TORCH = """
import sys
try:
    import torch
except ImportError:
    sys.exit(77)
import primal, primal.numpy as jnp
x = jnp.arange(3.0)
t = torch.from_dlpack(x)
assert t.tolist() == [0.0, 1.0, 2.0]
back = jnp.from_dlpack(torch.arange(4, dtype=torch.int32))
assert back.tolist() == [0, 1, 2, 3] and back.dtype == "int32"
assert jnp.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).dtype == jnp.bfloat16
assert torch.asarray(x).tolist() == [0.0, 1.0, 2.0]
assert jnp.asarray(torch.ones(2)).tolist() == [1.0, 1.0]
"""


def test_torch_both_ways() -> None:
    python = str(PEERS) if PEERS.exists() else sys.executable
    done = subprocess.run(
        [python, "-c", TORCH],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode == 77:
        pytest.skip("torch is not installed, here or among the peers")
    assert done.returncode == 0, done.stderr


def test_text_forms() -> None:
    x = matrix()
    assert repr(x) == "Array([[1., 2., 3.],\n       [4., 5., 6.]], dtype=float32)"
    assert str(x) == "[[1. 2. 3.]\n [4. 5. 6.]]"
    # IPython shows __repr__ where there is no method of its own.
    pretty = pytest.importorskip("IPython.lib.pretty", reason="IPython is not installed")
    assert pretty.pretty(x) == repr(x)


def test_help_shows_signature_law_and_example() -> None:
    import pydoc

    text = pydoc.plain(pydoc.render_doc(jnp.sum))
    assert "sum(a" in text and "Σ" in text and ">>>" in text


def test_types_of_a_users_program() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    sample = Path(__file__).with_name("sample.py")
    assert (ROOT / "primal" / "py.typed").exists()
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(sample)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
