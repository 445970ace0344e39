"""Arrays among other libraries: NumPy, SciPy, matplotlib, pandas, scikit-learn, torch, mypy."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base.native import extension

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
    assert (ROOT / "primal" / "py.typed").exists()
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
         str(here / "sample.py"), str(here / "typed_program.py")],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_typed_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.ecosystem.typed_program import main

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(main())
    assert "z = 1.0" in capsys.readouterr().out


def test_scipy_minimises_interpolates_and_solves() -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
    interpolate = pytest.importorskip("scipy.interpolate")
    sparse = pytest.importorskip("scipy.sparse.linalg")

    @primal.jit
    def loss(p: Any) -> Any:
        return jnp.sum((p - jnp.array([1.0, 2.0])) ** 2) + p[0] ** 4

    def slope(p: Any) -> np.ndarray:  # SciPy's line search steps to 1e50
        return np.asarray(primal.grad(loss)(p), np.float64)

    for method, more in (("BFGS", {}), ("L-BFGS-B", {}), ("CG", {}),
                         ("Newton-CG", {"hess": primal.hessian(loss)})):  # fmt: skip
        found = optimize.minimize(
            lambda p: float(loss(p)), np.zeros(2), jac=slope, method=method, **more
        )
        np.testing.assert_allclose(found.x, [0.5898, 2.0], atol=2e-2)
    root = optimize.root(lambda z: z**2 - jnp.array([4.0, 9.0]), jnp.ones(2), tol=1e-4)
    np.testing.assert_allclose(root.x, [2.0, 3.0], rtol=1e-3)
    grid = jnp.linspace(0.0, 1.0, 9)
    at = jnp.array([0.3, 0.6])
    np.testing.assert_allclose(interpolate.CubicSpline(grid, grid**2)(at), at**2, rtol=1e-4)
    system = sparse.LinearOperator((3, 3), matvec=lambda v: 2 * jnp.ravel(jnp.asarray(v)))
    np.testing.assert_allclose(sparse.cg(system, jnp.ones(3))[0], [0.5] * 3, rtol=1e-5)
    product = pytest.importorskip("scipy.sparse").csr_matrix(matrix()) @ jnp.ones(3)
    np.testing.assert_allclose(product, [6.0, 15.0])


def test_numpy_masks_are_not_forgotten() -> None:
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for call in (jnp.sin, jnp.asarray, primal.jit(jnp.sum), lambda x: jnp.ones(2) + x):
        with pytest.raises(ValueError, match="masked"):
            call(masked)
    assert jnp.asarray(masked.filled(0.0)).tolist() == [0.0, 2.0]


def test_numpy_ufuncs_and_testing() -> None:
    x, host = matrix(), np.asarray(matrix())
    for out in (np.sin(x), np.add(x, host), np.add.reduce(x), np.multiply.outer(x[0], x[0])):
        assert isinstance(out, np.ndarray)
    into = np.zeros((2, 3), np.float32)
    np.add(x, x, out=into)
    np.testing.assert_array_equal(into, 2 * host)
    np.testing.assert_array_less(x, x + 1)
    np.testing.assert_allclose(x, host)
    assert np.arange(9)[x.astype(int)].tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.skipif(
    extension is None and sys.version_info < (3, 12),
    reason="before Python 3.12 only the extension can offer the buffer protocol",
)
def test_memory_is_seen_by_others() -> None:
    x = matrix()
    assert memoryview(x).shape == (2, 3) and bytes(x) == np.asarray(x).tobytes()


def test_pandas_both_ways() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    series = pandas.Series(jnp.arange(3.0))
    assert series.dtype == np.float32 and series.sum() == 3.0
    assert isinstance(series + jnp.arange(3.0), pandas.Series)
    frame = pandas.DataFrame({"a": jnp.arange(3), "b": jnp.ones(3)})
    frame["c"] = jnp.zeros(3)
    assert frame.dtypes.tolist() == [np.int32, np.float32, np.float32]
    assert jnp.asarray(frame).shape == (3, 3) and jnp.array(series).tolist() == [0.0, 1.0, 2.0]
    log = pandas.DataFrame([{"loss": jnp.float32(1.0)}, {"loss": jnp.array(3.0)}])
    assert log.astype(float)["loss"].mean() == 2.0


def test_scikit_learn_classifies_and_splits() -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    from sklearn.decomposition import PCA
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = primal.random.normal(primal.random.key(0), (80, 3))
    y = (x[:, 0] > 0).astype(int)
    train, test, seen, unseen = train_test_split(x, y, random_state=0)
    model = make_pipeline(StandardScaler(), PCA(3), linear.LogisticRegression())
    assert accuracy_score(unseen, model.fit(train, seen).predict(test)) > 0.8


def test_everything_public_is_pickled_and_copied() -> None:
    for value in (matrix(), jnp.arange(3, dtype=jnp.bfloat16), primal.random.key(0), jnp.float32,
                  primal.tree.structure({"a": (1,)}), jnp.linalg.svd):  # fmt: skip
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert repr(again) == repr(value)
    for ufunc in (jnp.add, jnp.logaddexp, jnp.bitwise_xor):
        assert pickle.loads(pickle.dumps(ufunc)) is ufunc and copy.copy(ufunc) is ufunc
    box = io.BytesIO()
    np.savez(box, a=matrix(), b=matrix()[0])
    box.seek(0)
    assert np.load(box)["b"].tolist() == [1.0, 2.0, 3.0]


def test_ipython_completes_and_displays() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    ip = shell.InteractiveShell.instance()
    ip.user_ns.update(x=matrix(), jnp=jnp, primal=primal)
    (shown,) = ip.display_formatter.format(ip.user_ns["x"])[0].values()
    assert shown == repr(matrix())
    for name in ("segment_sum", "segment_max"):
        assert name in dir(primal.ops)
    assert "sum(" in ip.object_inspect("jnp.sum")["definition"]
