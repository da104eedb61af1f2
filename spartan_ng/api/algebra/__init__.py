"""Products of arrays, einsum, linear algebra."""
