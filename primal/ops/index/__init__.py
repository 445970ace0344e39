"""Ops that address elements by computed indices: gather <-> scatter, dynamic slices, sorting."""
