"""Linear algebra: small matrices in the lanes of vectors, others by LAPACK without Python."""
