"""Image convolution by shifted slices, a median filter, edges, and noise removed in the frequency domain."""

import numpy as np

rng = np.random.default_rng(3)
image = np.zeros((24, 32))
image[6:18, 8:24] = 1.0
image[np.hypot(*np.ogrid[-12:12, -16:16]) < 4] = 0.5
noisy = image + rng.normal(0, 0.1, image.shape)


def convolve(picture, kernel):
    """The same size as the picture, edges repeated."""
    rows, columns = kernel.shape
    padded = np.pad(picture, ((rows // 2,) * 2, (columns // 2,) * 2), mode="edge")
    total = np.zeros_like(picture)
    for i in range(rows):
        for j in range(columns):
            total += kernel[i, j] * padded[i : i + picture.shape[0], j : j + picture.shape[1]]
    return total


gauss = np.outer([1, 2, 1], [1, 2, 1]) / 16
sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=float)
smooth = convolve(noisy, gauss)
edges = np.hypot(convolve(smooth, sobel), convolve(smooth, sobel.T))
print(np.round(smooth[5:8, 7:12], 6), np.round(edges.max(), 6), np.unravel_index(edges.argmax(), edges.shape))
windows = np.lib.stride_tricks.sliding_window_view(np.pad(noisy, 1, mode="reflect"), (3, 3))
median = np.median(windows, axis=(-2, -1))
print(windows.shape, np.round(np.abs(median - image).mean(), 6), np.round(np.abs(noisy - image).mean(), 6))
spectrum = np.fft.fftshift(np.fft.fft2(noisy))
v, u = np.meshgrid(np.arange(-12, 12), np.arange(-16, 16), indexing="ij")
low = np.where(u**2 + v**2 <= 36, spectrum, 0)
back = np.fft.ifft2(np.fft.ifftshift(low))
print(np.abs(back.imag).max() < 1e-12, np.round(back.real[10, ::8], 6), np.count_nonzero(low))
t = np.arange(256) / 256
signal = np.sin(2 * np.pi * 5 * t) + 0.5 * np.sin(2 * np.pi * 40 * t)
bins = np.fft.rfft(signal)
freq = np.fft.rfftfreq(t.size, d=1 / 256)
print(freq[np.argsort(np.abs(bins))[-2:]], np.round(np.abs(bins)[[5, 40]], 6))
bins[freq > 10] = 0
print(np.allclose(np.fft.irfft(bins), np.sin(2 * np.pi * 5 * t)), np.array2string(image[6, ::4], precision=1))
