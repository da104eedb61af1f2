"""Random views, writes and reads on real daemons, against NumPy arrays; and what stays on the driver."""

from __future__ import annotations

import warnings

import numpy
import pytest

import spartan_ng
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from tests import views
from tests.api import test_stretched_writes as stretched

OBJECTS = {
    "choice": lambda np, o, f: np.where(f > 3, o, 0),
    "choose": lambda np, o, f: np.choose(f.astype(int) % 2, [f, o]),
    "select": lambda np, o, f: np.select([f < 3, f > 5], [o, f], 9),
    "joined": lambda np, o, f: np.hstack([f, o]),
    "inserted": lambda np, o, f: np.insert(o, 1, 5),
    "copied": lambda np, o, f: (np.copyto(o, f), o)[1],
    "written": lambda np, o, f: (o.__setitem__(f > 4, None), o.__setitem__([3, 5], f[:2]), o)[2],
    "quotient": lambda np, o, f: (o / np.ones((4, 1)))[[0, 2], [1, 3]],
    "stacked into": lambda np, o, f: np.stack([o], out=o[None]),
    "kept beside numbers": lambda np, o, f: (f * 2 + np.arange(9), o + f)[1],
}


@pytest.fixture
def daemons():
    before = session.current().backend
    with LocalCluster(3) as backend:
        session.use(backend)
        try:
            with config.override(small_bytes=0):
                yield
        finally:
            session.use(before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_on_daemons(daemons):
    views.run(8, steps=15)
    for seed in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of such writes
            steps = stretched.steps_of(seed)
            found, expected = stretched.run(spartan_ng, seed, steps), stretched.run(numpy, seed, steps)
        for f, e in zip(found, expected, strict=True):
            numpy.testing.assert_array_equal(f, e, err_msg=f"seed {seed}: {steps}")


def test_objects_stay_on_the_driver(daemons):
    for name, call in OBJECTS.items():
        found, expected = (
            call(np, np.array(list(range(9)), dtype=object), np.arange(9.0) + 0) for np in (spartan_ng, numpy)
        )
        assert found.tolist() == expected.tolist(), name
    o = spartan_ng.array([1, 2, 3], dtype=object)
    numbers = spartan_ng.arange(3.0) * 2
    both = spartan_ng.compute(numbers, numbers + o, numbers.sum())  # the plain ones run on the workers
    assert [numpy.asarray(x).tolist() for x in both] == [[0, 2, 4], [1, 4, 7], 6]
