"""NumPy's semantics in one expression each: values, dtypes, shapes, warnings, and the exception's type.

Every case runs on NumPy and on ours, with NumPy at once and with everything lazy.
"""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy
import pytest

import spartan_ng as np

nan = numpy.nan
PEOPLE = [("Ann", 30), ("Bob", 25), ("Cid", 41)]
PERSON = [("name", "U10"), ("age", "i4")]


def after(change, then):
    """An expression that changes an array first: `change(a)`, then `then(a)`."""

    def call(a):
        change(a)
        return then(a)

    return call


def same(a):
    return a


def seen_through(a, view):
    """A view after a write to its base."""
    shown = view(a)
    a[0, 0] = 7
    return shown


FIELDS = {
    "field": lambda np: np.array(PEOPLE, PERSON)["age"] * 2,
    "fields": lambda np: np.array(PEOPLE, PERSON)[["age"]].tolist(),
    "write": lambda np: after(lambda a: a.__setitem__("age", 5), lambda a: a["age"])(np.zeros(2, PERSON)),
    "write through": lambda np: after(lambda a: a["age"].__setitem__(0, 5), lambda a: a["age"])(
        np.zeros(2, PERSON)
    ),
    "write strings": lambda np: after(
        lambda a: a.__setitem__("name", ["x", "y"]), lambda a: a["name"].tolist()
    )(np.zeros(2, PERSON)),
    "of an element": lambda np: np.array(PEOPLE, PERSON)[1]["age"],
    "of a selection": lambda np: after(same, lambda a: a[a["age"] > 26]["name"].tolist())(
        np.array(PEOPLE, PERSON)
    ),
    "sort": lambda np: np.sort(np.array(PEOPLE, PERSON), order="age")["age"],
    "argsort": lambda np: np.argsort(np.array(PEOPLE, PERSON), order="age"),
    "no such": lambda np: np.array(PEOPLE, PERSON)["weight"],
    "of numbers": lambda np: np.ones(3)["age"],
}
DATES = {
    "difference": lambda np: np.array(["2020-01-03"], "M8[D]") - np.datetime64("2020-01-01"),
    "sum": lambda np: np.array(["2020-01-03"], "M8[D]") + np.arange(3),
    "mean": lambda np: np.array([1, 3], "m8[s]").mean(),
    "max": lambda np: np.array(["2020-01-01", "2020-02-01"], "M8[D]").max(),
    "cumsum": lambda np: np.cumsum(np.array([1, 2], "m8[s]")),
    "compare": lambda np: np.array(["2020-01-01", "2020-02-01"], "M8[D]") > np.datetime64("2020-01-15"),
    "sort": lambda np: np.sort(np.array(["2020-03-01", "2020-02-01"], "M8[D]")),
    "isnat": lambda np: np.isnat(np.array(["NaT", "2020-02-01"], "M8[D]")),
    "arange": lambda np: np.arange("2020-01", "2020-04", dtype="M8[M]"),
    "arange of dates": lambda np: np.arange(numpy.datetime64("2020-01-01"), numpy.datetime64("2020-01-05")),
    "diff": lambda np: np.diff(np.array(["2020-03-01", "2020-02-01"], "M8[D]")),
    "unit": lambda np: np.array([1, 2], "m8[s]") / np.timedelta64(1, "s"),
}
STRINGS = {
    "add": lambda np: (np.array(["a", "bc"]) + np.array(["x", "y"])).tolist(),
    "equal": lambda np: np.array(["a", "bc"]) == "bc",
    "not equal": lambda np: np.array(["a", "bc"]) != "bc",
    "sort": lambda np: np.sort(np.array(["b", "a"])).tolist(),
    "unique": lambda np: np.unique(np.array(["b", "a", "b"])).tolist(),
    "concatenate": lambda np: np.concatenate([np.array(["b"]), np.array(["ccc"])]).tolist(),
    "element": lambda np: np.array(["b", "ccc"])[1].upper(),
    "join": lambda np: "-".join(np.array(["b", "ccc"])),
    "numbers are no strings": lambda np: np.arange(3) == "a",
    "numbers are not None": lambda np: np.arange(3) == None,  # noqa: E711
    "differ from None": lambda np: np.arange(3) != None,  # noqa: E711
}
OBJECTS = {
    "element": lambda np: np.array([1, "a", None], object)[1],
    "none": lambda np: np.array([1, "a", None], object)[2] is None,
    "sum": lambda np: np.array([1, 2], object) + 1,
    "fold": lambda np: int(np.sum(np.array([1, 2], object))),
    "iterate": lambda np: [str(x) for x in np.array([1, "a", None], object)],
}
NUMBERS = {
    "half": lambda np: np.sum(np.ones(3000, "f2")),
    "half mean": lambda np: np.mean(np.arange(3000).astype("f2")),
    "bool sum": lambda np: np.array([True, False]).sum(),
    "bool minus": lambda np: np.array([True]) - np.array([True]),
    "bool negative": lambda np: -np.array([True]),
    "complex sort": lambda np: np.sort(np.array([1j, 1, 0])),
    "complex max": lambda np: np.max(np.array([1j, 1, 0])),
    "complex initial": lambda np: np.sum(np.arange(3.0) * 1j, initial=2 + 1j),
    "complex initial of reals": lambda np: np.sum(np.arange(3.0), initial=2 + 1j),
    "negative power": lambda np: np.arange(1, 3) ** -1,
    "mixed integers": lambda np: np.ones(1, "u8") + np.ones(1, "i8"),
    "too large": lambda np: np.ones(1, "u1") + 300,
    "round": lambda np: round(np.full(3, 2.56).sum(), 1),
    "round whole": lambda np: round(np.full(3, 2.56).sum()),
    "round arrays": lambda np: round(np.ones(3)),
    "format": lambda np: f"{np.arange(4.0).sum():.2f} {np.arange(3)}",
    "zero division": lambda np: np.array([1.0, 0]) / np.array([0.0, 0]),
    "overflow": lambda np: np.exp(np.array([1000.0])),
    "chain": lambda np: np.arange(5)[(np.arange(5) > 1) & (np.arange(5) < 4)],
    "scalar axis": lambda np: np.array(3.0).sum(axis=0),
    "scalar argmax": lambda np: np.argmax(np.array(3.0), axis=-1),
}
WRITES = {
    "diagonal": lambda np: np.diagonal(np.ones((2, 2))).__setitem__(0, 1),
    "diagonal in place": lambda np: np.diagonal(np.ones((2, 2))).__iadd__(1),
    "diagonal view": lambda np: seen_through(np.ones((2, 2)), np.diagonal),
    "diagonals": lambda np: np.diagonal(np.arange(24).reshape(2, 3, 4), 1, 2, 0),
    "diagonal far": lambda np: np.diagonal(np.ones((2, 3)), 5),
    "broadcast": lambda np: np.broadcast_to(np.ones(3), (2, 3)).__setitem__(0, 1),
    "overlap": lambda np: after(lambda a: a[1:].__iadd__(a[:-1]), same)(np.arange(6)),
    "reversal": lambda np: after(lambda a: a.__setitem__(slice(None), a[::-1]), same)(np.arange(6)),
    "copyto": lambda np: after(lambda a: np.copyto(a, [1, 2, 3], where=[True, False, True]), same)(
        np.zeros(3)
    ),
    "copyto casting": lambda np: np.copyto(np.zeros(3, int), np.ones(3)),
    "in place casting": lambda np: np.ones(3, int).__iadd__(1.5),
    "out where": lambda np: np.sum(np.ones((2, 3)), axis=0, where=[True, False, True], out=np.zeros(3)),
    "out of a nan fold": lambda np: np.nanmax(np.ones((2, 3)), 0, np.zeros(3)),
    "shape": lambda np: np.ones(3).__setitem__(slice(0, 2), np.ones(3)),
}
LAYOUT = {
    "array": lambda np: np.array([[1, 2], [3, 4]], order="F").strides,
    "copy": lambda np: np.ones((2, 3)).copy(order="F").strides,
    "keep": lambda np: np.ones((2, 3), order="F").copy(order="K").strides,
    "asfortranarray": lambda np: np.asfortranarray(np.ones((2, 3))).flags.f_contiguous,
    "ascontiguousarray": lambda np: np.ascontiguousarray(np.ones((2, 3)).T).flags.c_contiguous,
    "astype": lambda np: np.ones((2, 3)).astype("f4", order="F").strides,
    "zeros": lambda np: np.zeros((2, 3), order="F").strides,
    "full": lambda np: np.full((2, 3), 1.0, order="F").T.flags.c_contiguous,
    "ravel": lambda np: np.array([[1, 2], [3, 4]], order="F").ravel("K"),
    "ravel any": lambda np: np.array([[1, 2], [3, 4]], order="F").ravel("A"),
    "reshape any": lambda np: np.arange(6).reshape(2, 3).T.reshape(2, 3, order="A"),
    "flatten": lambda np: np.arange(6).reshape(2, 3).T.flatten("K"),
    "values": lambda np: np.array([[1, 2], [3, 4]], order="F").T * 2,
}
COPIES = {
    "pickle": lambda np: pickle.loads(pickle.dumps(np.arange(3) * 2)),
    "deepcopy": lambda np: copy.deepcopy(np.arange(3) * 2),
    "iterate": lambda np: [float(x) for x in np.arange(3.0) * 2],
    "rows": lambda np: [r.tolist() for r in np.arange(4).reshape(2, 2)],
    "repr": lambda np: repr(np.arange(3) * 2.5),
    "repr empty": lambda np: repr(np.zeros((0, 3))),
    "str": lambda np: str(np.arange(3000)),
    "contains": lambda np: 3 in np.arange(5),
}
REFUSALS = {
    "axis": lambda np: np.sum(np.ones(3), axis=2),
    "reshape": lambda np: np.ones(3).reshape(2, 2),
    "concatenate": lambda np: np.concatenate([np.ones((2, 3)), np.ones((3, 2))]),
    "matmul": lambda np: np.ones((2, 3)) @ np.ones((2, 3)),
    "index": lambda np: np.ones(3)[5],
    "index type": lambda np: np.ones(3)[1.5],
    "indices": lambda np: np.ones(3)[1, 1],
    "mask": lambda np: np.ones(3)[np.ones(4, bool)],
    "broadcast": lambda np: np.ones(3) + np.ones(4),
    "dtype": lambda np: np.ones(3, dtype="zz"),
    "float": lambda np: float(np.ones(3)),
    "bool": lambda np: bool(np.arange(3)),
    "hash": lambda np: hash(np.ones(2)),
    "len": lambda np: len(np.array(3)),
    "empty max": lambda np: np.max(np.array([])),
    "masked max": lambda np: np.arange(5)[np.arange(5) > 10].min(),
    "interp": lambda np: np.interp([1], [1, 2], [1]),
    "keyword": lambda np: np.sum(np.ones(3), foo=1),
    "operands": lambda np: np.add(np.ones(3)),
    "safe": lambda np: np.ones(3).astype(int, casting="safe"),
}
CASES = {
    f"{chapter}: {name}": call
    for chapter, cases in {
        "fields": FIELDS,
        "dates": DATES,
        "strings": STRINGS,
        "objects": OBJECTS,
        "numbers": NUMBERS,
        "writes": WRITES,
        "layout": LAYOUT,
        "copies": COPIES,
        "refusals": REFUSALS,
    }.items()
    for name, call in cases.items()
}


