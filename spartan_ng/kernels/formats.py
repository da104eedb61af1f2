"""Dense, sparse and compressed blocks: which one a value is, and the dense form of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import sparse
from spartan_ng.compressed import is_compressed

_NUMPYS = (np.ndarray, np.generic)
"""What is dense at first sight: values of folds are numbers."""


def is_sparse_block(value: Any) -> bool:
    """Whether a block is one of SciPy's sparse arrays, or compressed, which looks like one."""
    return not isinstance(value, _NUMPYS) and (sparse.is_sparse(value) or is_compressed(value))


def dense(value: Any) -> Any:
    """The block as an ndarray."""
    if isinstance(value, _NUMPYS):
        return value
    if is_compressed(value):
        from spartan_ng.kernels.compiled import dictionaries

        return dictionaries.uncompressed(value)
    return value.toarray() if is_sparse_block(value) else value
