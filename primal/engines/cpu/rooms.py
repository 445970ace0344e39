"""What few programs need is loaded when one does: 4 ms of every first program otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primal.base.later import Later

if TYPE_CHECKING:
    from primal.engines.cpu import fourier as fourier
    from primal.engines.cpu import products as products
    from primal.engines.cpu.complexes import extrema as complex_extrema
    from primal.engines.cpu.complexes import folds as complex_folds
    from primal.engines.cpu.complexes import products as complex_products
    from primal.engines.cpu.matrices import condense as condense
    from primal.engines.cpu.matrices import factorisations as factorisations
    from primal.engines.cpu.matrices import packed as packed
    from primal.engines.cpu.matrices import reflections as reflections
    from primal.engines.cpu.matrices import small as small
    from primal.engines.cpu.matrices import solves as solves
    from primal.engines.cpu.matrices import spectra as spectra
    from primal.engines.cpu.matrices import systems as systems
    from primal.engines.cpu.matrices import tridiagonals as tridiagonals
    from primal.engines.cpu.products import convolution as convolution
    from primal.engines.cpu.routines import firsts as firsts
    from primal.engines.cpu.routines import orders as orders
    from primal.engines.cpu.routines import pooling as pooling
    from primal.engines.cpu.routines import recurrences as recurrences
    from primal.engines.cpu.routines import scans as scans
else:
    complex_extrema = Later("primal.engines.cpu.complexes.extrema")
    complex_folds = Later("primal.engines.cpu.complexes.folds")
    complex_products = Later("primal.engines.cpu.complexes.products")
    condense = Later("primal.engines.cpu.matrices.condense")
    convolution = Later("primal.engines.cpu.products.convolution")
    factorisations = Later("primal.engines.cpu.matrices.factorisations")
    firsts = Later("primal.engines.cpu.routines.firsts")
    fourier = Later("primal.engines.cpu.fourier")
    orders = Later("primal.engines.cpu.routines.orders")
    packed = Later("primal.engines.cpu.matrices.packed")
    pooling = Later("primal.engines.cpu.routines.pooling")
    products = Later("primal.engines.cpu.products")
    recurrences = Later("primal.engines.cpu.routines.recurrences")
    reflections = Later("primal.engines.cpu.matrices.reflections")
    scans = Later("primal.engines.cpu.routines.scans")
    small = Later("primal.engines.cpu.matrices.small")
    solves = Later("primal.engines.cpu.matrices.solves")
    spectra = Later("primal.engines.cpu.matrices.spectra")
    systems = Later("primal.engines.cpu.matrices.systems")
    tridiagonals = Later("primal.engines.cpu.matrices.tridiagonals")
