"""stax: shapes, parameters and results are JAX's for the same key; dropout and errors."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import random
from primal.example_libraries import stax

LAYERS = {
    "Dense": (stax.Dense(3), (2, 4)),
    "Conv": (stax.Conv(3, (3, 2), (2, 1), "SAME"), (2, 7, 6, 2)),
    "Conv valid": (stax.Conv(3, (3, 3)), (1, 5, 5, 1)),
    "GeneralConv": (
        stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 2, (2, 2), (1, 2), "SAME"),
        (2, 3, 5, 4),
    ),
    "Conv1DTranspose": (stax.Conv1DTranspose(3, (3,), (2,), "SAME"), (2, 5, 2)),
    "ConvTranspose": (stax.ConvTranspose(2, (3, 3), (2, 2), "VALID"), (1, 4, 4, 3)),
    "BatchNorm": (stax.BatchNorm(), (4, 3, 3, 2)),
    "BatchNorm axis": (stax.BatchNorm(axis=(0,), center=False), (5, 3)),
    "Tanh": (stax.Tanh, (3, 4)),
    "Relu": (stax.Relu, (3, 4)),
    "Exp": (stax.Exp, (3, 4)),
    "LogSoftmax": (stax.LogSoftmax, (3, 4)),
    "Softmax": (stax.Softmax, (3, 4)),
    "Softplus": (stax.Softplus, (3, 4)),
    "Sigmoid": (stax.Sigmoid, (3, 4)),
    "Elu": (stax.Elu, (3, 4)),
    "LeakyRelu": (stax.LeakyRelu, (3, 4)),
    "Selu": (stax.Selu, (3, 4)),
    "Gelu": (stax.Gelu, (3, 4)),
    "Identity": (stax.Identity, (3, 4)),
    "Flatten": (stax.Flatten, (2, 3, 4)),
    "MaxPool": (stax.MaxPool((2, 2), (2, 2)), (1, 5, 6, 2)),
    "SumPool": (stax.SumPool((2, 3), padding="SAME"), (1, 5, 6, 2)),
    "AvgPool": (stax.AvgPool((2, 2), (1, 2), "SAME"), (2, 5, 5, 1)),
    "AvgPool valid": (stax.AvgPool((3, 3)), (1, 5, 5, 1)),
    "FanOut sum": (
        stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity), stax.FanInSum),
        (2, 3),
    ),
    "FanInConcat": (
        stax.serial(
            stax.FanOut(3),
            stax.parallel(stax.Dense(2), stax.Relu, stax.Tanh),
            stax.FanInConcat(-1),
        ),
        (2, 3),
    ),
    "Dropout train": (stax.Dropout(0.7), (4, 5)),
    "Dropout test": (stax.Dropout(0.7, mode="test"), (4, 5)),
    "shape_dependent": (stax.shape_dependent(lambda s: stax.Dense(s[-1])), (2, 4)),
    "serial": (
        stax.serial(
            stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu,
            stax.MaxPool((2, 2), (2, 2)), stax.Dropout(0.5), stax.Flatten, stax.Dense(5),
            stax.LogSoftmax,
        ),
        (2, 6, 6, 1),
    ),
}  # fmt: skip

# Recorded from JAX 0.10.2 with the original random numbers: shape of the result, sum of magnitudes
# of each parameter, result times cos(0), cos(1), ... summed.
JAX = {
    "Dense": ((2, 3), [3.742612, 0.033218], -1.20307),
    "Conv": ((2, 4, 6, 3), [5.976438, 3e-06], -2.137984),
    "Conv valid": ((1, 3, 3, 3), [5.414064, 3e-06], 0.257108),
    "GeneralConv": ((2, 2, 5, 2), [4.983815, 1e-06], -1.028932),
    "Conv1DTranspose": ((2, 10, 3), [4.37849, 3e-06], -0.007661),
    "ConvTranspose": ((1, 9, 9, 2), [9.257619, 1e-06], -1.798006),
    "BatchNorm": ((4, 3, 3, 2), [0.0, 2.0], 0.175045),
    "BatchNorm axis": ((5, 3), [3.0], -0.901109),
    "Tanh": ((3, 4), [], 0.236474),
    "Relu": ((3, 4), [], -0.104458),
    "Exp": ((3, 4), [], -0.209839),
    "LogSoftmax": ((3, 4), [], 1.459422),
    "Softmax": ((3, 4), [], 0.134345),
    "Softplus": ((3, 4), [], -0.169399),
    "Sigmoid": ((3, 4), [], -0.139392),
    "Elu": ((3, 4), [], 0.18729),
    "LeakyRelu": ((3, 4), [], -0.100639),
    "Selu": ((3, 4), [], 0.403169),
    "Gelu": ((3, 4), [], 0.069413),
    "Identity": ((3, 4), [], 0.277525),
    "Flatten": ((2, 12), [], 0.401253),
    "MaxPool": ((1, 2, 3, 2), [], 1.203126),
    "SumPool": ((1, 5, 6, 2), [], -4.791922),
    "AvgPool": ((2, 5, 3, 1), [], 0.629668),
    "AvgPool valid": ((1, 3, 3, 1), [], 0.217251),
    "FanOut sum": ((2, 3), [4.801453, 0.014208], -0.25114),
    "FanInConcat": ((2, 8), [3.369512, 0.019426], 0.792652),
    "Dropout train": ((4, 5), [], 0.643482),
    "Dropout test": ((4, 5), [], 0.194457),
    "shape_dependent": ((2, 4), [6.263339, 0.032876], 0.01956),
    "serial": ((2, 5), [4.942643, 4e-06, 0.0, 4.0, 33.037292, 0.018562], -20.532057),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_jax_s(name):
    (init, apply), shape = LAYERS[name]
    out_shape, parameter_sums, result_sum = JAX[name]
    promised, parameters = init(random.PRNGKey(7), shape)
    size = int(np.prod(shape))
    x = jnp.sin(jnp.arange(float(size))).reshape(shape) + 0.1
    y = apply(parameters, x, rng=random.PRNGKey(3))
    assert tuple(promised) == y.shape == out_shape
    sums = [jnp.abs(p).sum() for p in primal.tree.leaves(parameters)]
    np.testing.assert_allclose(sums, parameter_sums, rtol=1e-4, atol=1e-6)
    weights = np.cos(np.arange(y.size)).reshape(y.shape)
    np.testing.assert_allclose(np.sum(y * weights), result_sum, rtol=1e-4, atol=1e-5)
    jitted = primal.jit(apply)(parameters, x, rng=random.PRNGKey(3))
    np.testing.assert_allclose(jitted, y, rtol=1e-5, atol=1e-6)


def test_every_layer_is_recorded():
    assert set(LAYERS) == set(JAX)


def test_containers_of_parameters_are_jax_s():
    # Saved parameters and optimiser states of JAX's programs have these structures.
    layer = stax.Dense(2)
    assert type(stax.serial(layer, layer)[0](random.key(0), (1, 3))[1]) is list
    init, _ = stax.serial(stax.FanOut(2), stax.parallel(layer, stax.serial(layer)), stax.FanInSum)
    _, parameters = init(random.key(0), (1, 3))
    ones = jnp.ones(())
    expected = [(), ((ones, ones), [(ones, ones)]), ()]
    assert primal.tree.structure(parameters) == primal.tree.structure(expected)


def test_dropout_keeps_the_mean_and_asks_for_a_key():
    _, apply = stax.Dropout(0.25)  # the rate is that of what is kept
    y = apply((), jnp.ones(10000), rng=random.key(0))
    assert set(np.unique(y)) == {0.0, 4.0}
    assert abs(float(y.mean()) - 1.0) < 0.05
    with pytest.raises(ValueError, match="rng"):
        apply((), jnp.ones(3))
