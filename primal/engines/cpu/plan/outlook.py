"""What is known of a program's results before the first of them is computed: how they are read.

Every equation is asked once, from the last to the first. What only an op knows of itself its record
tells, by `ahead`, in words of an `Outlook`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from primal.engines.cpu.plan.schedule import is_light_word
from primal.ir.jaxpr import Eqn, Jaxpr
from primal.ir.op import CONTRACT, REDUCTION
from primal.ir.trace import Literal


class Outlook:
    """How the variables of a program are read.

    `read`: how often; results of the program are. `woven`: those put together of others, or added
    up, that who reads them may read where they come from. `reduced`: those that reductions and
    contractions read, which need not be in memory for it. `orders`: the order of dimensions that
    all readers of a product, an elementwise result, a padding or a joint want. `crossed`: shapes to
    which some arrays are padded along rows, and others along other dimensions.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        eqns, results = jaxpr.eqns, [v for v in jaxpr.outvars if type(v) is not Literal]
        read = [v for eqn in eqns for v in eqn.invars if type(v) is not Literal]
        self.read = Counter([*read, *results])
        self.woven: set[Any] = set()
        sums = [eqn for eqn in eqns if eqn.op.kind in (REDUCTION, CONTRACT)]
        self.reduced = {v for eqn in sums for v in eqn.invars if type(v) is not Literal}
        self.orders: dict[Any, Sequence[int]] = {}
        # What others than light words read.
        self._stored = {v for eqn in eqns if not is_light_word(eqn.op.word) for v in eqn.invars}
        self._stored.update(results)
        self._along: set[Any] = set()
        self._across: set[Any] = set()
        self._padded: Counter[Any] = Counter()
        self._wanted: Counter[tuple[Any, Any]] = Counter()
        self._last: dict[Any, Sequence[int]] = {}
        for eqn in reversed(eqns):
            op = eqn.op
            if op.ahead is not None:
                op.ahead(self, eqn)
            if self._last and (op.kind.elementwise or op.kind is CONTRACT):
                self._pass_on(eqn)
        self.crossed = {s for s in self._along & self._across if self._padded[s] > 1}

    def _pass_on(self, eqn: Eqn) -> None:
        out = eqn.outvars[0]
        order = self._last.get(out)
        if order is not None and self._wanted[out, order] == self.read[out]:
            self.orders[out] = order
            if eqn.op.kind is not CONTRACT:
                self._order(eqn, order)

    def _order(self, eqn: Eqn, order: Sequence[int]) -> None:
        """The order in which an equation wants the dimensions of its operands."""
        for v in eqn.invars:
            if type(v) is not Literal and len(v.aval.shape) == len(order):
                self._wanted[v, order] += 1
                self._last[v] = order

    # What records say.

    def transposed(self, eqn: Eqn, permutation: Sequence[int]) -> None:
        """The operand's dimensions come in another order."""
        self._order(eqn, permutation)

    def padded(self, eqn: Eqn, edges: Sequence[Sequence[int]]) -> None:
        """Dimensions have edges around them."""
        self._pass_on(eqn)
        *others, row = [any(edge) for edge in edges] or [False]
        shape = eqn.outvars[0].aval.shape
        self._padded[shape] += 1
        if row:
            self._along.add(shape)
        if any(others):
            self._across.add(shape)

    def joined(self, eqn: Eqn) -> None:
        """The operands lie one after another."""
        self._pass_on(eqn)
        self._weave(eqn)

    def _weave(self, eqn: Eqn) -> None:
        if eqn.outvars[0] not in self._stored:
            self.woven.add(eqn.outvars[0])

    def summed(self, eqn: Eqn) -> None:
        """Operands are added up at places."""
        if self.read[eqn.outvars[0]] == 1:
            self._weave(eqn)
