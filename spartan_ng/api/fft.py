"""`spartan_ng.fft`: Fourier transforms, on the driver."""

import numpy as np

from spartan_ng.api.dispatch import fallback

fft = fallback(np.fft.fft)
fft2 = fallback(np.fft.fft2)
fftfreq = fallback(np.fft.fftfreq)
fftn = fallback(np.fft.fftn)
fftshift = fallback(np.fft.fftshift)
hfft = fallback(np.fft.hfft)
ifft = fallback(np.fft.ifft)
ifft2 = fallback(np.fft.ifft2)
ifftn = fallback(np.fft.ifftn)
ifftshift = fallback(np.fft.ifftshift)
ihfft = fallback(np.fft.ihfft)
irfft = fallback(np.fft.irfft)
irfft2 = fallback(np.fft.irfft2)
irfftn = fallback(np.fft.irfftn)
rfft = fallback(np.fft.rfft)
rfft2 = fallback(np.fft.rfft2)
rfftfreq = fallback(np.fft.rfftfreq)
rfftn = fallback(np.fft.rfftn)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
