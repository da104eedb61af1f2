"""Sources under another shape, without a reshape, where memory has no room for one."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

PROGRAMS = {
    "a number that is made": lambda x: (-(x @ x)).reshape(1, -1),
    "numbers alone": lambda x: (x.sum() + x.max()).reshape(1, 1, 1),
    "a number beside an array": lambda x: (x * x.sum()).reshape(1, -1),
    "an array": lambda x: (x * 2 + x).reshape(1, -1),
    "to a number": lambda x: (x[:1] * 2).reshape(()),
}


@pytest.mark.parametrize("length", [1, 12])
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_under_another_shape_have_it(name: str, length: int) -> None:
    value = numpy.arange(1.0, length + 1)
    with running_on(EmbeddedBackend(2, 8)), config.override(small_bytes=0, check=True):
        for x in (np.array(value), over(Recorder(value))):
            found = PROGRAMS[name](x)
            assert np.explain(found).stages
            numpy.testing.assert_allclose(found, PROGRAMS[name](value))
