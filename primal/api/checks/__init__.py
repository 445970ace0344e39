"""checkify: programs that return what went wrong in them."""
