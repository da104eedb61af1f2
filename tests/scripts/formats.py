"""Numbers as text: print options, formatters, precision, signs, widths, and tables made by hand."""

import numpy as np

x = np.array([[np.pi, -np.e * 1e4], [1e-7, 0.0]])
print(x, repr(x), str(x[0, 0]), repr(x[0, 0]), f"{x[0, 1]:+.2e}", sep="\n")
with np.printoptions(precision=3, suppress=True, sign="+"):
    print(x, np.array([1.0, np.nan, -np.inf]))
with np.printoptions(threshold=6, edgeitems=2):
    print(np.arange(100), np.arange(40).reshape(8, 5), repr(np.arange(1000.0)), sep="\n")
with np.printoptions(formatter={"float_kind": lambda v: f"<{v:.1f}>", "bool": lambda b: "ny"[int(b)]}):
    print(x, np.array([True, False]), np.arange(3))
with np.printoptions(nanstr="?", infstr="oo", linewidth=30, floatmode="fixed"):
    print(np.array([np.nan, np.inf, 1.5] * 4))
print(np.array2string(x, separator=", ", prefix="x = ", formatter={"float": "{:9.2f}".format}))
print(np.array2string(np.arange(20), max_line_width=25, separator="|"), np.array_str(x, precision=2))
print(np.format_float_positional(1 / 3, precision=4), np.format_float_scientific(1e10 / 3, precision=3))
print(
    np.binary_repr(10, width=6),
    np.binary_repr(-3, width=4),
    np.base_repr(255, 16),
    np.array([0b101], dtype="u1"),
)
for name, row in zip(["alpha", "beta"], x, strict=True):
    print(f"{name:>6} |", " ".join(f"{v:>12.4g}" for v in row), "|", sum(row) > 0)
print("%5.2f and %d of %s" % (x[0, 0], np.int8(7), np.float32(0.1)), f"{np.int64(5):>8}", f"{np.True_!s:>6}")  # noqa: UP031
print(
    np.float32(0.1), np.float16(1 / 3), np.complex64(1 + 2j), np.array([1 + 2j, -3.5j]), np.longdouble(1) / 4
)
print(
    np.array(["a", "bcd"]),
    np.array([b"x"]),
    np.array([None, 1.5, "t"], dtype=object),
    np.array(5),
    [np.int32(3)],
)
print(np.zeros((0, 3)), repr(np.zeros((2, 0), dtype="i2")), np.array([]), repr(np.array([[]], dtype=bool)))
print(
    repr(np.arange(3, dtype="f4")),
    repr(np.array(["u"])),
    [x[0, 0].round(2), np.bool_(1)],
    {"k": np.arange(2)},
)
print(
    np.arange(8).reshape(2, 2, 2),
    repr(np.array([1e300, 1e-300])),
    np.array([1e5, 123456.789]),
    np.array([0.1 + 0.2]),
)
