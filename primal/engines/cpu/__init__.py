"""The embedded compiler: programs as vector loops of LLVM code, and library calls between them."""

from primal.engines.cpu.engine import CpuEngine as CpuEngine
