"""Compiled kernels on disk: the module `compilation_cache` in here."""
