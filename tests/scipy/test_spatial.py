"""Rotations against SciPy's, single and several, and interpolation between them."""

import numpy as np
import pytest
import scipy.spatial.transform as reference

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.spatial.transform import Rotation, Slerp
from primal.test_util import check_grads

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


def test_slerp_beyond_its_ends_goes_on_and_needs_several_rotations() -> None:
    turns = Rotation.from_euler("z", jnp.array([[0.0], [30.0]]), degrees=True)
    slerp = Slerp.init(jnp.array([0.0, 1.0]), turns)
    beyond = slerp(jnp.array([-1.0, 2.0])).as_rotvec(degrees=True)
    np.testing.assert_allclose(beyond, [[0, 0, -30], [0, 0, 60]], atol=1e-4)
    with pytest.raises(ValueError, match="expected at least 2 rotations"):
        Slerp.init(jnp.array([0.0]), turns[0])
    with pytest.raises(ValueError, match="a time for each of 2 rotations"):
        Slerp.init(jnp.arange(3.0), turns)


@pytest.mark.parametrize("inverse", [False, True])
def test_apply_is_scipys(inverse) -> None:
    vectors = np.random.default_rng(1).normal(size=(5, 3))
    with enable_x64(True):
        for quat in (QUATERNIONS, QUATERNIONS[0]):
            wanted = reference.Rotation.from_quat(quat)
            for v in (vectors, vectors[0]):
                got = Rotation.from_quat(quat).apply(v, inverse=inverse)
                np.testing.assert_allclose(got, wanted.apply(v, inverse=inverse), atol=1e-12)


def test_products_and_inverses_are_scipys() -> None:
    wanted = reference.Rotation.from_quat(QUATERNIONS)
    with enable_x64(True):
        got = Rotation.from_quat(QUATERNIONS)
        joined = reference.Rotation.concatenate([wanted, wanted[0]])
        pairs = [
            (got * got[0], wanted * wanted[0]),
            (got[1] * got, wanted[1] * wanted),
            (got.inv(), wanted.inv()),
            (got[1:4], wanted[1:4]),
            (Rotation.concatenate([got, got[0]]), joined),
        ]
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours.as_matrix(), theirs.as_matrix(), atol=1e-12)
            assert len(ours) == len(theirs)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 6.0)], ids=["plain", "weighted"])
def test_mean_is_scipys(weights) -> None:
    with enable_x64(True):
        got = Rotation.from_quat(QUATERNIONS).mean(weights).as_matrix()
    wanted = reference.Rotation.from_quat(QUATERNIONS).mean(weights).as_matrix()
    np.testing.assert_allclose(got, wanted, atol=1e-12)


@pytest.mark.parametrize("seq", ["xyz", "XYZ", "zxz", "ZYZ", "xzy", "YZY"])
@pytest.mark.parametrize("middle", [0.0, np.pi / 2, -np.pi / 2, np.pi])
def test_locked_angles_give_the_same_rotation(seq, middle) -> None:
    angles = np.array([0.3, middle, 0.4])
    with enable_x64(True):
        turn = Rotation.from_euler(seq, angles)
        again = Rotation.from_euler(seq, turn.as_euler(seq))
        np.testing.assert_allclose(again.as_matrix(), turn.as_matrix(), atol=1e-7)


@pytest.mark.parametrize(
    "quat", [np.eye(4)[k] for k in range(4)] + [[1.0, -1, 0, 0], [0, 1e-5, 0, 1]]
)
def test_half_turns_and_small_turns(quat) -> None:
    wanted = reference.Rotation.from_quat(quat).as_matrix()
    got = Rotation.from_quat(jnp.asarray(quat, dtype=float))
    for form in ("matrix", "mrp", "rotvec"):
        back = getattr(Rotation, f"from_{form}")(getattr(got, f"as_{form}")())
        np.testing.assert_allclose(back.as_matrix(), wanted, atol=2e-6)
    assert (got.as_quat(canonical=True)[3] >= 0).item()
    np.testing.assert_array_equal(got.as_quat(scalar_first=True), np.roll(got.as_quat(), 1))


def test_identity_and_random() -> None:
    np.testing.assert_array_equal(Rotation.identity().as_matrix(), np.eye(3))
    assert len(Rotation.identity(3)) == 3 and Rotation.identity().single
    drawn = Rotation.random(primal.random.key(0), 4000)
    np.testing.assert_allclose(jnp.linalg.norm(drawn.as_quat(), axis=-1), 1, rtol=1e-6)
    # E[R] = 0 over uniformly distributed rotations.
    np.testing.assert_allclose(drawn.as_matrix().mean(0), 0, atol=0.05)


def test_transformations() -> None:
    quats = jnp.asarray(QUATERNIONS, dtype=jnp.float32)
    turns = Rotation.from_quat(quats)
    alone = [Rotation.from_quat(q).as_rotvec() for q in quats]
    np.testing.assert_allclose(primal.vmap(lambda r: r.as_rotvec())(turns), alone, rtol=1e-5)
    np.testing.assert_allclose(primal.jit(lambda r: r.as_rotvec())(turns), alone, rtol=1e-5)

    def entry(v):
        return Rotation.from_rotvec(v).as_matrix()[0, 1]

    # R = I + [v]× + O(v²), also where the angle is 0; a quarter of a turn by differences.
    np.testing.assert_allclose(primal.grad(entry)(jnp.zeros(3)), [0, 0, -1])
    with enable_x64(True):
        check_grads(entry, (jnp.array([0.5, -1.0, 0.7]),), order=2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Rotation.from_euler("xx", jnp.zeros(2)), "neighbouring axes to differ"),
        (lambda: Rotation.from_euler("xY", jnp.zeros(2)), "one to three axes"),
        (lambda: Rotation.from_euler("xyz", jnp.zeros(2)), "expected 3 angles"),
        (lambda: Rotation.from_matrix(jnp.zeros((3, 2))), "of shape (…, 3, 3)"),
        (lambda: Rotation.from_quat(jnp.zeros(3)), "of shape (…, 4)"),
        (lambda: Rotation.identity().apply(jnp.zeros(2)), "of shape (…, 3)"),
        (lambda: Rotation.identity().as_euler("xy"), "expected 3 axes"),
        (lambda: Rotation.identity().as_euler("abc"), "axes of xyz or XYZ"),
        (lambda: Rotation.identity().as_euler("xxy"), "neighbouring axes to differ"),
        (lambda: Rotation.identity(2).mean(jnp.ones(3)), "expected 2 weights"),
    ],
)
def test_errors(call, text) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert text in str(caught.value)


def test_a_single_rotation_has_no_length() -> None:
    with pytest.raises(TypeError, match="several rotations to count"):
        len(Rotation.identity())
    with pytest.raises(TypeError, match="several rotations to index"):
        Rotation.identity()[0]
