"""SciPy's sparse arrays, without importing SciPy for programs that have none.

SciPy takes several times as long to import as NumPy does. What makes a sparse array imports it; an object
can be one only where that has been done.
"""

from __future__ import annotations

import sys
from typing import Any


def is_sparse(x: object) -> bool:
    """Whether `x` is one of SciPy's sparse arrays or matrices."""
    test = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return test is not None and bool(test(x))


def csr_array(*args: Any, **keywords: Any) -> Any:
    """`scipy.sparse.csr_array` of these arguments."""
    from scipy import sparse

    return sparse.csr_array(*args, **keywords)
