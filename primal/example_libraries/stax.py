"""Layers as pairs of functions: init(key, input shape) -> (output shape, params), and apply.

`apply(params, inputs, **kwargs)`; layers that draw random numbers take `rng` there. `serial` and
`parallel` combine layers into layers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import primal.numpy as jnp
from primal import lax, random
from primal.nn import functions
from primal.nn.functions import elu as elu
from primal.nn.functions import gelu as gelu
from primal.nn.functions import leaky_relu as leaky_relu
from primal.nn.functions import log_softmax as log_softmax
from primal.nn.functions import relu as relu
from primal.nn.functions import selu as selu
from primal.nn.functions import sigmoid as sigmoid
from primal.nn.functions import softmax as softmax
from primal.nn.functions import softplus as softplus
from primal.nn.functions import standardize as standardize
from primal.nn.initializers import glorot_normal, normal, ones, zeros

# The names that former versions of the library had.
logsoftmax, randn, glorot = log_softmax, normal, glorot_normal
Layer = tuple[Callable[..., Any], Callable[..., Any]]


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """inputs @ W + b, over the last dimension.

    >>> from primal.example_libraries import stax
    >>> init, apply = stax.Dense(3)
    >>> shape, params = init(random.PRNGKey(0), (-1, 2))
    >>> shape, apply(params, jnp.ones((5, 2))).shape
    ((-1, 3), (5, 3))
    """
    w_init = glorot_normal() if W_init is None else W_init
    b_init = normal() if b_init is None else b_init

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        first, second = random.split(rng)
        weights = w_init(first, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(second, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init, apply


def _conv_init(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    output_shape: Callable[[Any, Any], Any],
    w_init: Any,
    b_init: Any,
) -> Callable[[Any, Sequence[int]], Any]:
    """`init` of a layer of filters and a bias for each channel."""
    lhs, rhs, out = dimension_numbers
    w_init = w_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    b_init = b_init or normal(1e-6)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        kernel = tuple([
            out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes)
            for c in rhs
        ])
        bias = tuple([out_chan if c == "C" else 1 for c in out])
        first, second = random.split(rng)
        shape = output_shape(tuple(input_shape), kernel)
        return shape, (w_init(first, kernel), b_init(second, bias))

    return init


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """A convolution, with the layout of (inputs, filters, outputs) given in letters.

    >>> init, apply = GeneralConv(("NHWC", "HWIO", "NHWC"), 8, (3, 3), padding="SAME")
    >>> init(random.key(0), (1, 5, 5, 3))[0]
    (1, 5, 5, 8)
    """
    steps = strides or (1,) * len(filter_shape)

    def output_shape(inputs: Any, kernel: Any) -> Any:
        return lax.conv_general_shape_tuple(inputs, kernel, steps, padding, dimension_numbers)

    init = _conv_init(dimension_numbers, out_chan, filter_shape, output_shape, W_init, b_init)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return (
            lax.conv_general_dilated(
                inputs, weights, steps, padding, (1,) * len(filter_shape),
                (1,) * len(filter_shape), dimension_numbers,
            )
            + bias
        )  # fmt: skip

    return init, apply


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """A transposed convolution, with the layout of (inputs, filters, outputs) given in letters.

    >>> init, apply = GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 8, (2, 2), (2, 2))
    >>> init(random.key(0), (1, 5, 5, 3))[0]
    (1, 10, 10, 8)
    """
    steps = strides or (1,) * len(filter_shape)

    def output_shape(inputs: Any, kernel: Any) -> Any:
        return lax.conv_transpose_shape_tuple(inputs, kernel, steps, padding, dimension_numbers)

    init = _conv_init(dimension_numbers, out_chan, filter_shape, output_shape, W_init, b_init)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        moved = lax.conv_transpose(
            inputs, weights, steps, padding, dimension_numbers=dimension_numbers
        )
        return moved + bias

    return init, apply


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Normalised to mean 0 and variance 1 over `axis`, then scaled and shifted by parameters.

    >>> init, apply = BatchNorm(axis=0)
    >>> shape, params = init(random.key(0), (4, 2))
    >>> apply(params, jnp.arange(8.0).reshape(4, 2)).mean(0).round(3)
    Array([0., 0.], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple([d for i, d in enumerate(input_shape) if i not in axes])
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        placed = [1 if i in axes else n for i, n in enumerate(x.shape)]
        mean = jnp.mean(x, axes, keepdims=True)
        variance = jnp.var(x, axes, keepdims=True)
        z = (x - mean) / jnp.sqrt(variance + epsilon)
        if scale:
            z = gamma.reshape(placed) * z
        return z + beta.reshape(placed) if center else z

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function to its inputs.

    >>> init, apply = elementwise(jnp.tanh)
    >>> apply((), jnp.array([0.0, 1.0]))
    Array([0.       , 0.7615942], dtype=float32)
    """

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        return input_shape, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init, apply


