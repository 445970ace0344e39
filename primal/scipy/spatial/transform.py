"""Rotations of space as unit quaternions (x, y, z, w), and interpolation between them.

Euler angles after Bernardes and Viollet 2022, means after Markley et al. 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import primal.numpy as jnp
from primal import random
from primal.scipy.operands import in_floats
from primal.tree_util import register_pytree_node

__all__ = ["Rotation", "Slerp"]


class Rotation(NamedTuple):
    """One rotation, `quat` of shape (4,), or n of them, (n, 4); a tree.

    >>> turn = Rotation.from_euler("z", jnp.array(90.0), degrees=True)
    >>> jnp.round(turn.apply(jnp.array([1.0, 0.0, 0.0])), 3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Any]) -> Rotation:
        """All the rotations in one object.

        >>> one = Rotation.identity()
        >>> len(Rotation.concatenate([one, one]))
        2
        """
        return cls(jnp.concatenate([r.quat.reshape(-1, 4) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Turns about the axes `seq` one after another: fixed axes 'xyz', or moving ones 'XYZ'.

        `angles` has shape (…, len(seq)), for one axis also (). ValueError for other axes.

        >>> Rotation.from_euler("ZX", jnp.array([90.0, 45.0]), degrees=True).as_quat().round(3)
        Array([0.271, 0.271, 0.653, 0.653], dtype=float32)
        """
        if not 1 <= len(seq) <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
            raise ValueError(f"[from_euler] expected one to three axes of xyz or XYZ, got {seq!r}.")
        if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
            raise ValueError(
                f"[from_euler] expected neighbouring axes to differ, got {seq!r}: add the angles "
                "of turns about one axis."
            )
        angles = in_floats(angles)
        angles = angles[None] if angles.ndim == 0 else angles
        if angles.shape[-1] != len(seq):
            raise ValueError(
                f"[from_euler] expected {len(seq)} angles in the last dimension, got shape "
                f"{angles.shape}."
            )
        angles = jnp.deg2rad(angles) if degrees else angles
        out: Any = None
        for k, axis in enumerate(seq.lower()):
            unit = np.eye(3)[("x", "y", "z").index(axis)].astype(angles.dtype)
            half = angles[..., k, None] / 2
            turn = jnp.concatenate([jnp.sin(half) * unit, jnp.cos(half)], -1)
            if out is None:
                out = turn
            else:
                out = _product(turn, out) if seq.islower() else _product(out, turn)
        return cls(out)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """The rotation with this orthogonal matrix, (…, 3, 3).

        >>> Rotation.from_matrix(jnp.eye(3)).as_quat()
        Array([0., 0., 0., 1.], dtype=float32)
        """
        m = in_floats(matrix)
        if m.ndim < 2 or m.shape[-2:] != (3, 3):
            raise ValueError(f"[from_matrix] expected matrices of shape (…, 3, 3), got {m.shape}.")
        x, y, z = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
        yz, zy, xz, zx = m[..., 1, 2], m[..., 2, 1], m[..., 0, 2], m[..., 2, 0]
        xy, yx = m[..., 0, 1], m[..., 1, 0]
        # Rows of 4·q·qᵀ: the one with the largest diagonal has the least rounding.
        rows = [
            [1 + x - y - z, xy + yx, xz + zx, zy - yz],
            [xy + yx, 1 - x + y - z, yz + zy, xz - zx],
            [xz + zx, yz + zy, 1 - x - y + z, yx - xy],
            [zy - yz, xz - zx, yx - xy, 1 + x + y + z],
        ]
        table = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
        best = jnp.argmax(jnp.stack([x, y, z, x + y + z], -1), -1)
        return cls(_unit(jnp.take_along_axis(table, best[..., None, None], -2)[..., 0, :]))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """The rotation with modified Rodrigues parameters axis·tan(angle/4), (…, 3).

        >>> Rotation.from_mrp(jnp.array([0.0, 0.0, 1.0])).as_rotvec().round(3)
        Array([0.   , 0.   , 3.142], dtype=float32)
        """
        p = in_floats(mrp)
        square = jnp.sum(p * p, -1, keepdims=True)
        return cls(jnp.concatenate([2 * p, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """The rotation of a quaternion (x, y, z, w) of any length but 0.

        >>> Rotation.from_quat(jnp.array([0.0, 0.0, 3.0, 4.0])).as_quat()
        Array([0. , 0. , 0.6, 0.8], dtype=float32)
        """
        return cls(_unit(in_floats(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """The rotation about an axis by the angle that is its length, (…, 3).

        >>> Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True).as_quat().round(4)
        Array([0.    , 0.    , 0.7071, 0.7071], dtype=float32)
        """
        v = in_floats(rotvec)
        v = jnp.deg2rad(v) if degrees else v
        square = jnp.sum(v * v, -1, keepdims=True)
        small = square < 1e-6
        angle = jnp.sqrt(jnp.where(small, 1, square))
        scale = jnp.where(small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)
        cosine = jnp.where(small, 1 - square / 8, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * v, cosine], -1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation by nothing, or `num` of them.

        >>> Rotation.identity(2).as_quat()
        Array([[0., 0., 0., 1.],
               [0., 0., 0., 1.]], dtype=float32)
        """
        one = jnp.array([0, 0, 0, 1], dtype=jnp.result_type(dtype))
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Rotations drawn uniformly.

        >>> Rotation.random(random.key(0), 3).as_quat().shape
        (3, 4)
        """
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("[Rotation] expected several rotations to index, got a single one.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("[Rotation] expected several rotations to count, got a single one.")
        return int(self.quat.shape[0])

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        return Rotation(_product(self.quat, other.quat))

    @property
    def single(self) -> bool:
        """Whether this is one rotation and not an array of them.

        >>> Rotation.identity().single, Rotation.identity(2).single
        (True, False)
        """
        return bool(self.quat.ndim == 1)

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors (…, 3) rotated, or rotated back.

        >>> turn = Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True)
        >>> turn.apply(jnp.array([0.0, 2.0, 1.0])).round(3)
        Array([-2.,  0.,  1.], dtype=float32)
        """
        v = in_floats(vectors)
        if v.ndim == 0 or v.shape[-1] != 3:
            raise ValueError(f"[apply] expected vectors of shape (…, 3), got {v.shape}.")
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.sum(matrix * v[..., None, :], -1)

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Angles (…, 3) of turns about `seq`; the third is 0 where only their sum is known.

        >>> turn = Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True)
        >>> turn.as_euler("zyx", degrees=True)[0].round(3)
        Array(90., dtype=float32)
        """
        outer = seq.islower()
        if len(seq) != 3:
            raise ValueError(f"[as_euler] expected 3 axes, got {seq!r}.")
        if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
            raise ValueError(f"[as_euler] expected axes of xyz or XYZ, got {seq!r}.")
        if seq[0] == seq[1] or seq[1] == seq[2]:
            raise ValueError(f"[as_euler] expected neighbouring axes to differ, got {seq!r}.")
        i, j, k = ("xyz".index(axis) for axis in (seq if outer else seq.lower()[::-1]))
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., n] for n in range(4)]
        if symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        close = 1e-7 if self.quat.dtype.itemsize == 8 else 1e-6
        none, half = abs(middle) <= close, abs(middle - np.pi) <= close
        total, between = jnp.arctan2(b, a), jnp.arctan2(d, c)
        ends = [total - between, total + between]
        first, third = ends if outer else ends[::-1]
        first = jnp.where(none, 2 * total, jnp.where(half, (-2 if outer else 2) * between, first))
        third = jnp.where(none | half, 0, third)
        if not symmetric:
            first, third = (first, third * sign) if outer else (first * sign, third)
            middle = middle - np.pi / 2
        angles = jnp.stack([first, middle, third], -1)
        angles = jnp.where(angles < -np.pi, angles + 2 * np.pi, angles)
        angles = jnp.where(angles > np.pi, angles - 2 * np.pi, angles).astype(self.quat.dtype)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Any:
        """The orthogonal matrices, (…, 3, 3).

        >>> Rotation.from_quat(jnp.array([1.0, 0.0, 0.0, 0.0])).as_matrix()
        Array([[ 1.,  0.,  0.],
               [ 0., -1.,  0.],
               [ 0.,  0., -1.]], dtype=float32)
        """
        x, y, z, w = (self.quat[..., n] for n in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
        ]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_mrp(self) -> Any:
        """The modified Rodrigues parameters of the rotation by at most half a turn, (…, 3).

        >>> Rotation.from_quat(jnp.array([1.0, 0.0, 0.0, 0.0])).as_mrp()
        Array([1., 0., 0.], dtype=float32)
        """
        q = _canonical(self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """The unit quaternions, (…, 4); of q and -q that with w ≥ 0 where `canonical`.

        >>> Rotation.identity().as_quat(scalar_first=True)
        Array([1., 0., 0., 0.], dtype=float32)
        """
        q = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, -1) if scalar_first else q

    def as_rotvec(self, degrees: bool = False) -> Any:
        """The axes with the angles, at most π, as lengths, (…, 3).

        >>> Rotation.from_euler("x", jnp.array(90.0), degrees=True).as_rotvec(degrees=True).round(3)
        Array([90.,  0.,  0.], dtype=float32)
        """
        q = _canonical(self.quat)
        v, w = q[..., :3], q[..., 3:]
        square = jnp.sum(v * v, -1, keepdims=True)
        small = square < 1e-6
        sine = jnp.sqrt(jnp.where(small, 1, square))
        out = v * jnp.where(small, 2 + square / 3, 2 * jnp.arctan2(sine, w) / sine)
        return jnp.rad2deg(out) if degrees else out

    def inv(self) -> Rotation:
        """The rotations back.

        >>> Rotation.from_quat(jnp.array([1.0, 2.0, 2.0, 4.0])).inv().as_quat()
        Array([-0.2, -0.4, -0.4,  0.8], dtype=float32)
        """
        q = self.quat
        return Rotation(jnp.concatenate([-q[..., :3], q[..., 3:]], -1))

    def magnitude(self) -> Any:
        """The angles of the rotations, from 0 to π.

        >>> Rotation.from_rotvec(jnp.array([0.0, 3.0, 0.0])).magnitude().round(3)
        Array(3., dtype=float32)
        """
        return 2 * jnp.arctan2(jnp.linalg.norm(self.quat[..., :3], axis=-1), abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation with the least weighted sum of squared distances of the matrices.

        >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> jnp.rad2deg(turns.mean().magnitude()).round(3)
        Array(45., dtype=float32)
        """
        w = jnp.ones(len(self), self.quat.dtype) if weights is None else in_floats(weights)
        if w.shape != (len(self),):
            raise ValueError(f"[mean] expected {len(self)} weights, got shape {w.shape}.")
        _, vectors = jnp.linalg.eigh((w[:, None] * self.quat).T @ self.quat)
        return Rotation(vectors[:, -1])


# As a named tuple its length would be taken for the number of its fields.
register_pytree_node(Rotation, lambda r: ((r.quat,), None), lambda _, parts: Rotation(*parts))


class Slerp(NamedTuple):
    """Rotation with constant velocity between rotations at given times; a tree.

    >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> Slerp.init(jnp.array([0.0, 1.0]), turns)(jnp.array(0.5)).as_rotvec(degrees=True).round(2)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """An interpolator between `rotations` at `times`, which increase.

        >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> Slerp.init(jnp.array([0.0, 1.0]), turns)(jnp.array([0.25, 0.5])).magnitude().round(3)
        Array([0.393, 0.785], dtype=float32)
        """
        if rotations.single or len(rotations) < 2:
            raise ValueError("[Slerp] expected at least 2 rotations, got a single one.")
        times = in_floats(times)
        if times.shape != (len(rotations),):
            raise ValueError(
                f"[Slerp] expected a time for each of {len(rotations)} rotations, got shape "
                f"{times.shape}."
            )
        start: Any = rotations[:-1]
        return cls(times, jnp.diff(times), start, (start.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at `times`; beyond the ends the motion goes on."""
        at = in_floats(times)
        last = self.timedelta.shape[0] - 1
        i = jnp.clip(jnp.searchsorted(self.times, at, side="right") - 1, 0, last)
        part = (at - self.times[i]) / self.timedelta[i]
        return self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * part[..., None])


def _unit(q: Any) -> Any:
    if q.ndim == 0 or q.shape[-1] != 4:
        raise ValueError(f"[Rotation] expected quaternions of shape (…, 4), got {q.shape}.")
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _canonical(q: Any) -> Any:
    return jnp.where(q[..., 3:] < 0, -q, q)


def _product(p: Any, q: Any) -> Any:
    """The quaternion of q's rotation followed by p's."""
    (px, py, pz, pw), (qx, qy, qz, qw) = ([x[..., n] for n in range(4)] for x in (p, q))
    return jnp.stack(
        [
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz,
        ],
        -1,
    )
