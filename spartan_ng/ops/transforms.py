"""What NumPy has in memory for the Fourier transform of one line, as measured (NumPy 2.4).

Most work is done in double precision, whatever a line has: a copy of it, its transform, roots of unity and
what the factors of a length are transformed in. A length with a large prime factor is transformed by a
convolution of more than twice the length.

Bluestein, "A linear filtering approach to the computation of discrete Fourier transform" (1970).
"""

from __future__ import annotations

from functools import lru_cache

_BYTES, _ROUGH_BYTES = 64, 160
"""For each element of a line; and of one whose length has a large prime factor."""


def transform_bytes(n: int) -> int:
    """Bytes that are there at a time while a line of so many elements is transformed, its transform among
    them."""
    return n * (_ROUGH_BYTES if _largest_factor(n) ** 2 > n else _BYTES)


@lru_cache(maxsize=256)
def _largest_factor(n: int) -> int:
    """The largest prime factor."""
    found, factor = 1, 2
    while factor * factor <= n:
        while n % factor == 0:
            found, n = factor, n // factor
        factor += 1
    return max(found, n)
