"""The vocabularies that an op's `hlo` and `kernel` rules speak: methods of a builder argument.

An op's room imports no engine; it receives a builder that satisfies `HloBuilder` or
`KernelBuilder`. The names of `HloBuilder` are the mnemonics of StableHLO (and of CHLO, its
companion of composed functions); methods that produce one result return an `HloValue`, those of
variadic operations a list. `KernelBuilder` has few words, and may decline any of them.
"""

from primal.ir.builders.hlo import HloBuilder as HloBuilder
from primal.ir.builders.hlo import HloValue as HloValue
from primal.ir.builders.kernel import KernelBuilder as KernelBuilder
from primal.ir.builders.kernel import KernelValue as KernelValue
from primal.ir.builders.kernel import Unsupported as Unsupported
