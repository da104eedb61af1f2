"""Seeded random numbers of every kind, old and new: the numbers themselves are compared."""

import numpy as np

np.random.seed(0)
print(np.random.rand(3), np.random.randn(2, 2), np.random.randint(0, 10, 5), np.random.random())
print(
    np.random.choice(5, 3), np.random.choice(["a", "b"], 4), np.random.permutation(6), np.random.uniform(1, 2)
)
print(
    np.random.normal(0, 1, 3),
    np.random.exponential(2.0, 2),
    np.random.poisson(3, 4),
    np.random.binomial(10, 0.5, 3),
)
x = np.arange(6)
np.random.shuffle(x)
print(
    x, np.random.choice(10, 4, replace=False), np.random.multinomial(5, [0.2, 0.8]), np.random.beta(1, 2, 2)
)
print(
    np.random.multivariate_normal([0, 0], np.eye(2)),
    np.random.dirichlet([1, 1, 1]),
    np.random.gamma(2.0, size=2),
)
s = np.random.RandomState(3)
print(s.rand(2), s.randint(5), s.standard_normal(2), s.choice(4, p=[0.1, 0.2, 0.3, 0.4], size=3), s.bytes(3))
state = np.random.get_state()
first = np.random.rand()
np.random.set_state(state)
print(first == np.random.rand())
rng = np.random.default_rng(12345)
print(
    rng.random(3),
    rng.integers(0, 100, 4),
    rng.normal(size=2),
    rng.choice(5, 2, replace=False),
    rng.permutation(4),
)
print(
    rng.standard_normal((2, 2), dtype=np.float32),
    rng.uniform(-1, 1),
    rng.exponential(),
    rng.triangular(0, 1, 2),
)
y = np.arange(12).reshape(3, 4)
rng.shuffle(y)
print(y, rng.permuted(y, axis=1), rng.choice(y, 2, axis=0), rng.integers(5, endpoint=True, size=3))
print(np.random.Generator(np.random.PCG64(7)).random(), np.random.Generator(np.random.MT19937(7)).random(2))
a, b = np.random.SeedSequence(1).spawn(2)
print(np.random.default_rng(a).random(), np.random.default_rng(b).integers(9))
walk = np.cumsum(rng.choice([-1, 1], (3, 1000)), axis=1)
print(walk[:, -1], walk.max(axis=1), np.abs(walk).argmax(axis=1))
dice = rng.integers(1, 7, (10000, 2)).sum(axis=1)
print(np.bincount(dice)[2:], dice.mean().round(3))
inside = (rng.random((100_000, 2)) ** 2).sum(axis=1) < 1
print(4 * inside.mean())
boot = rng.choice(dice[:50], (200, 50)).mean(axis=1)
print(np.percentile(boot, [2.5, 97.5]), rng.bit_generator.state["bit_generator"])
chain = np.array([[0.9, 0.1], [0.5, 0.5]])
here, seen = 0, []
for _ in range(20):
    here = rng.choice(2, p=chain[here])
    seen.append(int(here))
print(seen, np.linalg.matrix_power(chain, 50)[0])
