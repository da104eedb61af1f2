"""Lines of our arrays in other orders, by generators of NumPy's, of libraries and of ours, as NumPy's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.quick import Probe
from spartan_ng.config import config

GENERATORS: dict[str, Callable[[Any], Any]] = {
    "NumPy's generator": lambda xp: numpy.random.default_rng(3),
    "NumPy's of another kind": lambda xp: numpy.random.Generator(numpy.random.MT19937(3)),
    "NumPy's legacy one": lambda xp: numpy.random.RandomState(3),
    "NumPy's module": lambda xp: (numpy.random.seed(3), numpy.random)[1],
    "NumPy's global one": lambda xp: (numpy.random.seed(3), numpy.random.mtrand._rand)[1],
    "of its module": lambda xp: xp.random.mtrand.RandomState(3),
    "global in its module": lambda xp: (xp.random.seed(3), xp.random.mtrand._rand)[1],
    "its module": lambda xp: (xp.random.mtrand.seed(3), xp.random.mtrand)[1],
    "a generator": lambda xp: xp.random.default_rng(3),
    "a legacy one": lambda xp: xp.random.RandomState(3),
}
MADE: dict[str, Callable[[Any], Any]] = {
    "line": lambda xp: xp.arange(7.0),
    "matrix": lambda xp: xp.arange(14.0).reshape(7, 2),
    "cube": lambda xp: xp.arange(42).reshape(7, 3, 2),
    "expression": lambda xp: xp.arange(14.0).reshape(7, 2) * 2 + 1,
    "turned": lambda xp: xp.arange(14.0).reshape(2, 7).T,
    "every second": lambda xp: xp.arange(28.0).reshape(14, 2)[::2],
    "blank": lambda xp: xp.zeros((5, 2)),
    "records": lambda xp: xp.array([(i, i / 2) for i in range(6)], "i8,f8"),
    "records in lines": lambda xp: xp.array([(i, i / 2) for i in range(6)], "i8,f8").reshape(3, 2),
    "texts": lambda xp: xp.array([["a", "bc"], ["d", "e"], ["f", "g"]]),
    "objects": lambda xp: xp.array([[1, None], ["x", 2.5], [3, 4]], object),
    "over a buffer": lambda xp: xp.frombuffer(bytearray(80)).reshape(5, 2),
    "asked of a class": lambda xp: xp.asarray(xp.ma.array(numpy.arange(14.0).reshape(7, 2))),
    "locked": lambda xp: _locked(xp.arange(14.0).reshape(7, 2)),
    "one": lambda xp: xp.ones((1, 3)),
    "none": lambda xp: xp.ones((0, 3)),
}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "shuffle": lambda g, a: g.shuffle(a),
    "shuffle a part": lambda g, a: g.shuffle(a[1:]),
    "shuffle backwards": lambda g, a: g.shuffle(a[::-1]),
    "shuffle twice": lambda g, a: (g.shuffle(a), g.shuffle(a))[0],
    "permutation": lambda g, a: g.permutation(a),
    "permuted": lambda g, a: g.permuted(a) if hasattr(g, "permuted") else None,
    "choice": lambda g, a: g.choice(a, 3) if a.ndim == 1 or hasattr(g, "permuted") else None,
    "choice of each once": lambda g, a: g.choice(a.shape[0], 1, replace=False),
    "random.shuffle": lambda g, a: random.Random(3).shuffle(a),
}


def _locked(a: Any) -> Any:
    a.flags.writeable = False
    return a


def _told(xp: Any, generator: str, call: str, made: str) -> Any:
    a = MADE[made](xp)
    if made == "over a buffer":
        a[...] = xp.arange(10.0).reshape(5, 2)
    try:
        found = CALLS[call](GENERATORS[generator](xp), a)
    except (ValueError, TypeError) as error:
        found = next(kind.__name__ for kind in (ValueError, TypeError) if isinstance(error, kind))
    return numpy.array(a).tolist(), found if found is None or isinstance(found, str) else numpy.array(
        found
    ).tolist()


@pytest.mark.skipif(Probe is None, reason="who asks for a line is known in C alone")
@pytest.mark.filterwarnings("ignore:you are shuffling a:UserWarning")
@pytest.mark.parametrize("small_bytes", [0, config.small_bytes])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_lines_in_other_orders(generator: str, call: str, small_bytes: int) -> None:
    for made in MADE:
        with config.override(small_bytes=small_bytes):
            assert _told(np, generator, call, made) == _told(numpy, generator, call, made), made


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("generator", [name for name in GENERATORS if "NumPy's" not in name])
def test_generators_of_the_package_have_nothing_to_warn_of(generator: str) -> None:
    assert _told(np, generator, "shuffle", "matrix") == _told(numpy, generator, "shuffle", "matrix")


def test_lines_are_views_to_everybody_else() -> None:
    a = np.arange(14.0).reshape(7, 2)
    a[3][0] = 5
    a[0], a[1] = a[1], a[0]
    theirs = numpy.arange(14.0).reshape(7, 2)
    theirs[3][0] = 5
    theirs[0], theirs[1] = theirs[1], theirs[0]
    assert a.tolist() == theirs.tolist()