def outcome(call, library):
    """The value of a case, or the exception."""
    try:
        result = call(library)
        return np.compute(result)[0]
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_case(mode, case):
    wanted, got = (outcome(CASES[case], library) for library in (numpy, np))
    if isinstance(wanted, Exception):
        kinds = [k for k in (ValueError, TypeError, IndexError, OverflowError) if isinstance(wanted, k)]
        assert kinds
        assert isinstance(got, tuple(kinds)), got
        return
    assert not isinstance(got, Exception), got
    assert numpy.shape(got) == numpy.shape(wanted)
    if isinstance(wanted, numpy.ndarray | numpy.generic):
        assert numpy.asarray(got).dtype == wanted.dtype
        numpy.testing.assert_array_equal(got, wanted)
    else:
        assert got == wanted


@pytest.mark.parametrize(
    "call",
    [
        lambda np: np.nanmean(np.array([nan, nan])),
        lambda np: np.nanmin(np.array([nan, nan])),
        lambda np: np.nanmax(np.array([[nan, nan], [1, 2]]), axis=1),
        lambda np: np.nanstd(np.array([[nan, nan], [1, 2]]), axis=1),
        lambda np: np.mean(np.array([])),
        lambda np: np.array([1.0]) / np.array([0.0]),
        lambda np: np.sqrt(np.array([-1.0])),
        lambda np: np.array([100], "i1") + np.array([100], "i1"),
    ],
)
def test_small_arrays_warn_as_numpys(call):
    """What NumPy computes at once warns at once; `errstate` and filters hold."""
    found = []
    for library in (numpy, np):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(library)
        found.append([(w.category, str(w.message)) for w in caught])
    assert found[0] == found[1]


