"""Workloads side by side: spartan_ng, NumPy, dask, jax, and hand-written kernels, in one run."""
