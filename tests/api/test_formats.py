"""Where arrays lie and how: clients, clones, layouts, constraints."""

from __future__ import annotations

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.experimental.layout import Format, Layout

DEVICE = primal.devices()[0]
WHERE = primal.sharding.SingleDeviceSharding(DEVICE)


def test_arrays() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.platform() == DEVICE.platform and not x._committed
    assert primal.device_put(x, DEVICE)._committed
    twin = x.clone()
    assert twin is not x and twin.aval is x.aval and (twin == x).all()
    assert twin.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    x.delete()
    assert twin.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match="deleted"):
        x.clone()
    assert twin.format == Format(Layout((0, 1), ()), WHERE) != jnp.zeros(2).format
    assert "major_to_minor=(0, 1)" in repr(twin.format)
    assert hash(twin.format) == hash(jnp.zeros((2, 2)).format)


def test_formats_refuse_what_they_are_not() -> None:
    assert Format().layout is Format().sharding is None
    with pytest.raises(ValueError, match="sharding"):
        Format(Layout((0,)))
    with pytest.raises(TypeError, match="Layout"):
        Format((0,), WHERE)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Sharding"):
        Format(None, DEVICE)  # type: ignore[arg-type]


def test_formats_of_compiled_functions() -> None:
    compiled = primal.jit(lambda x, y: {"a": x + 1}).lower(jnp.zeros((2, 3)), 1.0).compile()
    (x, y), named = compiled.input_formats
    assert x == compiled.output_formats["a"] == jnp.zeros((2, 3)).format
    assert y is None and named == {}


def test_clients() -> None:
    client = DEVICE.client
    assert client.platform == DEVICE.platform and client.device_count() == len(primal.devices())
    assert client.devices() == primal.devices() and client.process_index() == 0
    assert client.local_devices() == primal.local_devices()
    assert client.local_device_count() == primal.local_device_count()
    assert all(d.client is client for d in primal.devices())


def test_constraints() -> None:
    tree = {"a": np.ones(2, np.float32), "b": [1.0, jnp.zeros(3)]}
    for shardings in (WHERE, {"a": WHERE, "b": WHERE}, {"a": WHERE, "b": [WHERE, WHERE]}):
        out = lax.with_sharding_constraint(tree, shardings)
        assert all(x.committed for x in primal.tree.leaves(out))
        assert out["b"][1].shape == (3,)
    square = primal.grad(lambda x: lax.with_sharding_constraint(x * x, WHERE))
    assert square(3.0) == primal.jit(square)(3.0) == 6
    other = primal.sharding.SingleDeviceSharding(
        type(DEVICE)("cpu", 7)  # a device on which no program here runs
    )
    with pytest.raises(ValueError, match="incompatible devices"):
        primal.jit(lambda x: lax.with_sharding_constraint(x, other))(1.0)
    for bad in (None, 3, "i"):
        with pytest.raises(ValueError, match="with_sharding_constraint"):
            lax.with_sharding_constraint(jnp.ones(2), bad)


def test_casts_of_axes() -> None:
    x = jnp.ones(2)
    assert lax.pcast(x, (), to="varying") is x
    with pytest.raises(ValueError, match="shard_map"):
        primal.vmap(lambda v: lax.pcast(v, "i", to="varying"), axis_name="i")(x)
    with pytest.raises(ValueError, match="reduced"):
        lax.pcast(x, ("i",), to="other")
