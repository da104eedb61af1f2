"""Arrays of NumPy's that calls are given: read where they lie, and never again once a call is over."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import cell
from spartan_ng.config import config
from spartan_ng.costs.choices import LOAN_READS
from spartan_ng.scratch import own_copy
from tests.budgets import functions
from tests.sampling import Some

_ROWS, _COLUMNS = 52, 10
_DRAWN = 150


@pytest.fixture(autouse=True)
def _nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "small_bytes", 64)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each copy that was made because an array is somebody else's."""
    made: list[int] = []

    def counted(copy: Any) -> Any:
        def call(value: Any) -> Any:
            made.append(value.nbytes)
            return copy(value)

        return call

    monkeypatch.setattr("spartan_ng.api.core.loans.own_copy", counted(own_copy))
    monkeypatch.setattr("spartan_ng.api.core.cell._on_its_own", counted(cell._on_its_own))
    monkeypatch.setattr("spartan_ng.api.core.cell._memory_copied", counted(cell._memory_copied))
    return made


def _arrays() -> tuple[Any, Any]:
    x = numpy.random.default_rng(3).random((_ROWS, _COLUMNS))
    return x, x.reshape(-1).copy()


def _parts(found: Any) -> Iterator[Any]:
    if isinstance(found, tuple | list):
        for part in found:
            yield from _parts(part)
    else:
        yield numpy.array(found)


def _is_view_of(found: Any, *arrays: Any) -> bool:
    return any(
        isinstance(part, numpy.ndarray) and numpy.may_share_memory(part, a)
        for part in (found if isinstance(found, tuple | list) else [found])
        for a in arrays
    )


def check(name: str, given: Callable[[Any], Any] = lambda x: x) -> None:
    """One program of two arrays of NumPy's, which are written to before anybody looks at what it gave; ours
    is given what `given` makes of them."""
    program = functions.program(name)
    x, line = _arrays()
    numpys = program(numpy, x, line)
    if _is_view_of(numpys, x, line):
        return
    expected = [*_parts(numpys)]
    x, line = _arrays()
    found = program(np, given(x), given(line))
    assert numpy.array_equal(x, _arrays()[0]), f"{name} has written to its operand"
    x[...], line[...] = -3.0, -4.0
    for theirs, ours in zip(expected, _parts(found), strict=True):
        if functions.is_open(name):
            assert theirs.shape == ours.shape, name
        else:
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("given", [lambda x: x, np.asarray], ids=["numpys", "ours over numpys"])
def test_what_a_call_gave_does_not_change_with_what_it_was_given(given: Any, some: Some) -> None:
    names = [n for n in functions.programs() if not n.startswith("array.") and n not in functions.UNTRUE]
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in some(names, _DRAWN):
            check(name, given)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.sum(x),
        lambda x, y: np.exp(x),
        lambda x, y: np.add(x, y),
        lambda x, y: np.var(x, axis=0),
        lambda x, y: np.dot(x.T, y),
        lambda x, y: np.where(x > 0.5, x, y),
        lambda x, y: np.concatenate([x, y]),
        lambda x, y: np.sort(x, axis=0),
        lambda x, y: np.asarray(x.copy()).compute() + y,
        lambda x, y: y @ np.ones(_COLUMNS),
        lambda x, y: np.cumsum(a=x),
    ],
)
def test_a_call_copies_nothing_that_it_reads_at_once(call: Any, copies: list[int]) -> None:
    x, _ = _arrays()
    call(x, 2 * x)
    gc.collect()
    assert not copies


OVER_NUMPYS = {
    "a product": "x * y",
    "a number's": "2 * x - 1",
    "a function": "np.exp(x)",
    "a sum of products": "float(np.sum(x * y))",
    "moments": "x.mean(), np.var(x), x.std(axis=0)",
    "a comparison": "x > 0.5",
    "a turned one": "x.T * 2 + 1",
    "matrix products": "x.T @ (x @ v)",
    "by its method": "x.dot(v)",
    "an einsum": "np.einsum('ij,j->i', x, v)",
    "rows": "x[2:40] + 1",
    "elements that pass": "x[x > 0.5].sum()",
    "other elements": "x[[1, 2, 5]]",
    "another shape": "x.reshape(-1) * 2",
    "another dtype": "x.astype('f4')",
    "a choice": "np.where(x > 0.5, x, y)",
    "one after the other": "np.concatenate([x, y])",
    "sorted": "np.sort(x, axis=0)",
    "added up": "np.cumsum(x)",
    "the place of the largest": "x.argmax()",
    "a norm": "np.linalg.norm(x)",
}


