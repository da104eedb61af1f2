"""Conway's game of life."""

import numpy as np

rng = np.random.default_rng(3)
board = (rng.random((20, 20)) > 0.6).astype(np.uint8)
for step in range(5):
    n = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    board = ((n == 3) | ((board == 1) & (n == 2))).astype(np.uint8)
    print(step, board.sum(), board.mean(axis=0)[:3])
print("\n".join("".join(".#"[c] for c in row) for row in board[:5]))
