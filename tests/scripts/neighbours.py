"""Nearest neighbours, principal components and bootstrapped intervals of a small data set."""

import numpy as np

rng = np.random.RandomState(12)
centres = np.array([[0, 0, 0], [4, 4, 0], [0, 5, 5]])
labels = np.repeat(np.arange(3), 20)
points = centres[labels] + rng.standard_normal((60, 3))
order = rng.permutation(60)
train, test = order[:45], order[45:]

distance = np.sqrt(((points[test][:, None, :] - points[train][None]) ** 2).sum(-1))
nearest = np.argpartition(distance, 5, axis=1)[:, :5]
votes = labels[train][nearest]
guess = np.array([np.bincount(v, minlength=3).argmax() for v in votes])
print(guess, (guess == labels[test]).mean(), distance.min(axis=1).round(4)[:4])
confusion = np.zeros((3, 3), dtype=int)
np.add.at(confusion, (labels[test], guess), 1)
print(confusion, confusion.trace() / confusion.sum(), type(confusion.sum().item()))

centred = points - points.mean(axis=0)
values, vectors = np.linalg.eigh(np.cov(centred, rowvar=False))
ranked = values.argsort()[::-1]
values, vectors = values[ranked], vectors[:, ranked]
share = values / values.sum()
for i, (value, part) in enumerate(zip(values, np.cumsum(share), strict=True)):
    print(f"component {i}: {value:8.4f} {part:7.2%}")
projected = centred @ vectors[:, :2]
print(np.round(np.abs(projected[:3]), 5), np.allclose(np.corrcoef(projected.T), np.eye(2)))
left, singular, _ = np.linalg.svd(centred, full_matrices=False)
print(np.allclose(singular**2 / 59, values), left.shape)

sample = points[:, 0]
means = np.array([rng.choice(sample, sample.size).mean() for _ in range(200)])
low, high = np.percentile(means, [2.5, 97.5])
print(f"{sample.mean():.4f} in [{low:.4f}, {high:.4f}], spread {means.std(ddof=1):.5f}")
drawn = rng.randint(0, 60, size=(300, 60))
medians = np.sort(np.median(sample[drawn], axis=1))
print(medians[[7, 292]].round(6), np.unique(drawn[0]).size, rng.randint(9), round(rng.rand(), 6))
