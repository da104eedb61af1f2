"""Seeded random numbers of many kinds."""

import numpy as np
from numpy.random import PCG64, Generator, default_rng

rng = default_rng(42)
n = 100_000
x, y = rng.uniform(-1, 1, size=(2, n))
print("pi", 4 * np.count_nonzero(x**2 + y**2 < 1) / n)
prices = 100 * np.exp(np.cumsum(rng.normal(0, 0.01, size=(50, 30)), axis=1))
call = np.maximum(prices[:, -1] - 100, 0)
print(f"{call.mean():.6f} +- {call.std(ddof=1) / np.sqrt(len(call)):.6f}")
print(rng.integers(0, 10, 5), rng.choice(["a", "b", "c"], 4), rng.permutation(5), rng.shuffle(np.arange(3)))
g = Generator(PCG64(1))
print(g.standard_normal(2), np.percentile(prices, [5, 50, 95]).round(3))
np.random.seed(1)
print(np.random.rand(2), np.random.randint(0, 5, 3), np.random.choice(5, 2, replace=False))
