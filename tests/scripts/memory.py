"""Views, copies, strides, orders, in-place work and iteration."""

import copy

import numpy as np

a = np.arange(24).reshape(2, 3, 4)
b = a[:, 1:, ::2]
b[...] = -1
print(
    a,
    b.base is a or b.base is not None,
    np.shares_memory(a, b),
    b.flags["C_CONTIGUOUS"],
    a.strides,
    b.strides,
)
c = a.T
c[0, 0, 0] = 99
print(a[0, 0, 0], c.flags.f_contiguous, a.ravel()[0], a.flatten().base is None, a.reshape(-1)[:3])
d = a.copy(order="F")
print(
    d.flags.f_contiguous,
    d.strides,
    np.asfortranarray(a).strides,
    np.ascontiguousarray(d).strides,
    np.zeros((2, 3), order="F").strides,
)
x = np.arange(10)
x[1:] += x[:-1]
print(x)
x[::-1] = x
print(x)
x[x % 2 == 0] **= 2
x -= 5
x //= 3
print(x, x.sum())
y = x
y += 1
z = x.copy()
z += 1
print((x == y).all(), (x == z).any(), copy.deepcopy(x) is x)
m = np.zeros((3, 3))
for i, row in enumerate(m):
    row[:] = i
    row[i] *= 10
print(m)
m[1], m[2] = m[2].copy(), m[1].copy()
m[:, [0, 1]] = m[:, [1, 0]]
print(m, m[0] is m[0])
for v in np.nditer(np.arange(3)):
    print(v, end=" ")
it = iter(m)
print(next(it), m.flat[4], list(m.flat)[:3], m.item(5), m.tolist())
m.flat[::4] = 7
m.T[0] = [1, 2, 3]
print(m, m.diagonal(), np.einsum("ii->i", m).sum())
e = np.empty((0, 3))
print(e.sum(), e.shape, np.vstack([e, np.ones((1, 3))]), e.max(axis=1).shape)
r = np.array([3, 1, 2])
r.sort()
r.resize(5, refcheck=False)
print(r, np.resize(r, 7), np.insert(r, 1, [8, 9]), np.delete(r, [0, -1]), np.append(r, 4))
out = np.empty(5)
np.multiply(r, 0.5, out=out)
np.add(out, 1, out=out, where=r > 1)
print(out, out, out.astype(np.int8).dtype, out.view(np.int64)[:1])
print(np.lib.stride_tricks.as_strided(np.arange(5), (3, 3), (8, 8)), np.broadcast_to([1, 2], (2, 2)).strides)
print(
    np.add.outer([1, 2], [10, 20]),
    np.subtract.accumulate([10, 3, 2]),
    np.multiply.reduce([[1, 2], [3, 4]], axis=1),
)
s = np.s_[1:, ::2]
print(a[s].shape, a[..., None].shape, a[None, 1].shape, a[:, np.newaxis, 0].shape, a[1][2][3], a[-1, -1, -1])
f = np.vectorize(lambda p, q: p * q if p > 1 else -q)
print(
    f([1, 2, 3], 4),
    np.frompyfunc(lambda p: p + 1, 1, 1)(np.arange(3)),
    np.fromfunction(lambda i, j: i == j, (2, 2)),
)
g = np.array(3.5)
g += 1
print(g, g.shape, g[()], float(g), g.item(), np.float64(2) + g, type(np.float64(2) + 1).__name__ != "")
