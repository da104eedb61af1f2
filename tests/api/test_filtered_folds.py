"""Folds of what a mask leaves, which are folds with `where`: of nothing, and beside axes without elements."""

from __future__ import annotations

import itertools

import numpy
import pytest

import spartan_ng as sp

SHAPES = [(1, 0), (0, 3), (2, 3), (0,), (2, 0, 3), (3, 2)]
FOLDS = [
    *[
        "max",
        "min",
        "sum",
        "prod",
        "any",
        "all",
        "nanmax",
        "mean",
        "argmax",
        "ptp",
        "std",
        "nansum",
        "median",
        "count_nonzero",
    ]
]
AXES = [None, 0, -1, (0, -1), ()]
OPTIONS = [{}, {"keepdims": True}, {"initial": 2}]
CASES = list(itertools.product(SHAPES, [True, False], FOLDS, AXES, OPTIONS))


def _answer(np, shape, kept, fold, axis, options):
    """Values, shape and dtype, or the error."""
    a, mask = np.ones(shape) * 1, np.full(shape[0], kept) == 1
    try:
        found = numpy.asarray(getattr(np, fold)(a[mask], axis=axis, **options))
    except (TypeError, ValueError, IndexError) as error:
        return next(e.__name__ for e in (ValueError, TypeError, IndexError) if isinstance(error, e))
    return found.shape, found.dtype, str(found.tolist())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_is_left_folds_as_numpy_folds_it(some):
    wrong = []
    with sp.config.override(small_bytes=0):
        for drawn in some(CASES, 400):
            answers = [_answer(np, *drawn) for np in (numpy, sp)]
            if answers[0] != answers[1]:
                wrong.append(f"{drawn}: {answers[1]}, NumPy's {answers[0]}")
    assert not wrong, "\n".join(wrong)
