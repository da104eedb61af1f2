"""The ready-made kernels: modules that are compiled as they stand, and read as text; see `source`."""