@pytest.mark.parametrize("name", OVER_NUMPYS)
def test_arrays_over_numpys_are_read_where_they_lie(name: str, copies: list[int]) -> None:
    """And what was made of them stays when their owner writes to them."""
    x, v = _arrays()[0], numpy.arange(float(_COLUMNS))
    y = 2 * x
    expected = [*_parts(eval(OVER_NUMPYS[name], {"np": numpy, "x": x, "y": y, "v": v}))]
    found = eval(OVER_NUMPYS[name], {"np": np, "x": np.asarray(x), "y": np.asarray(y), "v": np.array(v)})
    gc.collect()
    assert all(nbytes <= config.small_bytes for nbytes in copies)
    x[...], y[...] = -3.0, -4.0
    for theirs, ours in zip(expected, _parts(found), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_an_array_over_numpys_is_copied_once_that_takes_no_longer(copies: list[int]) -> None:
    x, _ = _arrays()
    ours = np.asarray(x)
    for k in range(3 * LOAN_READS):
        assert float(ours.sum()) == pytest.approx(float(x.sum()))
        assert copies == ([] if k < LOAN_READS else [x.nbytes])
    copies.clear()
    ours = np.asarray(x)
    made = [ours * k for k in range(LOAN_READS)]
    assert copies == [x.nbytes]
    assert made[0]._peek() is not None
    assert made[-1]._peek() is None


def test_an_array_that_nobody_else_has_is_taken_as_it_is(copies: list[int]) -> None:
    ours = np.asarray(_arrays()[0].copy())
    later = ours * 2 + 1
    assert later._peek() is None
    assert not copies


def test_what_grows_of_an_array_over_numpys_is_copied_once(copies: list[int]) -> None:
    _, line = _arrays()
    ours, expected = np.asarray(line), numpy.multiply.outer(line, line)
    found = [np.multiply.outer(ours, ours) for _ in range(2)]
    assert copies == [line.nbytes]
    line[...] = 0
    assert all(numpy.array_equal(f, expected) for f in found)


BY_KEYS = {
    "a mask": "a[m]",
    "a mask's sum": "a[m].sum()",
    "a comparison": "a[a > 0.5]",
    "rows by a mask": "a[r].mean(0)",
    "rows by places": "a[i]",
    "elements by places": "a[i, i % 10]",
    "of a view": "a[2:, 1:][i % 50, 3]",
    "of a turned view": "a.T[[1, 2]]",
    "a list": "a[[1, 5, 7]]",
    "compressed": "np.compress(r, a, 0)",
    "extracted": "np.extract(m, a)",
    "set by a mask": "a.__setitem__(m, 0)",
    "set by places": "a.__setitem__(i, 1.0)",
    "rows doubled": "a.__setitem__(r, a[r] * 2)",
    "added to": "a.__setitem__(i, a[i] + 1)",
}


@pytest.mark.parametrize("keys", ["numpys", "ours"])
@pytest.mark.parametrize("name", BY_KEYS)
def test_keys_of_what_others_have_copy_none_of_it(name: str, keys: str, copies: list[int]) -> None:
    a, rng = _arrays()[0], numpy.random.default_rng(4)
    given = {"m": a > 0.3, "r": a[:, 0] > 0.3, "i": rng.integers(0, _ROWS, 40)}
    theirs = {"np": numpy, "a": a.copy(), **given}
    expected = eval(BY_KEYS[name], theirs)
    ours = {"np": np, "a": np.array(a), **{k: np.array(v) if keys == "ours" else v for k, v in given.items()}}
    lent = numpy.asarray(ours["a"])
    copies.clear()
    found = eval(BY_KEYS[name], ours)
    assert all(nbytes <= config.small_bytes for nbytes in copies)
    numpy.testing.assert_array_equal(lent, theirs["a"])  # what was written they have
    lent[...] = -3.0
    if expected is not None:
        numpy.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_grows_stays_lazy_and_has_its_copy(copies: list[int]) -> None:
    _, line = _arrays()
    found = np.multiply.outer(line, line)
    expected = numpy.multiply.outer(line, line)
    assert copies
    line[...] = 0
    assert numpy.array_equal(found, expected)


def test_what_a_filter_leaves_has_its_copy() -> None:
    _, line = _arrays()
    found, expected = np.extract(line > 0.5, line), numpy.extract(line > 0.5, line)
    line[...] = 0
    assert numpy.array_equal(found, expected)


def test_an_array_that_shows_memory_of_numpys_shows_it_after_a_call(copies: list[int]) -> None:
    x, _ = _arrays()
    ours = np.asarray(x)
    assert float(np.add(ours, x)[0, 0]) == 2 * x[0, 0]
    x[0, 0] = 7.0
    assert float(np.add(ours, x)[0, 0]) == 14.0


def test_a_function_of_the_programs_may_write_to_what_it_is_given() -> None:
    x, _ = _arrays()
    made: list[Any] = []

    def row(line: Any) -> float:
        made.append(np.add(x, 1.0))
        x[0, 0] = -9.0
        return 0.0

    first = x[0, 0] + 1.0
    np.apply_along_axis(row, 1, x)
    assert float(made[0][0, 0]) == first


def test_an_error_leaves_nothing_on_loan() -> None:
    x, _ = _arrays()
    with pytest.raises(ValueError, match="broadcast"):
        np.add(x, x[:, :3])
    later = np.exp(np.asarray(x))
    expected = numpy.exp(x)
    x[...] = 0
    assert numpy.allclose(later, expected)


def test_an_output_that_overlaps_what_is_read() -> None:
    _, line = _arrays()
    expected = line.copy()
    numpy.add(expected, expected[::-1], out=expected)
    np.add(line, line[::-1], out=line)
    assert numpy.array_equal(line, expected)
