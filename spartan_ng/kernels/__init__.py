"""How a stage's body runs on one block: small NumPy calls into buffers that stay in the cache."""
