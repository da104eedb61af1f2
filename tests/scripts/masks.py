"""Boolean logic, selections, masked arrays and sets on a table of measurements."""

import numpy as np

rng = np.random.default_rng(11)
data = rng.normal(20, 5, (6, 7)).round(1)
data[rng.random((6, 7)) < 0.15] = np.nan
print(data)
valid = ~np.isnan(data)
print(
    valid.sum(axis=0),
    valid.all(axis=1),
    np.nanmean(data, axis=0),
    np.nanstd(data).round(9),
    np.nanmedian(data),
)
filled = np.where(valid, data, np.nanmean(data, axis=0))
print(filled.round(2), np.isnan(filled).any())
hot = (filled > 22) & (filled < 30) | (filled < 12)
print(hot.astype(int), np.argwhere(hot)[:4], filled[hot].round(1)[:5], np.logical_xor(hot, valid).sum())
levels = np.select([filled < 15, filled < 22, filled >= 22], ["cold", "mild", "hot"], "unknown")
print(levels[:2], dict(zip(*[v.tolist() for v in np.unique(levels, return_counts=True)], strict=True)))
filled[filled > 25] = 25
filled[:, 0][filled[:, 0] < 20] += 100
print(filled[:, 0], np.clip(filled, 15, 20)[0], np.any(filled > 100), np.count_nonzero(filled == 25))
m = np.ma.masked_invalid(data)
print(m.mean(), m.mean(axis=0), m.filled(-1)[0], m.count(), np.ma.masked_where(m > 22, m).sum())
mask = np.zeros(data.shape, bool)
mask[1::2, ::3] = True
np.place(filled, mask, [0, -1])
print(data[mask], np.extract(mask, data), filled[1])
print(
    np.choose([0, 1, 2, 1], [[1, 2, 3, 4], [10, 20, 30, 40], [100, 200, 300, 400]]),
    np.compress([False, True, True], data[:3], axis=0).shape,
)
print(
    np.union1d([3, 1], [2, 3]),
    np.setdiff1d([1, 2, 3], [2]),
    np.setxor1d([1, 2], [2, 5]),
    np.isin([1, 2, 9], [2, 9], invert=True),
)
print(
    np.nanargmax(data, axis=1),
    np.nan_to_num(data[0], nan=-9),
    np.isclose(0.1 + 0.2, 0.3),
    np.array_equal([1], [1]),
)
print(
    np.searchsorted([1, 3, 5], [0, 3, 6], side="right"),
    np.lexsort(([1, 0, 1], [2, 1, 1])),
    np.partition([5, 2, 8, 1], 2)[:2].sum(),
)
rows, cols = np.where(np.isnan(data))
print(list(zip(rows.tolist(), cols.tolist(), strict=True)))
data[rows, cols] = np.take(np.nanmedian(data, axis=0), cols)
print(np.sort(data, axis=None)[-3:], data[np.ix_([0, 2], [1, 3])], data[[0, -1], [0, -1]], data[..., -1])
np.putmask(data, data > 25, [0.0, 1.0])
print(data[0], (data == 0).any(), np.flatnonzero(data < 2))
z = data.copy()
z[z < 10], z[z >= 10] = -1, 1
print(z.sum(), np.all(np.abs(z) == 1), ~np.array([True, False]), -np.array([1, 2]), np.bitwise_and(6, [3, 4]))
