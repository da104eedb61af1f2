"""What users' functions are given is for reading: writing into it would change arrays that others have."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError
from tests.test_programs import running_on

X = numpy.arange(1.0, 1201.0).reshape(60, 20)
S = sparse.csr_array(X * (X % 3 == 0))


def spoil(array):
    """Overwrite an array."""
    (array.data if sparse.issparse(array) else array)[...] = 7


def mapped(block):
    spoil(block)
    return block


def folded(x, y):
    spoil(x)
    return x + y


def joined(extents, tiles):
    spoil(tiles[0])
    return (extents[0][0][0], 0), numpy.ones((tiles[0].shape[0], 1))


USES = {
    "map": lambda x: np.map(mapped, x, dtype=float),
    "filter": lambda x: np.filter(lambda b: mapped(b) > 3, x),
    "fold": lambda x: np.fold(folded, x, axis=0, dtype=float),
    "scan": lambda x: np.scan(folded, x, dtype=float),
    "join": lambda x: np.join_update(joined, np.add, (x,), (0,), (60, 1), float),
}


@pytest.mark.parametrize(
    "backend", [EmbeddedBackend, lambda: SimulatedBackend(3)], ids=["embedded", "three workers"]
)
@pytest.mark.parametrize("value", [X, S], ids=["dense", "sparse"])
@pytest.mark.parametrize("use", USES)
def test_functions_cannot_change_what_they_are_given(use, value, backend):
    with running_on(backend()), config.override(small_bytes=0):
        x = (np.asarray(value) * 1.0).persist()
        with pytest.raises(UserFunctionError, match="read-only"):
            USES[use](x).compute()
        found = x.toarray() if sparse.issparse(x) else numpy.asarray(x * 1)
    numpy.testing.assert_array_equal(found, X if value is X else S.toarray())


def test_a_function_may_give_back_what_it_is_given():
    with running_on(EmbeddedBackend()), config.override(small_bytes=0):
        x = np.array(X)
        y = np.map(lambda b: b, x, dtype=float).persist()
        y[3] = 0.0
        numpy.testing.assert_array_equal(numpy.asarray(y[3]), numpy.zeros(20))
        numpy.testing.assert_array_equal(numpy.asarray(x), X)
