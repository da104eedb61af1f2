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

a0 = np.fft.fftshift(np.array(2.0))
a0 = np.fft.ifftshift(np.arange(5.0))
"""


def programs() -> list[str]:
    """Each program's text."""
    return [line.strip() for line in FOUND.splitlines() if line.strip()]