def test_lazy_arrays_keep_errstate(mode):
    with np.errstate(all="ignore"):
        a = np.array([1.0]) / np.array([0.0])
        assert a.tolist() == [numpy.inf]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        (np.array([1.0]) / np.array([0.0])).compute()


def address(a):
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize("enter", [np.asarray, np.array])
@pytest.mark.parametrize("foreign", ["plain", "strided", "transposed", "mapped", "buffer"])
def test_memory_that_is_shared_is_never_copied_to_be_read(enter, foreign, tmp_path):
    theirs = {
        "plain": lambda: numpy.arange(12.0).reshape(3, 4),
        "strided": lambda: numpy.arange(24.0).reshape(3, 8)[:, ::2],
        "transposed": lambda: numpy.arange(12.0).reshape(4, 3).T,
        "mapped": lambda: numpy.memmap(tmp_path / "mapped", float, "w+", shape=(3, 4)),
        "buffer": lambda: numpy.arange(12.0).reshape(3, 4).data,
    }[foreign]()
    elements = numpy.asarray(theirs)
    with np.config.override(small_bytes=0):
        ours = enter(theirs, copy=False)
        assert address(ours._peek()) == address(elements)
        total = (ours * 2).sum()
        assert address(ours._node().data.value) == address(elements)
        assert float(total) == 2 * elements.sum()
    assert elements.flags.writeable


