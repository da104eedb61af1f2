"""`spartan_ng.linalg`: products are distributed, decompositions run on the driver."""

from typing import Any

import numpy as np

from spartan_ng.api import products
from spartan_ng.api.dispatch import fallback, numpy_function
from spartan_ng.api.manipulation import matrix_transpose
from spartan_ng.api.products import (
    cross,
    matmul,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    outer,
    tensordot,
    vecdot,
    vector_norm,
)

LinAlgError = np.linalg.LinAlgError
test = np.linalg.test  # type: ignore[attr-defined]


@numpy_function(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the last two axes."""
    return products.diagonal(x, offset, -2, -1)


@numpy_function(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return products.trace(x, offset, -2, -1, dtype)


cholesky = fallback(np.linalg.cholesky)
cond = fallback(np.linalg.cond)
det = fallback(np.linalg.det)
eig = fallback(np.linalg.eig)
eigh = fallback(np.linalg.eigh)
eigvals = fallback(np.linalg.eigvals)
eigvalsh = fallback(np.linalg.eigvalsh)
inv = fallback(np.linalg.inv)
lstsq = fallback(np.linalg.lstsq)
matrix_rank = fallback(np.linalg.matrix_rank)
pinv = fallback(np.linalg.pinv)
qr = fallback(np.linalg.qr)
slogdet = fallback(np.linalg.slogdet)
solve = fallback(np.linalg.solve)
svd = fallback(np.linalg.svd)
svdvals = fallback(np.linalg.svdvals)
tensorinv = fallback(np.linalg.tensorinv)
tensorsolve = fallback(np.linalg.tensorsolve)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "test",
    "trace",
    "vecdot",
    "vector_norm",
]
