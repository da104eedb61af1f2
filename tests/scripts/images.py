"""Windows, filters, histograms and masks of an image."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

img = np.add.outer(np.arange(12.0), np.arange(10.0)) % 7
kernel = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
win = sliding_window_view(img, (3, 3))
edges = np.einsum("ijkl,kl->ij", win, kernel)
pad = np.pad(img, 1, mode="reflect")
small = img.reshape(6, 2, 5, 2).mean(axis=(1, 3))
hist, bins = np.histogram(img, bins=7)
print(edges.shape, edges.min(), edges.max(), pad.shape, small[0], hist, bins[:2])
rgb = np.stack([img, img * 0.5, img * 0.25], axis=-1)
gray = rgb @ [0.299, 0.587, 0.114]
rgb[..., 0][img > 3] = 0
mask = np.zeros_like(img, dtype=bool)
mask[2:5, 3:6] = True
print(gray.sum().round(6), rgb[..., 0].max(), np.argwhere(mask)[0], img[mask].sum())
f = np.fft.fft2(img)
print(np.abs(np.fft.ifft2(f) - img).max() < 1e-12)
print(np.clip(img, 1, 3)[:2, :4].astype("u1"), np.flipud(img)[0, :3], np.rot90(img).shape)
