"""Loops over elements, with Python's own functions on arrays."""

from collections import Counter

import numpy as np

N = 8


def safe(b, r, c):
    return not (
        b[r, :c].any()
        or np.diag(b[: r + 1, : c + 1][::-1]).any()
        or any(b[i, j] for i, j in zip(range(r, N), range(c, -1, -1), strict=False))
    )


def solve(b, c=0):
    if c >= N:
        return True
    for r in range(N):
        if safe(b, r, c):
            b[r, c] = 1
            if solve(b, c + 1):
                return True
            b[r, c] = 0
    return False


b = np.zeros((N, N), dtype=int)
print(solve(b))
print(b)
print(Counter(b.ravel().tolist()), b.sum(0), np.trace(b))
for (i, j), v in np.ndenumerate(b):
    if v:
        print(i, j, end="; ")
print({int(k): v for k, v in zip(*np.unique(b, return_counts=True), strict=True)})
print(
    [f"{x:.1f}" for x in np.linspace(0, 1, 3)],
    max(np.array([1, 5, 2])),
    sorted(np.array([3, 1, 2])),
    sum(np.arange(4)),
    len(b),
)
