"""Warnings of floating-point errors name the line that called, as NumPy's do, whatever stands between."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.asked import _QUIET

NAMES = sorted(name for name in ufuncs.__all__ if isinstance(getattr(ufuncs, name), ufuncs.ufunc))
ODD = numpy.array([0.0, -1.0, 1e308, -1e308, numpy.inf, -numpy.inf, numpy.nan, 1e-308, 0.5, 2.0])
WAYS = {
    "function": lambda f, given, out: f(*given),
    "method of a view": lambda f, given, out: f(*(x[::-1] for x in given)),
    "out": lambda f, given, out: f(*given, out=out),
    "where": lambda f, given, out: f(*given, out=out, where=True),
}
OPERATORS = ["x + x", "x * x", "x / (x * 0)", "x // y", "x % y", "x ** 3", "x ** 0.5", "x - x[::-1]", "1 / x"]
OPERATORS += ["x.__iadd__(x)", "x.__imul__(x)", "x.__itruediv__(y)", "x.__ipow__(5)", "divmod(x, y)"]
OPERATORS += [
    "x / np.imag(x)",
    "x // np.imag(y)",
    "np.imag(x) % np.imag(y)",
    "x / np.broadcast_to(0 * x[:1], x.shape)",
]
OPERATORS += [
    "np.add.reduce(x)",
    "np.multiply.reduce(x)",
    "x.mean()",
    "x @ y",
]
OPERATORS += ["np.multiply.accumulate(x)", "np.add.reduceat(x, [0, 3, 1])", "np.multiply.outer(x[:9], y[:9])"]
OPERATORS += [f"x.astype({kind!r})" for kind in ("f4", "i4", "i8", "f2", "u1", "?", "c8")]
OPERATORS += ["np.astype(x, 'f4')", "x.astype('f4', copy=True, order='C')"]


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    with np.config.override(small_bytes=1 << 25):
        yield


def told(call: Any) -> list[tuple[str, bool]]:
    """What is said, and whether of a line of this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return sorted((re.sub("0x[0-9a-f]+", "0x", str(w.message)), w.filename == __file__) for w in found)


def odd(n: int) -> tuple[Any, Any]:
    x = numpy.resize(ODD, n)
    return x, numpy.roll(x, 3)


@pytest.mark.some(120)
@pytest.mark.parametrize("n", [10, 5_000, 100_000])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_functions_tell_of_the_callers_line(name: str, way: str, n: int) -> None:
    theirs, ours = getattr(numpy, name), getattr(np, name)
    given = odd(n)[: theirs.nin]
    try:
        with numpy.errstate(all="ignore"):
            like = theirs(*given)
    except TypeError:
        pytest.skip("of no doubles")
    outs = tuple(map(numpy.zeros_like, like)) if theirs.nout > 1 else (numpy.zeros_like(like),)
    wanted = told(lambda: WAYS[way](theirs, given, outs))
    operands, places = [np.array(x) for x in given], tuple(np.array(o) for o in outs)
    assert told(lambda: WAYS[way](ours, operands, places)) == wanted


@pytest.mark.parametrize("n", [10, 5_000, 100_000])
@pytest.mark.parametrize("text", OPERATORS)
def test_operators_tell_of_the_callers_line(text: str, n: int) -> None:
    x, y = odd(n)
    code = compile(text, __file__, "eval")
    wanted = told(lambda: eval(code, {"np": numpy, "x": x.copy(), "y": y}))
    assert told(lambda: eval(code, {"np": np, "x": np.array(x), "y": np.array(y)})) == wanted


