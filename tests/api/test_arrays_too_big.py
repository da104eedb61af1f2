"""Arrays that no memory has room for are errors at the call, as in NumPy, also where none is made yet."""

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

CALLS = {
    "empty": lambda n: n.empty((2**63,)),
    "zeros, one length": lambda n: n.zeros(2**63),
    "zeros, two lengths": lambda n: n.zeros((2**62, 2**62)),
    "zeros beside none": lambda n: n.zeros((0, 2**63)),
    "ones": lambda n: n.ones((2**64, 3)),
    "full": lambda n: n.full((2**62,), 1.0),
    "zeros_like": lambda n: n.zeros_like(n.ones(3), shape=(2**62, 2**62)),
    "empty_like": lambda n: n.empty_like(n.ones(3), shape=(2**63,)),
    "linspace": lambda n: n.linspace(0, 1, 2**62),
    "logspace": lambda n: n.logspace(0, 1, 2**62),
    "geomspace": lambda n: n.geomspace(1, 2, 2**62),
    "arange": lambda n: n.arange(2**62),
    "arange of doubles": lambda n: n.arange(2.0**62),
    "indices": lambda n: n.indices((2**40, 2**40)),
    "fromfunction": lambda n: n.fromfunction(lambda i: i, (2**62,)),
    "hanning": lambda n: n.hanning(2**62),
    "repeat": lambda n: n.repeat(n.ones(3), 2**62),
    "repeat, the method": lambda n: n.ones(3).repeat(2**62),
    "tile": lambda n: n.tile(n.ones(3), 2**62),
    "tile, less often": lambda n: n.tile(n.ones(3), 2**60),
    "random": lambda n: n.random.default_rng(0).random(2**62),
    "normal": lambda n: n.random.default_rng(0).normal(size=(2**40, 2**40)),
    "integers": lambda n: n.random.default_rng(0).integers(9, size=2**62),
    "choice": lambda n: n.random.default_rng(0).choice(5, 2**62),
    "rand": lambda n: n.random.rand(2**62),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("small_bytes", [0, config.small_bytes])
@pytest.mark.parametrize("name", CALLS)
def test_what_no_memory_has_room_for_is_refused_at_the_call(name, small_bytes):
    for n in (numpy, np):
        with config.override(small_bytes=small_bytes), pytest.raises(ValueError, match=r"."):
            CALLS[name](n)
