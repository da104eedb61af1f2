"""A fuzzer: random NumPy programs, run with this package, with NumPy as the oracle."""