FILES = [
    "np.loadtxt(io.StringIO(''))",
    "np.loadtxt(io.StringIO('# nothing'), ndmin=2)",
    "np.loadtxt(io.StringIO('1\\n\\n2\\n3'), max_rows=2)",
    "np.loadtxt(io.StringIO('1 2'), converters=lambda x: warnings.warn('mine') or 1.0)",
    "np.genfromtxt(io.StringIO(''))",
    "np.genfromtxt(io.StringIO('1 2\\n3'), invalid_raise=False)",
    "np.genfromtxt(io.StringIO('1,2'), names='a,b', dtype=None, delimiter=',', skip_header=1)",
    "np.fromregex(io.StringIO('a 1'), r'(b) (.)', 'U1,i4')",
    "np.fromstring('1 2 x', sep=' ')",
    "np.fromstring(b'12345678')",
    "np.fromfile(path, sep=' ')",
    "np.fromfile(path, count=100)",
    "np.load(old)",
    "np.save(io.BytesIO(), np.zeros(3, numpy.dtype('f8', metadata={'a': 1})))",
    "np.savez(io.BytesIO(), np.zeros(3, numpy.dtype('f8', metadata={'a': 1})))",
    "np.savetxt(io.StringIO(), np.ones(3) * 1j, fmt='%.1f')",
]


@pytest.mark.parametrize("text", FILES)
def test_functions_of_files_tell_of_the_callers_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1 2 x")
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }"  # as Python 2 wrote it
    header += " " * (117 - len(header)) + "\n"
    old = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(8)
    (tmp_path / "old.npy").write_bytes(old)
    names = {"io": io, "warnings": warnings, "numpy": numpy, "path": str(tmp_path / "t.txt")}
    names["old"] = str(tmp_path / "old.npy")
    code = compile(text, __file__, "eval")

    def tried(xp: Any) -> Any:
        try:
            return eval(code, names | {"np": xp})
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            return type(error)

    assert told(lambda: tried(np)) == told(lambda: tried(numpy))


class _Watching(io.BytesIO):
    """A file that notes what becomes of warnings while it is read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.found: list[Any] = []

    def read(self, *args: Any) -> bytes:
        self.note()
        return super().read(*args)

    def __iter__(self) -> Iterator[bytes]:
        for line in self.getvalue().splitlines(keepends=True):
            self.note()
            yield line

    def note(self) -> None:
        self.found.append((list(warnings.filters), warnings.showwarning))


@pytest.mark.parametrize("name", ["load", "loadtxt", "genfromtxt"])
def test_filters_of_warnings_are_the_users_while_files_are_read(name: str) -> None:
    """They are the process's: threads that changed them at a time would leave them as one of them had it."""
    packed = io.BytesIO()
    numpy.savez(packed, x=numpy.arange(3))
    file = _Watching(packed.getvalue() if name == "load" else b"1 2\n3 4\n")
    wanted = list(warnings.filters), warnings.showwarning
    getattr(np, name)(file if name == "load" else iter(file))
    assert file.found
    assert all(found == wanted for found in file.found)