Tanh = elementwise(jnp.tanh)
Relu = elementwise(functions.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(functions.log_softmax, axis=-1)
Softmax = elementwise(functions.softmax, axis=-1)
Softplus = elementwise(functions.softplus)
Sigmoid = elementwise(functions.sigmoid)
Elu = elementwise(functions.elu)
LeakyRelu = elementwise(functions.leaky_relu)
Selu = elementwise(functions.selu)
Gelu = elementwise(functions.gelu)


def _pooling(reducer: Any, init_value: Any, rescaler: Any = None) -> Callable[..., Layer]:
    def PoolingLayer(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """A layer that reduces windows of its inputs.

        >>> init, apply = MaxPool((2, 2), (2, 2))
        >>> init(random.key(0), (1, 4, 4, 3))[0]
        (1, 2, 2, 3)
        """
        sizes = list(window_shape)
        steps = list(strides or (1,) * len(sizes))
        rescale = rescaler(tuple(sizes), tuple(steps), padding) if rescaler else None
        non_spatial = [0, len(sizes) + 1] if spec is None else [spec.index("N"), spec.index("C")]
        for i in sorted(non_spatial):
            sizes.insert(i, 1)
            steps.insert(i, 1)

        def init(rng: Any, input_shape: Sequence[int]) -> Any:
            pads = lax.padtype_to_pads(input_shape, sizes, steps, padding)
            shape = lax.reduce_window_shape_tuple(
                tuple(input_shape), tuple(sizes), tuple(steps), pads
            )
            return shape, ()

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = lax.reduce_window(
                inputs, init_value, reducer, tuple(sizes), tuple(steps), padding
            )
            return rescale(out, inputs, spec) if rescale else out

        return init, apply

    return PoolingLayer


def _average(dims: Any, strides: Any, padding: str) -> Any:
    def rescale(outputs: Any, inputs: Any, spec: str | None) -> Any:
        if spec is None:
            shape = inputs.shape[1:-1]
            at = (0, len(dims) + 1)
        else:
            at = (spec.index("N"), spec.index("C"))
            shape = tuple([n for i, n in enumerate(inputs.shape) if i not in at])
        # At the borders a window covers fewer elements.
        counts = lax.reduce_window(
            jnp.ones(shape, inputs.dtype), 0.0, lax.add, dims, strides, padding
        )
        for i in sorted(at):
            counts = jnp.expand_dims(counts, i)
        return outputs / counts

    return rescale


MaxPool = _pooling(lax.max, -jnp.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, _average)


def _flatten() -> Layer:
    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.reshape(inputs, (inputs.shape[0], -1))

    return init, apply


Flatten = _flatten()
Identity = elementwise(lambda x: x)


def FanOut(num: int) -> Layer:
    """The input `num` times.

    >>> init, apply = FanOut(2)
    >>> apply((), jnp.ones(2))
    [Array([1., 1.], dtype=float32), Array([1., 1.], dtype=float32)]
    """

    def init(rng: Any, input_shape: Any) -> Any:
        return [input_shape] * num, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return init, apply


def _fan_in_sum() -> Layer:
    def init(rng: Any, input_shape: Any) -> Any:
        return input_shape[0], ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return functools.reduce(operator.add, inputs)

    return init, apply


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs one after the other along an axis.

    >>> init, apply = FanInConcat()
    >>> apply((), [jnp.ones((1, 2)), jnp.zeros((1, 1))])
    Array([[1., 1., 0.]], dtype=float32)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        first = input_shape[0]
        at = axis % len(first)
        total = sum(shape[at] for shape in input_shape)
        return (*first[:at], total, *first[at + 1 :]), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.concatenate(inputs, axis)

    return init, apply


def Dropout(rate: float, mode: str = "train") -> Layer:
    """In training, keeps an input with probability `rate`, divided by it; else the inputs.

    Its apply function raises ValueError without the key `rng`. Srivastava et al., 2014.

    >>> init, apply = Dropout(0.5)
    >>> apply((), jnp.ones(6), rng=random.key(0))
    Array([0., 2., 0., 0., 0., 2.], dtype=float32)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        return input_shape, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, "
                "instead of `apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, "
                "rng)` where `rng` is a PRNG key (e.g. from `primal.random.key`)."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return init, apply


def serial(*layers: Layer) -> Layer:
    """Layers one after the other, each fed with the output of the one before.

    >>> from primal.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(1))
    >>> init(random.PRNGKey(0), (-1, 3))[0]
    (-1, 1)
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for layer_init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = layer_init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else (None,) * len(layers)
        for fun, param, layer_rng in zip(applies, params, keys, strict=True):
            inputs = fun(param, inputs, rng=layer_rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, each fed with its own input; used with FanOut and FanIn layers.

    >>> init, apply = parallel(Dense(2), Relu)
    >>> init(random.key(0), [(1, 3), (1, 4)])[0]
    [(1, 2), (1, 4)]
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        made = [i(k, s) for i, k, s in zip(inits, keys, input_shape, strict=True)]
        return [shape for shape, _ in made], tuple(param for _, param in made)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else (None,) * len(layers)
        return [
            fun(p, x, rng=k, **kwargs)
            for fun, p, x, k in zip(applies, params, inputs, keys, strict=True)
        ]

    return init, apply


def shape_dependent(make_layer: Callable[..., Layer]) -> Layer:
    """A layer that is made once its input shape is known.

    >>> init, apply = shape_dependent(lambda shape: Dense(shape[-1]))
    >>> init(random.key(0), (1, 3))[0]
    (1, 3)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply
