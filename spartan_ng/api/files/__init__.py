"""Arrays in and out: NumPy's files, sources and sinks, compressed matrices."""
