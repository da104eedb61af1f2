"""Every public name of NumPy's is here, and the page that says how is current."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.coverage import coverage_page, rows

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def test_no_name_is_missing():
    assert [(r.namespace, r.name) for r in rows() if r.kind == "missing"] == []


def test_page_is_current():
    text = PAGE.read_text()
    if f"NumPy {numpy.__version__};" not in text:
        pytest.skip("the page was made for another NumPy")
    assert text == coverage_page()


def test_coverage_prints_the_page(capsys):
    np.coverage()
    assert capsys.readouterr().out == coverage_page() + "\n"


def test_kinds():
    kinds = {(r.namespace, r.name): r.kind for r in rows()}
    assert kinds["numpy", "add"] == "distributed"
    assert kinds["numpy", "busday_count"] == "distributed"
    assert kinds["numpy", "load"] == "driver"
    assert kinds["numpy", "float64"] == kinds["numpy", "ma"] == "NumPy's"


def test_borrowed_modules_take_our_arrays():
    a = np.arange(4.0)
    np.testing.assert_allclose(a * 2, [0, 2, 4, 6])
    assert np.ma.masked_less(a, 2).sum() == 5
    assert np.poly1d(a)(2) == numpy.poly1d([1, 2, 3])(2)
    with pytest.raises(AttributeError, match="no_such"):
        np.no_such  # noqa: B018


DISTRIBUTIONS = [
    ("chisquare", (3,)),
    ("dirichlet", ((1.0, 2.0),)),
    ("f", (2, 3)),
    ("laplace", ()),
    ("lognormal", ()),
    ("multinomial", (5, [0.5, 0.5])),
    ("triangular", (0, 1, 3)),
    ("zipf", (2.0,)),
]


def drawn(m, name, parameters):
    m.random.seed(5)  # of both: they have one state
    return getattr(m.random, name)(*parameters, size=4)


@pytest.mark.parametrize(("name", "parameters"), DISTRIBUTIONS)
def test_legacy_distributions(name, parameters):
    got, wanted = (drawn(m, name, parameters) for m in (np, numpy))
    assert got.dtype == wanted.dtype
    numpy.testing.assert_array_equal(got, wanted)


def test_attributes():
    a, b = np.arange(4), numpy.arange(4)
    assert bytes(a.data) == bytes(b.data)
    assert a.dumps() == b.dumps()
    numpy.testing.assert_array_equal(a.getfield("i4"), b.getfield("i4"))
    a.setfield([9, 8, 7, 6], "i4")
    b.setfield([9, 8, 7, 6], "i4")
    numpy.testing.assert_array_equal(a, b)


def test_setflags(mode):
    a = np.arange(4)
    a.setflags(write=False)
    assert not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    a.setflags(write=True)
    a[0] = 5
    assert a.tolist() == [5, 1, 2, 3]