def test_shared_memory_shows_its_owners_writes_and_none_of_ours_goes_there():
    theirs = numpy.zeros(3)
    ours = np.asarray(theirs, copy=False)
    theirs[1] = 7
    assert ours[1] == 7
    ours[0] = 5
    assert theirs[0] == 0
    assert ours.tolist() == [5, 7, 0]


@pytest.mark.parametrize("enter", [np.asarray, np.array])
@pytest.mark.parametrize(
    ("given", "keywords"),
    [
        ([1, 2], {}),
        (3.0, {}),
        (numpy.float64(3), {}),
        (numpy.arange(3), {"dtype": float}),
        (numpy.ones((2, 3)).T, {"order": "C"}),
    ],
)
def test_what_needs_a_copy_cannot_be_shared(enter, given, keywords):
    for xp in (numpy, np):
        with pytest.raises(ValueError, match="copy"):
            getattr(xp, enter.__name__)(given, copy=False, **keywords)


@pytest.mark.parametrize("enter", [np.asarray, np.array])
def test_our_own_arrays_are_shared_or_not_as_others(enter):
    a = np.ones((2, 3))
    assert enter(a, copy=False) is a
    assert enter(a, float, copy=False) is a
    for keywords in ({"dtype": int}, {"order": "F"}):
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            enter(a, copy=False, **keywords)
    assert np.array(a, copy=False, ndmin=3).shape == (1, 2, 3)
