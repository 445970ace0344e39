"""Eager convolution of 8 images of 16 features with 32 kernels of 3 x 3, by NumPy."""

NAME = "eager convolution, 8 x 16 x 32 x 32"
UNIT = "ms"
TARGET = 2.0
TINY = {"IMAGES": 1}
IMAGES = 8


def setup(jax, jnp, lax):
    x, w = jnp.ones((IMAGES, 16, 32, 32)), jnp.ones((32, 16, 3, 3))
    return lambda: lax.conv(x, w, (1, 1), "SAME")


def setup_numpy(np):
    x, w = np.ones((IMAGES, 16, 32, 32), np.float32), np.ones((32, 16, 3, 3), np.float32)

    def call():
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        out = np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3)))
        return np.ascontiguousarray(out.transpose(0, 3, 1, 2))

    return call
