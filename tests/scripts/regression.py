"""Least squares, a decomposition and its errors."""

import numpy as np
from numpy.linalg import LinAlgError, lstsq, norm, solve, svd

np.random.seed(0)
X = np.random.randn(200, 4)
w = np.array([1.0, -2, 0.5, 3])
y = X @ w + 0.01 * np.random.randn(200)
coef, res, rank, sv = lstsq(X, y, rcond=None)
np.testing.assert_allclose(coef, w, atol=0.01)
u, s, vt = svd(X, full_matrices=False)
np.testing.assert_allclose((u * s) @ vt, X, atol=1e-10)
print(rank, np.round(coef, 2), f"{norm(y - X @ coef):.4f}")
try:
    solve(np.zeros((2, 2)), np.ones(2))
except LinAlgError as e:
    print("singular:", e)
print(np.linalg.cond(X) < 10, np.allclose(s, sv))
