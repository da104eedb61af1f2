"""Which nodes run together in one pass over a domain."""
