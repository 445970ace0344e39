"""The vocabularies that an op's `hlo` and `kernel` rules speak: methods of a builder argument.

An op's room imports no engine; it receives a builder that satisfies `HloBuilder` or
`KernelBuilder`. The names of `HloBuilder` are the mnemonics of StableHLO (and of CHLO, its
companion of composed functions); methods that produce one result return an `HloValue`, those of
variadic operations a list. `KernelBuilder` has few words, and may decline any of them.

The protocols exist for readers and type checkers: at run time only `Unsupported` is loaded, which
is 0.6 ms of every import less.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from primal.ir.builders.hlo import HloBuilder as HloBuilder
    from primal.ir.builders.hlo import HloValue as HloValue
    from primal.ir.builders.kernel import KernelBuilder as KernelBuilder
    from primal.ir.builders.kernel import KernelValue as KernelValue


class Unsupported(Exception):
    """A kernel builder has no code for this word, dtype or shape.

    Raised by the words of `KernelBuilder` and never seen by users: the engine drops what the rule
    has built so far and runs the op's `impl` as a step. A rule need not catch it; one that knows
    another way to say the same may.
    """
