"""What few programs need is loaded when one does: 4 ms of every first program otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primal.base.later import Later

if TYPE_CHECKING:
    from primal.engines.cpu import complex_extrema as complex_extrema
    from primal.engines.cpu import complex_products as complex_products
    from primal.engines.cpu import condense as condense
    from primal.engines.cpu import convolution as convolution
    from primal.engines.cpu import factorisations as factorisations
    from primal.engines.cpu import firsts as firsts
    from primal.engines.cpu import fourier as fourier
    from primal.engines.cpu import orders as orders
    from primal.engines.cpu import packed as packed
    from primal.engines.cpu import pooling as pooling
    from primal.engines.cpu import recurrences as recurrences
    from primal.engines.cpu import reflections as reflections
    from primal.engines.cpu import scans as scans
    from primal.engines.cpu import small as small
    from primal.engines.cpu import solves as solves
    from primal.engines.cpu import spectra as spectra
    from primal.engines.cpu import systems as systems
    from primal.engines.cpu import tridiagonals as tridiagonals
else:
    complex_extrema = Later("primal.engines.cpu.complex_extrema")
    complex_products = Later("primal.engines.cpu.complex_products")
    condense = Later("primal.engines.cpu.condense")
    convolution = Later("primal.engines.cpu.convolution")
    factorisations = Later("primal.engines.cpu.factorisations")
    firsts = Later("primal.engines.cpu.firsts")
    fourier = Later("primal.engines.cpu.fourier")
    orders = Later("primal.engines.cpu.orders")
    packed = Later("primal.engines.cpu.packed")
    pooling = Later("primal.engines.cpu.pooling")
    recurrences = Later("primal.engines.cpu.recurrences")
    reflections = Later("primal.engines.cpu.reflections")
    scans = Later("primal.engines.cpu.scans")
    small = Later("primal.engines.cpu.small")
    solves = Later("primal.engines.cpu.solves")
    spectra = Later("primal.engines.cpu.spectra")
    systems = Later("primal.engines.cpu.systems")
    tridiagonals = Later("primal.engines.cpu.tridiagonals")