def test_what_users_ask_for_stays_as_they_ask() -> None:
    x, asked = np.array([1.0, 0.0]), []
    with numpy.errstate(divide="ignore"):
        assert told(lambda: 1 / x) == []
    with numpy.errstate(divide="call", call=lambda kind, flag: asked.append(kind)):
        assert told(lambda: np.log(x)) == []
    assert asked
    with numpy.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(1, x, where=[True, True], out=np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="overflow encountered in cast"):
            np.array([1e300]).astype("f4")
    assert numpy.geterr() == {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def test_elements_that_are_objects_see_their_users_state() -> None:
    seen = []

    class One:
        def __add__(self, other: Any) -> int:
            seen.append(numpy.geterr()["over"])
            return 1

        def __float__(self) -> float:
            seen.append(numpy.geterr()["over"])
            return 1.0

    x = np.array([One(), One()], dtype=object)
    x + 1
    np.add(x, 1)
    x.astype(float)
    assert seen == ["warn"] * 6


@pytest.mark.some(20)
@pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat"])
@pytest.mark.parametrize("kind", ["b", "B", "h", "i", "l", "Q", "?"])
@pytest.mark.parametrize("name", sorted(_QUIET))
def test_what_is_not_told_a_line_never_warns(name: str, kind: str, method: str) -> None:
    function = getattr(numpy, name)
    ends = [0, 1] if kind == "?" else [numpy.iinfo(kind).max, numpy.iinfo(kind).min, 0, 1, 3]
    x = numpy.tile(numpy.array(ends, kind), 30)
    try:
        with numpy.errstate(all="raise"):
            getattr(function, method)(x, *([0, 7, 2],) * (method == "reduceat"))
    except TypeError:  # `subtract` of truth values
        pass


POWERS = ["x ** 2", "x ** 3", "x ** -1", "x ** 0.5", "x ** 2.5", "x ** -400.0", "x ** 1000", "x.__ipow__(2)"]
KINDS = ["b", "l", "Q", "f", "d", "F", "D"]


@pytest.mark.some(60)
@pytest.mark.parametrize("n", [10, 5_000, 100_000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", POWERS)
def test_powers_of_all_numbers_tell_of_the_callers_line(text: str, kind: str, n: int) -> None:
    with numpy.errstate(all="ignore"):
        x = odd(n)[0].astype(kind)
        x = x + 1j * x if kind in "FD" else x
    code = compile(text, __file__, "eval")
    try:
        wanted = told(lambda: eval(code, {"x": x.copy()}))
    except (TypeError, ValueError, OverflowError) as error:
        with pytest.raises(type(error)):
            eval(code, {"x": np.array(x)})
    else:
        assert told(lambda: eval(code, {"x": np.array(x)})) == wanted


DEFERRED = [
    *OPERATORS,
    *POWERS,
    "(x + x) * y / (x - y)",
    "np.exp(x).sum()",
    "np.log(x)[::2]",
    "(x[x > 0] ** 9).sum()",
    "np.nanmean(x)",
    "np.nanmax(x.reshape(-1, 2) * np.nan, axis=1)",
    "np.nanquantile(x * np.nan, .5)",
    "np.mean(x, where=x == 77)",
]


@pytest.mark.some(20)
@pytest.mark.parametrize("text", DEFERRED)
def test_what_is_computed_later_tells_of_the_line_that_asked_for_it(text: str) -> None:
    x, y = odd(30_000)
    code = compile(text, __file__, "eval")
    wanted = told(lambda: eval(code, {"np": numpy, "x": x.copy(), "y": y}))
    with np.config.override(small_bytes=0):
        ours = {"np": np, "x": np.array(x), "y": np.array(y)}
        found = told(lambda: numpy.array(eval(code, ours)))
    assert all(is_users for _, is_users in found)
    assert bool(found) <= bool(wanted)


def test_what_is_computed_later_is_warned_of_once_and_as_users_ask() -> None:
    with np.config.override(small_bytes=0):
        x = np.array(odd(300_000)[0])
        assert told(lambda: numpy.array(x * 1e308)) == [("overflow encountered in multiply", True)]
        with numpy.errstate(over="ignore"):
            assert told(lambda: numpy.array(x * 1e308)) == []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="overflow encountered in multiply"):
                numpy.array(x * 1e308)
        seen = set()

        def look(block: Any) -> Any:
            seen.add(numpy.geterr()["over"])
            return block

        np.compute(np.map(look, x))
    assert seen == {"warn"}
    assert numpy.geterrcall() is None


WITHOUT_NAN = [
    "nanmean(x)",
    "nanstd(x)",
    "nanvar(x)",
    "nanmean(x, axis=0)",
    "nanstd(x, axis=1)",
    "nanmax(x * np.nan)",
]


@pytest.mark.parametrize("tier", ["auto", "interpret"])
@pytest.mark.parametrize("one", [numpy.inf, 1.0])
@pytest.mark.parametrize("text", WITHOUT_NAN)
def test_infinities_are_told_of_whatever_runs_the_loops(text: str, one: float, tier: str) -> None:
    """Compiled loops tell nobody: what comes of them does."""
    x = numpy.resize(numpy.array([1.0, numpy.nan, numpy.inf, one * -1]), (300, 1001))
    code = compile(f"np.{text}", __file__, "eval")
    wanted = {said for said, _ in told(lambda: eval(code, {"np": numpy, "x": x}))}
    with np.config.override(small_bytes=0, kernels=tier):
        ours = {"np": np, "x": np.array(x)}
        found = told(lambda: numpy.array(eval(code, ours)))
    assert {said for said, _ in found} == wanted
    assert len(found) == len(wanted)
    assert all(is_users for _, is_users in found)
