"""Dense and sparse blocks: which one a value is, and the dense form of either."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def is_sparse(value: Any) -> bool:
    """Whether a block is one of SciPy's sparse arrays."""
    return type(value) is not np.ndarray and bool(sparse.issparse(value))


def dense(value: Any) -> Any:
    """The block as an ndarray."""
    return value.toarray() if is_sparse(value) else value
