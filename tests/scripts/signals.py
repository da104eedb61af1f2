"""Signals: transforms, filters, windows, spectra, autocorrelation, histograms, interpolation."""

import numpy as np

np.set_printoptions(precision=4, suppress=True)
n = 64
t = np.arange(n) / n
x = np.sin(2 * np.pi * 5 * t) + 0.5 * np.cos(2 * np.pi * 12 * t)
X = np.fft.fft(x)
f = np.fft.fftfreq(n, 1 / n)
top = np.argsort(-np.abs(X), kind="stable")[:4]
print(np.sort(np.abs(f[top])), np.abs(X[np.sort(top)]))
print(np.allclose(np.fft.ifft(X), x), np.fft.rfft(x).shape, np.allclose(np.fft.irfft(np.fft.rfft(x)), x))
print(np.fft.fftshift(np.arange(6)), np.abs(np.fft.fft2(np.eye(4))))
kernel = np.hanning(5)
kernel /= kernel.sum()
print(np.convolve(x, kernel, mode="same")[:6], np.correlate([1, 2, 3], [0, 1, 0.5], "full"))
print(np.hamming(5), np.blackman(5), np.bartlett(5), np.kaiser(5, 14))
auto = np.correlate(x - x.mean(), x - x.mean(), "full")[n - 1 :]
print((auto / auto[0])[:5])
counts, edges = np.histogram(x, bins=6)
print(counts, edges)
print(np.digitize([-1.2, 0.0, 0.7], edges), np.interp([0.05, 0.5], t, x), np.trapezoid(x**2, t))
print(np.unwrap(np.angle(np.exp(1j * np.linspace(0, 12, 6)))), np.diff(x, n=2)[:3], np.gradient(x, t)[:3])
print(np.cumsum(x)[:4], np.percentile(x, [5, 50, 95]), np.quantile(x, 0.25), np.median(x), np.ptp(x))
h, xe, ye = np.histogram2d(x, np.roll(x, 3), bins=3)
print(h, xe)
noisy = x + np.random.default_rng(7).normal(0, 0.3, n)
S = np.fft.rfft(noisy)
S[np.abs(S) < 8] = 0
print(np.abs(np.fft.irfft(S) - x).max() < 0.5, np.count_nonzero(S))
smooth = np.empty_like(noisy)
smooth[0] = noisy[0]
for i in range(1, n):
    smooth[i] = 0.3 * noisy[i] + 0.7 * smooth[i - 1]
print(smooth[-3:])
print(
    np.maximum.accumulate(noisy)[:5],
    np.add.reduceat(noisy, [0, 16, 32]),
    np.where(np.diff(np.sign(noisy)))[0][:5],
)
peaks = np.flatnonzero((noisy[1:-1] > noisy[:-2]) & (noisy[1:-1] > noisy[2:])) + 1
print(peaks[:6], noisy[peaks].mean())
print(np.lib.stride_tricks.sliding_window_view(noisy, 8)[::8].mean(axis=1))
print(
    np.apply_along_axis(lambda w: w.max() - w.min(), 1, noisy.reshape(8, 8)),
    np.sinc([0, 0.5]),
    np.i0([0.0, 1]),
)
