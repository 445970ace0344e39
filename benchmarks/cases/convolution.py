"""A 3 x 3 convolution of 64 to 64 features over 8 images of 32 x 32, and both gradients."""

import numpy as np

NAME = "convolution 3x3x64x64 on 8x32x32, and its gradients"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}

BATCH, SIZE, FEATURES = 8, 32, 64
TINY = {"BATCH": 1, "SIZE": 4, "FEATURES": 3}


def arguments():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((BATCH, SIZE, SIZE, FEATURES)).astype(np.float32)
    return x, draw.standard_normal((3, 3, FEATURES, FEATURES)).astype(np.float32)


def setup(jax, jnp, lax):
    x, w = map(jnp.asarray, arguments())

    def loss(x, w):
        y = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.sum(y * y)

    step = jax.jit(jax.value_and_grad(loss, (0, 1)))
    return lambda: step(x, w)


def setup_torch(torch):
    x, w = arguments()
    x = torch.tensor(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), requires_grad=True)
    w = torch.tensor(np.ascontiguousarray(w.transpose(3, 2, 0, 1)), requires_grad=True)

    def step():
        y = torch.nn.functional.conv2d(x, w, padding=1)
        loss = (y * y).sum()
        return loss, torch.autograd.grad(loss, (x, w))

    return step
