"""What knows nothing of tracing: dtypes, pytrees, errors, settings, caches, source lines."""
