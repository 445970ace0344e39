"""Optimizers as three functions: init(params), update(step, gradients, state), params of a state.

The state is a tree that can pass through `jit`: one tuple of arrays per parameter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import primal.numpy as jnp
from primal.base.pytree import (
    PyTreeDef,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer: per parameter the leaves of its own state.

    >>> init, update, params = sgd(0.1)
    >>> state = init({"w": jnp.ones(2)})
    >>> type(state).__name__, params(state)
    ('OptimizerState', {'w': Array([1., 1.], dtype=float32)})
    """

    packed_state: Any
    tree_def: PyTreeDef
    subtree_defs: tuple[PyTreeDef, ...]


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    >>> init, update, params = Optimizer(*sgd(0.1))
    >>> params(update(0, 1.0, init(2.0)))
    1.9
    """

    init_fn: Callable[..., Any]
    update_fn: Callable[..., Any]
    params_fn: Callable[..., Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Lift an optimizer of one array to trees of them.

    `opt_maker(...)` returns (init(x0), update(i, g, state), get_params(state)) for one array.
    TypeError where gradients or new states have another structure than the parameters.

    >>> @optimizer
    ... def descend(rate):
    ...     return (lambda x: x), (lambda i, g, x: x - rate * g), (lambda x: x)
    ...
    >>> init, update, params = descend(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    1.9
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree: Any) -> OptimizerState:
            leaves, tree = tree_flatten(x0_tree)
            states = [tree_flatten(init(x)) for x in leaves]
            return OptimizerState(
                tuple([tuple(s) for s, _ in states]), tree, tuple([d for _, d in states])
            )

        def tree_update(i: Any, grad_tree: Any, state: OptimizerState) -> OptimizerState:
            packed, tree, subtrees = state
            grads, grad_tree_def = tree_flatten(grad_tree)
            if grad_tree_def != tree:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    f"parameter tree structure with which it was initialized: parameter tree was "
                    f"{tree} and grad tree was {grad_tree_def}."
                )
            states = [tree_unflatten(d, s) for d, s in zip(subtrees, packed, strict=True)]
            updated = [tree_flatten(update(i, g, s)) for g, s in zip(grads, states, strict=True)]
            for (_, new), old in zip(updated, subtrees, strict=True):
                if new != old:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not "
                        f"match its input structure: input {old} and output {new}."
                    )
            return OptimizerState(tuple([tuple(s) for s, _ in updated]), tree, subtrees)

        def tree_params(state: OptimizerState) -> Any:
            packed, tree, subtrees = state
            states = [tree_unflatten(d, s) for d, s in zip(subtrees, packed, strict=True)]
            return tree_unflatten(tree, [get_params(s) for s in states])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent: x ← x - η·g.

    >>> from primal.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.1)
    >>> params(update(0, jnp.array(2.0), init(jnp.array(1.0))))
    Array(0.8, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - schedule(i) * g

    return lambda x0: x0, update, lambda x: x


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent with momentum: v ← m·v + g, x ← x - η·v.

    >>> init, update, params = momentum(0.1, 0.9)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.9, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * velocity, velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Gradient descent with Nesterov's momentum: v ← m·v + g, x ← x - η·(m·v + g).

    Nesterov, 1983.

    >>> init, update, params = nesterov(0.1, 0.9)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.81, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * (mass * velocity + g), velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Adagrad (Duchi et al., 2011): steps divided by the root of the summed squares, averaged.

    >>> init, update, params = adagrad(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.99, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, g_sq, m = state
        g_sq = g_sq + jnp.square(g)
        scale = jnp.where(g_sq > 0, 1.0 / jnp.sqrt(g_sq), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        return x - schedule(i) * m, g_sq, m

    return init, update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp: s ← γ·s + (1-γ)·g², x ← x - η·g / √(s + ε).

    >>> init, update, params = rmsprop(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.6837723, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        return x - schedule(i) * g / jnp.sqrt(average + eps), average

    return lambda x0: (x0, jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """RMSProp with momentum on its steps.

    >>> init, update, params = rmsprop_momentum(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.6837723, dtype=float32, weak_type=True)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average, m = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        m = momentum * m + schedule(i) * g / jnp.sqrt(average + eps)
        return x - m, average, m

    return init, update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam (Kingma and Ba, 2014).

    m ← b1·m + (1-b1)·g, v ← b2·v + (1-b2)·|g|², x ← x - η·m̂ / (√v̂ + ε), where m̂ and v̂ are m and
    v divided by 1 - b1^(i+1) and 1 - b2^(i+1).

    >>> init, update, params = adam(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.9000007, dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.real(g * jnp.conj(g)) + b2 * v
        m_hat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * m_hat / (jnp.sqrt(v_hat) + eps), m, v

    return init, update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adamax (Kingma and Ba, 2014): Adam with the largest gradient in place of the root of v.

    >>> init, update, params = adamax(0.1)
    >>> params(update(0, 1.0, init(2.0)))
    Array(1.9, dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        step = schedule(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - step * m / (u + eps), m, u

    return init, update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3 (Anil et al., 2019): adaptive steps with one accumulator per row of each dimension.

    >>> init, update, params = sm3(0.1)
    >>> params(update(0, jnp.array([1.0]), init(jnp.array([2.0]))))
    Array([1.99], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def along(x: Any, axis: int, ndim: int) -> Any:
        return x.reshape([-1 if i == axis else 1 for i in range(ndim)])

    def init(x0: Any) -> Any:
        x0 = jnp.atleast_1d(x0)
        rows = [jnp.zeros(n, x0.dtype) for n in x0.shape]
        return x0, jnp.zeros_like(x0), rows

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, rows = state
        cover = functools.reduce(
            jnp.minimum, [along(r, axis, x.ndim) for axis, r in enumerate(rows)]
        )
        accumulated = cover + jnp.square(g)
        scale = jnp.where(accumulated > 0, 1.0 / jnp.sqrt(accumulated), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        others = [tuple(a for a in range(x.ndim) if a != axis) for axis in range(x.ndim)]
        rows = [jnp.max(accumulated, axis=axes) for axes in others]
        return x - schedule(i) * m, m, rows

    return init, update, lambda state: state[0]


def constant(step_size: Any) -> Schedule:
    """The same step size at every step.

    >>> constant(0.1)(100)
    0.1
    """
    return lambda i: step_size


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """step_size / (1 + decay_rate·i / decay_steps); `staircase`: the quotient rounded down.

    >>> inverse_time_decay(1.0, 10, 0.5)(20)
    0.5
    """

    def schedule(i: Any) -> Any:
        if staircase:
            return step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
        return step_size / (1 + decay_rate * i / decay_steps)

    return schedule


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size · decay_rate^(i / decay_steps).

    >>> exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """From step_size to final_step_size in decay_steps steps, as (1 - i / decay_steps)^power.

    >>> polynomial_decay(1.0, 10, 0.1)(5)
    Array(0.55, dtype=float32, weak_type=True)
    """

    def schedule(i: Any) -> Any:
        i = jnp.minimum(i, decay_steps)
        factor = (1 - i / decay_steps) ** power
        return factor * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] between the k-th pair of boundaries; one value more than boundaries.

    ValueError unless both are sequences, of such lengths.

    >>> piecewise_constant([10, 20], [1.0, 0.5, 0.1])(15)
    Array(0.5, dtype=float32)
    """
    edges, levels = jnp.array(boundaries), jnp.array(values)
    if not edges.ndim == levels.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != levels.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: levels[jnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is; a number as a constant one.

    TypeError for arrays that are no scalars.

    >>> make_schedule(0.1)(7), make_schedule(lambda step: 1 / step)(4)
    (0.1, 0.25)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all elements of a tree.

    >>> l2_norm({"a": jnp.array([3.0]), "b": jnp.array([4.0])})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down to a norm of at most max_norm.

    >>> clip_grads([jnp.array([3.0, 4.0])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks a subtree of an unpacked optimizer state.

    >>> [join.subtree for join in unpack_optimizer_state(sgd(0.1)[0]([1.0, 2.0]))]
    [1.0, 2.0]
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a tree like the parameters, each replaced by a JoinPoint, for saving.

    >>> state = momentum(0.1, 0.9)[0]({"w": 1.0})
    >>> unpack_optimizer_state(state)["w"].subtree
    (1.0, Array(0., dtype=float32, weak_type=True))
    """
    packed, tree, subtrees = opt_state
    states = [tree_unflatten(d, s) for d, s in zip(subtrees, packed, strict=True)]
    return tree_unflatten(tree, [JoinPoint(s) for s in states])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    ValueError for a tree of others than JoinPoints.

    >>> init, update, params = momentum(0.1, 0.9)
    >>> params(pack_optimizer_state(unpack_optimizer_state(init({"w": 1.0}))))
    {'w': 1.0}
    """
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise ValueError("[optimizers] expected a tree of JoinPoints.")
    states = [tree_flatten(p.subtree) for p in points]
    return OptimizerState(tuple([tuple(s) for s, _ in states]), tree, tuple([d for _, d in states]))
