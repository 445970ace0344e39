"""Steps with code of their own: moves of data, and what goes along one axis or over windows."""
