"""NumPy's bit generators, seeded by arrays of ours as well, and whose state has such arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import forced
from spartan_ng.api.core.wrapping import wrap

_random: Any = np.random
"""NumPy's classes as bases: they are compiled, and their signatures ours need not repeat."""
BitGenerator = np.random.BitGenerator


def _plain(a: Any) -> Any:
    """A seed or a state with NumPy's arrays in place of ours."""
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    return type(a)(map(_plain, a)) if isinstance(a, list | tuple) else forced(a)


def _ours(state: Any) -> Any:
    """A state with arrays of ours in place of NumPy's."""
    if isinstance(state, dict):
        return {k: _ours(v) for k, v in state.items()}
    return wrap(state) if isinstance(state, np.ndarray) else state


class OfNumPys(type):
    """The class of a class derived from one of NumPy's, of which NumPy's objects are instances, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        numpys = next((base for base in cls.__mro__ if not isinstance(base, OfNumPys)), object)
        return numpys.__module__.startswith("numpy.") and isinstance(instance, numpys)


class _TakesArrays(metaclass=OfNumPys):
    """What the classes below have in common."""

    def __init__(self, *parameters: Any, **keywords: Any) -> None:
        super().__init__(*_plain(parameters), **_plain(keywords))

    @property
    def state(self) -> Any:
        """The state, as a dictionary of its parts."""
        return _ours(super().state)  # type: ignore[misc]

    @state.setter
    def state(self, value: Any) -> None:
        super(_TakesArrays, type(self)).state.__set__(self, _plain(value))  # type: ignore[misc]


class PCG64(_TakesArrays, _random.PCG64):  # type: ignore[misc]
    """A permuted congruential generator."""


class PCG64DXSM(_TakesArrays, _random.PCG64DXSM):  # type: ignore[misc]
    """Another output function of it."""


class MT19937(_TakesArrays, _random.MT19937):  # type: ignore[misc]
    """The Mersenne Twister."""

    def _legacy_seeding(self, seed: Any) -> None:
        super()._legacy_seeding(_plain(seed))


class Philox(_TakesArrays, _random.Philox):  # type: ignore[misc]
    """A generator that counts, by a key."""


class SFC64(_TakesArrays, _random.SFC64):  # type: ignore[misc]
    """Small, fast, and chaotic."""


class SeedSequence(_random.SeedSequence, metaclass=OfNumPys):  # type: ignore[misc]
    """Entropy, spread over the states of independent generators."""

    def __init__(self, entropy: Any = None, **keywords: Any) -> None:
        super().__init__(_plain(entropy), **_plain(keywords))


__all__ = ["MT19937", "PCG64", "PCG64DXSM", "SFC64", "BitGenerator", "Philox", "SeedSequence"]
