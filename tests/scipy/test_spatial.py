"""Rotations against SciPy's, single and several, and interpolation between them."""

import numpy as np
import pytest
import scipy.spatial.transform as reference

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.spatial.transform import Rotation, Slerp

QUATERNIONS = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("quat", [QUATERNIONS, QUATERNIONS[0]], ids=["several", "single"])
def test_forms_are_scipys(quat) -> None:
    wanted = reference.Rotation.from_quat(quat)
    with enable_x64(True):
        got = primal.jit(Rotation.from_quat)(quat)
        for name in ("as_matrix", "as_mrp", "as_rotvec", "as_quat", "magnitude"):
            np.testing.assert_allclose(getattr(got, name)(), getattr(wanted, name)(), atol=1e-12)
        for seq in ("xyz", "ZYX", "zxz", "XYX", "yzx", "YXZ"):
            angles = wanted.as_euler(seq)
            np.testing.assert_allclose(got.as_euler(seq), angles, atol=1e-9)
            back = Rotation.from_euler(seq, angles).as_matrix()
            np.testing.assert_allclose(back, wanted.as_matrix(), atol=1e-9)
        for form in ("matrix", "mrp", "rotvec"):
            made = getattr(Rotation, f"from_{form}")(getattr(wanted, f"as_{form}")())
            np.testing.assert_allclose(made.as_matrix(), wanted.as_matrix(), atol=1e-12)
        product = (got * got.inv()).magnitude()
        np.testing.assert_allclose(product, 0, atol=1e-7)


def test_slerp() -> None:
    with enable_x64(True):
        times, at = np.arange(5.0), np.array([0.5, 1.0, 3.7])
        wanted = reference.Slerp(times, reference.Rotation.from_quat(QUATERNIONS))(at)
        got = Slerp.init(jnp.array(times), Rotation.from_quat(QUATERNIONS))(at)
        np.testing.assert_allclose(got.as_matrix(), wanted.as_matrix(), atol=1e-12)
