"""Backtracking over single elements, and elimination by hand: programs of item reads and writes."""

import numpy as np

grid = np.array(
    [
        [int(c) for c in line]
        for line in [
            "534678912",
            "672195348",
            "198342567",
            "859761423",
            "426853791",
            "700020006",
            "060000280",
            "000419005",
            "000080079",
        ]
    ],
    dtype=np.int8,
)
tried = 0


def free(g, i, j):
    """The digits that may stand at a place."""
    r, c = 3 * (i // 3), 3 * (j // 3)
    used = np.union1d(np.union1d(g[i], g[:, j]), g[r : r + 3, c : c + 3])
    return np.setdiff1d(np.arange(1, 10), used)


def solve(g):
    """Fill the place with the fewest choices; False where there is none."""
    global tried
    places = np.argwhere(g == 0)
    if len(places) == 0:
        return True
    choices = [(len(free(g, i, j)), i, j) for i, j in places]
    _, i, j = min(choices)
    for digit in free(g, i, j):
        tried += 1
        g[i, j] = digit
        if solve(g):
            return True
        g[i, j] = 0
    return False


print(solve(grid), tried)
print(grid)
print(all((np.sort(line) == np.arange(1, 10)).all() for line in (*grid, *grid.T)), grid.dtype, grid.sum())

A = np.array([[2.0, 1, 1, 0], [4, 3, 3, 1], [8, 7, 9, 5], [6, 7, 9, 8]])
n = len(A)
L, U, P = np.eye(n), A.copy(), np.eye(n)
for k in range(n - 1):
    pivot = k + np.abs(U[k:, k]).argmax()
    if pivot != k:
        U[[k, pivot]] = U[[pivot, k]]
        P[[k, pivot]] = P[[pivot, k]]
        L[[k, pivot], :k] = L[[pivot, k], :k]
    for i in range(k + 1, n):
        L[i, k] = U[i, k] / U[k, k]
        U[i, k:] -= L[i, k] * U[k, k:]
print(L.round(4), U.round(4), sep="\n")
print(np.allclose(P @ A, L @ U), round(float(np.prod(np.diag(U))), 6), np.linalg.det(A).round(6))
b = np.array([1.0, 2, 3, 4])
y = np.zeros(n)
for i in range(n):
    y[i] = (P @ b)[i] - L[i, :i] @ y[:i]
x = np.zeros(n)
for i in reversed(range(n)):
    x[i] = (y[i] - U[i, i + 1 :] @ x[i + 1 :]) / U[i, i]
print(x, np.allclose(A @ x, b), x[0] == x.min(), [round(float(v), 3) for v in x])
