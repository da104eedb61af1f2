"""Folds with axes and masks that may not fit: what NumPy looks at first, and gives where all fits."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np
from tests.api.answers import differences

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::spartan_ng.FallbackWarning")

_BOTH = ["sum", "prod", "min", "max", "mean", "var", "std"]
MASKED = ["all", "any", *_BOTH, *(f"nan{name}" for name in _BOTH)]
UNMASKED = ["count_nonzero", "ptp", "argmax", "median", "nanmedian"]
MASKS = {
    "all": lambda shape: numpy.ones(shape, bool),
    "one": lambda shape: numpy.ones(1, bool),
    "no truths": lambda shape: numpy.ones(shape),
    "other shape": lambda shape: numpy.ones(4, bool),
    "more axes": lambda shape: numpy.ones((2, *shape), bool),
}
SHAPES = [(), (3,), (2, 3), (0,), (0, 2)]
AXES = [None, 0, 1, 2, -1, -3, (0,), (0, 1), (0, 0)]
CASES = [
    *product(MASKED, [None, *MASKS], SHAPES, AXES, [False, True], ["f8", "i4", "?"]),
    *product(UNMASKED, [None], SHAPES, AXES, [False, True], ["f8", "i4", "?"]),
]


def _outcome(xp, case):
    name, mask, shape, axis, keepdims, dtype = case
    keywords = {} if mask is None else {"where": xp.array(MASKS[mask](shape))}
    if keywords and name.endswith(("min", "max")):
        keywords["initial"] = 0
    try:
        found = getattr(xp, name)(
            xp.array(numpy.ones(shape, dtype)), axis=axis, keepdims=keepdims, **keywords
        )
    except Exception as error:  # noqa: BLE001 - its type is what is asked
        return error
    value = numpy.asarray(found)
    return value.shape, value.dtype, repr(value.tolist())


@pytest.mark.slow
def test_folds_take_or_refuse_what_numpys_do(mode, some):
    for case in some(CASES, 4000):
        theirs, ours = (_outcome(xp, case) for xp in (numpy, np))
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (case, theirs, ours)
        else:
            assert ours == theirs, case


NO_AXES = [[0, 1], [0], {0}, range(2), numpy.array([0, 1]), numpy.array([0]), True, numpy.True_, "01", 1.0]
NO_AXES += [numpy.array(0), (numpy.int8(0), 1)]
"""Lists, and what else is iterated over, are axes of no fold; what counts as one integer is."""
OF_AXES = [
    *MASKED,
    "count_nonzero",
    "ptp",
    "median",
    "nanmedian",
    "average",
    "linalg.norm",
    "linalg.vector_norm",
]
OF_AXES += ["add.reduce", "logical_or.reduce", "maximum.reduce", "amax"]


@pytest.mark.parametrize("name", OF_AXES)
def test_axes_are_one_integer_or_a_tuple(mode, name):
    a = numpy.arange(24.0).reshape(2, 3, 4)

    def folded(axis):
        def fold(xp):
            function = xp
            for part in name.split("."):
                function = getattr(function, part)
            return function(xp.array(a) * 1, axis=axis)

        return fold

    assert not differences((f"{name}(axis={axis!r})", folded(axis)) for axis in NO_AXES)
    if hasattr(a, name):
        of_method = [
            (repr(axis), lambda xp, axis=axis: getattr(xp.array(a) * 1, name)(axis)) for axis in NO_AXES
        ]
        assert not differences(of_method)
