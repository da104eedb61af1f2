"""Programs that were wrong once, as short as the minimizer made them; the table of calls has their kin."""

from __future__ import annotations

FOUND = """
a0 = np.array([0.0, 2.5, 1.0, 0.0]); a1 = np.trim_zeros(a0); a0.fill(7); a1[0] = 3

a0 = np.array([5, 4]); a1 = np.correlate(a0, np.ones((1, 5)), 'full')
a0 = np.array([5, 4]); a1 = np.convolve(a0, np.ones((2, 2)), 'same')
a0 = np.correlate(np.array(2.0), np.ones(2))
a0 = np.convolve(np.array(2.0), np.ones(2))

a0 = np.array([True, False, True]); a1 = np.histogram(a0, bins=[-1, 0, 1], weights=a0)
a0 = np.array([True, False, True]); a1 = np.histogram(a0, bins=3, weights=a0)[0]

a0 = np.array([0, 3, -2]); a1 = np.histogram(a0, bins=[-1, 0, 1, 4], weights=[N.inf, 1.0, 2.0])[0]
a0 = np.array([-N.inf, 0.5, N.nan]); a1 = np.histogram(a0, bins=[0, 1, 4], weights=[-N.inf, 1.0, 2.0])[0]

a0 = np.fft.fftshift(np.array(2.0))
a0 = np.fft.ifftshift(np.arange(5.0))

a0 = np.ones(3); a1 = np.array([1, 0, 1]); a2 = np.multiply(a0, 7, out=a0, where=a1)
a0 = np.ones(3); np.copyto(a0, 7, where=np.array([1, 0, 1]))
a0 = np.ones(3); a1 = np.sum(a0, where=np.array([1, 0, 1]))
a0 = np.ones(3); a1 = np.var(a0, where=np.array([1, 0, 1]))
a0 = np.array([1, N.nan, 3]); a1 = np.nanmean(a0, where=np.array([1, 0, 1]))
a0 = np.ones(3); a1 = np.sum(a0, where=[2, 0, 1]); a2 = np.mean(a0, where=[True, False, True])

a0 = np.ones(3) == 1; a1 = np.round(a0, 0); a2 = np.round(a0, 1)
a0 = np.ones(3) == 1; a1 = np.round(a0, -1)

a0 = np.ones((2, 2)); a1 = np.linalg.matrix_power(a0, 1); a0[0] = 7; a1[1] = 5

a0 = np.array([4, 2, 7], 'u8'); a1 = a0[a0 > 3]; a2 = np.bitwise_and.reduce(a1); a3 = np.bitwise_or.reduce(a1)
a0 = np.array([4, 2], 'u1'); a1 = np.extract(a0 > 9, a0); a2 = np.bitwise_and.reduce(a1)
a0 = np.array([4, 2], 'i2'); a1 = np.bitwise_and.reduce(a0, where=a0 > 9)

a0 = np.linspace(np.ones(2, 'f2'), 0, 3); a1 = np.linspace(0, np.ones(2, 'f4'), 3)
a0 = np.linspace(np.ones(2, 'c8'), 0.5, 3); a1 = np.linspace(np.ones(2, 'i1'), N.float32(4), 4)
a0 = np.logspace(np.ones(2, 'f4'), 2, 3)

a0 = np.ones(2, 'f4'); a1 = np.select([a0 > 0, a0 > 1], [a0, 2], 1.5); a2 = np.select([a0 > 1], [a0], 2j)
a0 = np.ones(2, 'i1'); a1 = np.select([a0 > 1, a0 > 0], [a0, N.int64(2)], 1)

a0 = np.array([4, 2], 'i2'); a1 = a0[a0 > 0]; a1 += 2.0
a0 = np.array([True, False]); a0[a0] *= 2
a0 = np.array([4, 2], 'i2'); a0[a0 > 3] *= 2.5

a0 = np.unravel_index(np.arange(1), ())
a0 = np.unravel_index(np.array(5), (2, 3))[1]

a0 = np.ones(1); a0 = a0.T * 2; a0[1:] += a0[:-1]
a0 = np.ones((0, 3)).T; a1 = a0 + np.ones((3, 1)); a2 = np.where(a0 > 0, 1, a0); a3 = np.sum(a0, axis=1)

a0 = np.fft.irfft(np.ones((2, 2)).T + 1j, 5, axis=-2); a0.reshape(-1)[:2] = 1
a0 = np.fft.rfft(np.ones((2, 4)), axis=-1); a0.reshape(-1)[:2] = 1
a0 = np.fft.fft(np.ones((2, 4)).T, axis=0); a0.reshape(-1)[:2] = 1
a0 = np.vectorize(lambda x: x * 2)(np.count_nonzero(np.ones(3))); a0[...] = 5

a0 = np.mean(np.array(2.0), axis=0, where=np.array(True))
a0 = np.mean(np.array(2.0), axis=1, where=np.array(True))
a0 = np.var(np.array(2.0), axis=0, where=np.array(True))
a0 = np.std(np.array(2), axis=-1, where=np.array(True))
a0 = np.mean(np.array(2.0), axis=-1, keepdims=True, where=np.array(True)); a1 = np.mean(np.array(2.0), axis=0)

a0 = np.ones(1); a0[-1], a0[...] = a0[()], 3
a0 = np.ones((2, 3)); a1 = np.zeros((1, 1)); a0[1, 2] = a1; a0[1] = a1[0]
a0 = np.ones((2, 3)); a1 = np.arange(2); a0[0, 0] = a1
a0 = np.ones((2, 3), 'i2'); a1 = np.ones((1, 2)); a0[..., 1, 2] = np.sum(a1, axis=1); a0[0, 1] = np.sum(a1)
a0 = np.array(1.0); a1 = np.ones(1); a0[()] = a1; a0[...] = a1

a0 = np.zeros(3, 'i1'); a1 = np.sum(np.array([3000, 1])); a0[1:2] = a1; a0[...] = a1; a0[[0, 2]] = a1
a0 = np.zeros(3, 'u2'); a1 = -np.max(np.array([3, 4])); a0[0] = a1; a0.fill(a1); a0[a0 > 0] = a1
a0 = np.zeros(3, 'i4'); a1 = np.sum(np.array([N.nan, 1])); a0[0] = a1; a0[0:0] = a1
a0 = np.zeros(3, 'i1'); np.place(a0, a0 == 0, [np.sum(np.array([3000, 1]))])

a0 = np.arange(5).astype('u4'); a1 = np.isclose(a0, -1); a2 = np.isclose(a0, 2); a3 = np.isclose(a0, 1 << 40)
a0 = np.zeros((0, 2), 'c8'); a1 = np.cov(a0); a2 = np.corrcoef(a0 * 2); a3 = np.cov(a0.T)

a0 = np.ones((1, 3)); a1 = np.zeros((0, 2)); a0[a0 > 1] = a1; a0[0, [True, False, True]] = a0[:, :2]
a0 = np.full(3, np.ones((1, 1)) * 2); a1 = np.insert(a0, 1, a0[None, :1]); a2 = np.full_like(a0, a0[:, None])
a0 = np.ones((2, 3)); a1 = np.insert(a0, [1], np.arange(2) * 2, axis=1)
a0 = np.ones((2, 3)); a1 = np.insert(a0, 1, np.arange(2) * 2, axis=1)
a0 = np.full(2, N.nan); a1 = np.nan_to_num(a0, nan=np.ones((1, 1))); a2 = np.nan_to_num(a0, nan=a1[0] * 1j)
a0 = np.full(2, 1 << 60, 'u8'); a1 = np.array([1, 2, 3]); np.add.at(a0, [0, 0, 1], a1 * 3)
a0 = np.ones(2, 'i1'); a1 = np.array([300, -7, 3]); np.maximum.at(a0, [0, 0, 1], a1 * 10)

a0 = np.ones(2) == 1; a0 -= np.array([3, 4])[0]
a0 = np.ones(2, 'i2'); a0 += np.remainder(np.array(3.5), 2); a0 *= np.max(np.array([3, 4]))
a0 = np.ones((2, 3), 'u4'); a1 = np.select([a0 > 0], [3], a0); a2 = np.select([a0 > 0], [a0], -2)
a0 = np.array(True); a1 = a0[()] ** 2; a2 = np.any(a0 > 0) ** 2
a0 = np.array(3.0); a1 = a0[()][...]; a1[...] = 2; a0[()][...] -= 1
a0 = np.array(2.0); a1 = np.mean(a0, where=N.int8(2)); a2 = np.var(np.ones(3), where=3)

a0 = np.ones(2, 'f4'); a1 = np.min_scalar_type(a0).num; a2 = np.min_scalar_type(np.array(7)).num
a0 = np.ones(4, 'f2'); a1 = np.histogram2d(a0, a0, 3, [[0, 4], [0, 4]])[1]; a2 = np.histogram2d(a0, a0, 3)[1]
a0 = np.ones(4, 'i4'); a1 = np.histogramdd([a0, a0], ([0, 1, 2], 3), [None, [0, 1]])[1][0]
a0 = np.packbits(np.array(True), axis=0); a1 = np.unpackbits(np.array(3, 'u1'), axis=-1)
a0 = np.roots(np.array([2, N.nan, 1], 'f2')); a1 = np.linalg.eigvals(np.full((2, 2), N.inf, 'f2'))
a0 = np.roots(np.array([2], 'f2')); a1 = np.roots(np.array([2, 0], 'f4'))
a0 = np.linalg.cond(np.eye(2) * 3); a1 = np.linalg.matrix_norm(np.eye(2) * 3, ord=1)
a0 = np.array([N.nan, 1j]); np.nan_to_num(a0, copy=False); a1 = np.nan_to_num(np.array(N.nan), copy=False)
a0 = np.max(np.array([3, 4])); a1 = np.fft.fftn(a0); a2 = np.require(a0, 'f8', ['C'])
a0 = np.max(np.array([3.0, 4])); a1 = np.where(a0 > 0, a0, 1); a2 = a1.copy(); a1 += 3
a0 = np.max(np.array([3.0, 4])); a1 = np.where(a0 > 0, a0, 1); a2 = a1.astype('f8'); a1 += 3
a0 = np.inner(np.arange(3) * 2, np.arange(3)); a1 = a0.copy(); a0 += 3
a0 = np.diagonal(np.ones((2, 2), 'u1')); np.copyto(a0, N.int64(3))
a0 = np.max(np.array([3, 4])); a1 = np.may_share_memory(a0, a0); a2 = np.iscomplex(a0); a3 = np.isreal(a0)
a0 = np.ones(9); a1 = np.interp(a0, np.array([1j, 2]), [1, 2]); a2 = np.interp(a0, [1, 2], [1, 2], period=0)
a0 = np.ones(2).flags.writeable; a1 = np.rollaxis(a0, 0); a2 = np.rollaxis([1, 2], 0)
a0 = np.array([2, 5, 0], 'i2'); a1 = np.ones(5, 'f4'); a0[a0 > 0] -= a1
a0 = np.ones((2, 3)); a1 = np.ones(5); np.copyto(a0, a0, where=a1)
a0 = np.ones((2, 2)); a1 = np.diag(a0); np.copyto(a1, a1); np.copyto(a1, 3)
a0 = np.array([-1, 2]); a1 = np.cross(a0, a0 + 1)
a0 = np.linalg.matrix_rank(np.ones((0, 0)) * 2); a1 = np.linalg.matrix_rank(np.ones((2, 0, 3)) * 2)
a0 = np.max(np.array([3, 4])); a1 = np.apply_over_axes(np.sum, a0, 0); a2 = sum(np.array_repr(a0).encode())
"""


def programs() -> list[str]:
    """Each program's text."""
    return [line.strip() for line in FOUND.splitlines() if line.strip()]
