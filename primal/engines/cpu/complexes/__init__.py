"""Complex numbers: as two arrays of floats inside a program, as pairs in memory."""
