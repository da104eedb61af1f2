"""How arrays print, under many options."""

import numpy as np

print(np.arange(3), np.arange(3.0), np.array([True, False]), np.array(5), np.float32(0.1), np.int8(3))
print(
    repr(np.arange(3)), repr(np.arange(3.0)), repr(np.zeros((2, 0))), repr(np.float64(2)), repr(np.array(5))
)
print(np.array([1e-10, 1, 1e10]), np.array([1.5, np.nan, -np.inf]), np.array([1 + 2j, 3.5 - 1j]))
print(np.arange(2000), np.arange(4000.0).reshape(40, 100))
print(repr(np.arange(24).reshape(2, 3, 4)), np.ones((2, 2), np.float16), np.array([], int))
with np.printoptions(precision=2, suppress=True, linewidth=40):
    print(np.linspace(0, 1, 13) ** 3, np.pi * np.eye(2))
np.set_printoptions(threshold=5, edgeitems=2)
print(np.arange(20), np.arange(100).reshape(10, 10))
np.set_printoptions(threshold=1000, edgeitems=3, formatter={"float": "{:+.3f}".format})
print(np.array([1.0, -2.0]))
np.set_printoptions()
np.set_printoptions(formatter=None, sign="+")
print(np.array([1.0, -2.0]), np.array([1, -2]))
np.set_printoptions(sign="-", floatmode="fixed", precision=3)
print(np.array([1.0, 0.12345]))
np.set_printoptions(floatmode="maxprec", precision=8)
x = np.array([[1, 22], [333, 4]])
print(f"{x.sum()} {x.mean():.2f} {x[0, 1]:5d}|{x.max():>6}|{np.float64(1) / 3:.3e}")
print(f"{x[0]} {x.dtype}", str(x.shape), x.size, x.ndim, x.itemsize, x.nbytes, x.strides)
print(np.array([1, 2, 3]).tolist(), list(np.array([1, 2])), [float(v) for v in np.arange(2.0)], *np.arange(3))
print(np.array([np.timedelta64(5, "s"), np.timedelta64("NaT")]), np.datetime64("2020-01-01T00"))
print(np.array_str(np.arange(3) / 3, precision=2), np.array_repr(np.arange(2), max_line_width=30))
print(
    np.format_float_positional(0.1 + 0.2),
    np.format_float_scientific(1234.5, precision=2),
    np.base_repr(10, 2),
)
print(np.zeros(2, dtype=[("a", int), ("b", "U3")]), np.iinfo(np.int16), np.finfo(np.float32).eps)
print({"a": np.arange(2), "b": [np.float64(1.5), np.bool_(True)]}, (np.int64(3),), np.array(["x"])[0])
print(np.ma.array([1, 2, 3], mask=[False, True, False]), np.poly1d([1, 2, 3]))
print(
    max(np.arange(4)),
    min(np.array([3.5, 2])),
    sum(np.arange(4)),
    sorted(np.array([3, 1, 2])),
    round(np.float64(2.567), 1),
)
print(
    np.arange(3) == [0, 1, 5], all(np.arange(3) < 3), any(np.zeros(2)), 2 in np.arange(3), not np.array([0])
)
print(hash(np.float64(0.5)) == hash(0.5), hash(np.int64(7)) == hash(7), isinstance(np.float64(1), float))
