"""Dates, strings, polynomials, masked arrays, flags and other odds and ends."""

import numpy as np

d = np.arange("2024-01-01", "2024-01-11", dtype="datetime64[D]")
v = np.arange(10.0) ** 2
print(d[v > 20], (d[-1] - d[0]).astype(int), np.diff(d)[0], d.min(), d.max())
week = np.is_busday(d)
print(week.sum(), np.busday_count("2024-01-01", "2024-02-01"))
months = d.astype("datetime64[M]")
print(np.unique(months))
s = np.array(["pear", "apple", "fig"])
print(np.sort(s), np.char.upper(s), np.char.str_len(s), s == "fig", "fig" in s)
print(np.where(s == "fig")[0], s[np.argsort(s)], "-".join(s), np.char.add(s, "!"))
m = np.ma.masked_invalid([1.0, np.nan, 3.0])
print(m.mean(), m.filled(0))
p = np.polynomial.Polynomial([1, 2, 3])
print(p(2.0), np.polyval([3, 2, 1], np.array([2.0])), np.roots([1, -3, 2]), np.poly1d([1, 2])(3))
print(
    np.float32(1) / 3,
    np.int64(7) // 2,
    type(np.float64(2) * 2).__name__ in ("float64", "ndarray"),
    np.iinfo("i4").max,
    np.isscalar(3.0),
)
a = np.array([[1, 2], [3, 4]], order="F")
print(a.flags.f_contiguous, a.T.flags.c_contiguous, a.strides, a.nbytes, a.itemsize)
x = np.array([1, 2, 3])
y = x
y += 1
print(x, x is y, np.shares_memory(x[1:], x), x.tolist(), x.tobytes()[:8])
print(x.dtype == np.int64, x.dtype == int, np.issubdtype(x.dtype, np.integer), isinstance(x, np.ndarray))
print(repr(x), str(x), x.__class__.__name__, round(float(x.mean()), 2), f"{x.mean():.3f}")
doubled = np.vectorize(lambda t: t * 2 if t > 2 else 0)
print(doubled(x), np.apply_along_axis(sum, 0, np.eye(2)), np.fromiter((i for i in range(3)), int))
