"""Small libraries that show how networks are built: `stax` and `optimizers`."""
