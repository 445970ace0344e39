"""What tests of the interface share."""

import pytest

import primal
from primal.runtime.programs import counters


@pytest.fixture
def counts():
    """(traces, compilations) since the test began, which finds no programs of others."""
    primal.clear_caches()
    start = counters.traces, counters.compilations
    return lambda: (counters.traces - start[0], counters.compilations - start[1])
