"""The language: avals, the Op record, jaxprs, and the protocol of tracing."""

from primal.ir import show as show
