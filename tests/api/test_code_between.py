"""What runs between an operator and the one that takes its result finds, and tells, what it does in NumPy."""

from __future__ import annotations

import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import ahead, quick
from spartan_ng.error_state import may_raise

LENGTH = 5000
LONG = 50_000
"""Elements that NumPy's operators are given by methods."""
FILE = "<a program>"

pytestmark = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled")

Told = list[tuple[str, int, str]]


def _run(module: Any, text: str, dtype: str = "f8", length: int = LENGTH, **given: Any) -> tuple[Any, Told]:
    """What a function of this text gives, or whether it raises an error of arithmetic or another one, and
    where in the program, and what it tells, by which lines of which files. It has ones `x` and zeros `z`."""
    space = {"np": module} | given
    space |= {name: module.array(numpy.full(length, k, dtype)) for name, k in (("x", 1), ("z", 0))}
    indented = text.replace("\n", "\n    ")
    found: tuple[Any, ...]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            exec(compile(f"def run():\n    {indented}\n", FILE, "exec"), space)
            given_back = numpy.asarray(space["run"]())
            found = (given_back.dtype, given_back.tobytes())
        except Exception as error:  # noqa: BLE001 - whatever it is
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
            found = (isinstance(error, ArithmeticError), lines)
    return found, [(str(w.message), w.lineno, w.filename) for w in told]


def _compare(text: str, dtype: str = "f8", make: Callable[[Any], dict[str, Any]] = lambda module: {}) -> None:
    """Both modules do the same; where they refuse it, they may do so for reasons of their own."""
    expected, found = (_run(module, text, dtype, **make(module)) for module in (numpy, np))
    assert found[1] == expected[1], text
    assert found[0] == expected[0], text


class _Runs:
    """Anybody's object, whose operators, keys and attributes run code."""

    def __init__(self, code: Callable[[], Any]) -> None:
        self.code = code

    def _run(self, *_: Any) -> Any:
        self.code()
        return 1

    __add__ = __radd__ = __neg__ = __invert__ = __getitem__ = __lt__ = __index__ = __len__ = _run
    attribute = property(_run)


BETWEEN = (
    *("(o + 1)", "(1 + o)", "(-o)", "(~o)", "o[0]", "o[1:]", "(o < 2)", "y[o]", "y[o:]", "y[:o]", "y[::o]"),
    *("o.attribute", "len(o)", "y[0, o]", "(y[0] + o[0])", "d['o'][0]", "(-d['o'])", "(d['o'] + 1)"),
    *(
        "y[d['o']]",
        "(y[d['o']:] + 1)",
        "(-o) * (y * 2)",
        "y[0][o]",
        "np.maximum(y[0], o[0])",
        "np.add(y, -o)",
    ),
)
"""Other operands, which run code before they are there."""


@pytest.mark.parametrize("how", ["ours", "borrowed", "lent"])
@pytest.mark.parametrize("between", BETWEEN)
def test_code_that_writes(between: str, how: str) -> None:
    """It comes after what was read before it, whoever has the memory."""

    def make(module: Any) -> dict[str, Any]:
        memory = numpy.ones((2, LENGTH))
        a, y = module.asarray(memory), module.asarray(numpy.full((2, LENGTH), 2.0))
        if how != "borrowed":
            a = a.copy()
        if how == "lent":
            memory = numpy.asarray(a)
        code = (lambda: a.__setitem__(..., 7)) if how == "ours" else (lambda: memory.fill(7))
        o = _Runs(code)
        return {"a": a, "y": y, "o": o, "d": {"o": o}}

    _compare(f"return (a * 3 + a) * {between}", make=make)


@pytest.mark.parametrize("key", ["o:", ":o", "::o", "(o, ...)", "0, o:", "o"])
@pytest.mark.parametrize("sign", ["=", "+="])
def test_keys_of_writes_that_write(key: str, sign: str) -> None:
    """A key's code comes after the value, and runs as often as in NumPy."""
    for write in ("a", "b"):

        def make(module: Any, write: str = write) -> dict[str, Any]:
            a, b = (module.ones((2, LENGTH)) for _ in "ab")
            times: list[int] = []

            def code() -> None:
                {"a": a, "b": b}[write][...] = 7
                times.append(1)

            return {"a": a, "b": b, "o": _Runs(code), "times": times}

        _compare(f"a[{key}] {sign} b[1] * 2 + b[0]\nreturn a * 10 + len(times)", make=make)


@pytest.mark.parametrize(
    "body",
    [
        "with warnings.catch_warnings():\n            warnings.simplefilter('ignore')\n            x[0] = 1",
        "with np.errstate(all='ignore'):\n            x[0] = 1",
        "with np.errstate(all='raise'):\n            x[0] = 1",
        "x[0] = 1",
        "z + 0",
        "x[0] = 1\n        raise LookupError",
        "try:\n            x[0] = 1\n        except ArithmeticError:\n            pass",
    ],
)
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("text", ["x / z", "(x.copy() / z) * 2", "np.sqrt(-x) + x / z"])
def test_errors_are_told_where_they_are(text: str, body: str, raises: bool) -> None:
    """Where operators of one expression are worked out since code of another function writes, their errors
    are told by the line that they are in, under what is said of errors there."""
    program = f"class C:\n    @property\n    def p(self):\n        {body}\n        return 2.0\nc = C()\n"
    program += f"with np.errstate(all={'raise' if raises else 'warn'!r}):\n    return {text} + c.p"
    _compare(program, make=lambda module: {"warnings": warnings})


DROPPED = ("{}['k']", "missing", "z[9, 9, 9]", "x[:9]", "(-'')", "None.it", "(1 // 0)", "x.missing")


@pytest.mark.parametrize("last", DROPPED)
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("text", ["x / z", "(x / z) * 2", "np.log(z) + x / z"])
def test_errors_before_others_are_told(text: str, last: str, raises: bool) -> None:
    """What was left to an operator that is never called, since the other operand is an error."""
    program = (
        f"d = {{}}\nwith np.errstate(all={'raise' if raises else 'warn'!r}):\n    return ({text}) + {last}"
    )
    _compare(program)
    caught = f"d = {{}}\ntry:\n    y = ({text}) * {last}\nexcept Exception:\n    y = x\nreturn y + 1"
    _compare(caught)


LEFT = (
    "3",
    "2.5",
    "1j",
    "True",
    "s",
    "t",
    "t4",
    "t1",
    "row",
    "(1., 2.)",
    "k",
    "x.T",
    "h.u",
    "d['u']",
    "zero",
)
"""Numbers of Python's, ours and NumPy's, and arrays, by what the interpreter finds them."""
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "==", ">=", "&", "<<", "@")


def _operands(dtype: str, length: int) -> Callable[[Any], dict[str, Any]]:
    def make(module: Any) -> dict[str, Any]:
        u = module.array(numpy.ones(length, dtype))
        made = {"s": u.sum(), "t": numpy.float64(2), "t4": numpy.float32(2), "t1": numpy.int8(2), "k": 3}
        return made | {
            "row": module.ones(1, dtype),
            "h": SimpleNamespace(u=u),
            "d": {"u": u},
            "zero": module.array(2.0),
            "length": length,
        }

    return make


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("length", [LENGTH, LONG])
def test_the_users_line_is_named(left: str, dtype: str, length: int) -> None:
    """Whoever takes a result tells of it by the line that made it."""
    if left == "1j" and length == LONG:
        pytest.skip("complex numbers wait until somebody looks at them")
    for o in OPERATORS:
        for text in (
            f"{left} {o} (x / z)",
            f"(x / z) {o} {left}",
            f"{left} {o} z",
            f"({left} {o} x) {o} (x / z)",
            f"(x // z) {o}\\\n  {left}",
        ):
            _compare(f"return {text}", dtype, _operands(dtype, length))


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("o", OPERATORS[:7] + OPERATORS[10:])
def test_the_line_of_writes_is_named(o: str, dtype: str) -> None:
    for text in (
        f"a {o}= x / z",
        f"a[1:] {o}= (x // z)[1:]",
        f"a[:] {o}=\\\n  x / z",
        f"b = a * 1.5\nb {o}= x // z + 1",
    ):
        _compare(f"a = x.copy()\n{text}\nreturn a", dtype)
    for key in (":", "...", "1:", "None", "0", "[0]", "a > 0", "::2"):
        _compare(f"a = x.copy()\na[{key}] =\\\n  x {o} (x / z)\nreturn a", dtype)


def test_takers_see_arrays() -> None:
    """Functions that a class's body names as Python's own are not these."""
    space: dict[str, Any] = {"x": np.ones(LENGTH)}
    exec("class C:\n  def len(a): return type(a).__name__\n  found = len(x * 2)", space)
    assert space["C"].found == "ndarray"
    assert len(space["x"] * 2) == LENGTH
    many = "\n    ".join(f"v{i} = 0" for i in range(300))  # so that a jump's end has an extended argument
    exec(f"def run(a, b, c):\n    {many}\n    v299 = a\n    return (b if c else a) + v299 * a", space)

    class Sees:
        __array_ufunc__ = None

        def __add__(self, other: Any) -> str:
            return type(other).__name__

    assert space["run"](space["x"], Sees(), True) == "ndarray"


@pytest.fixture
def readings() -> Iterator[list[int]]:
    """Where code has been read."""
    from spartan_ng.api.ndarray import array

    found: list[int] = []
    own, learn = ahead.read_ahead, quick.learn_expressions

    def read(code: Any, at: int) -> Any:
        found.append(at)
        return ahead.read_ahead(code, at)

    assert learn is not None
    others = (may_raise, np, numpy.where, numpy.square, numpy.reciprocal, numpy.sqrt)
    learn(array.Pending, read, *others)
    yield found
    learn(array.Pending, own, *others)


@pytest.fixture
def reading(readings: list[int], monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Errors that are raised, one after the other, while code is read."""
    raised: list[BaseException] = []
    own = ahead.read_ahead

    def read(code: Any, at: int) -> Any:
        if raised:
            raise raised.pop(0)
        return own(code, at)

    monkeypatch.setattr(ahead, "read_ahead", read)
    return raised


def test_code_is_read_where_as_much_has_come_as_takes_as_long(readings: list[int]) -> None:
    """A short program has no time for it; once one place is read, so is what takes its result."""
    space: dict[str, Any] = {"x": np.ones(LENGTH), "y": np.ones(LENGTH)}
    exec("def run():\n    return (x + y) * 2", space)
    counts = []
    try:
        quick.read_after(3 * 8 * LENGTH)
        for _ in range(4):
            assert (numpy.asarray(space["run"]()) == 4).all()
            counts.append(len(readings))
    finally:
        quick.read_after(0)
    assert counts == [0, 0, 2, 2]
    assert len(set(readings)) == 2


@pytest.mark.parametrize("text", ["(x + y) * 2", "np.exp(x) + 1", "x**2 + y", "-x + y", "(x < y) & (y < x)"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, RecursionError, MemoryError])
def test_interrupted_readings(text: str, error: type[BaseException], reading: list[BaseException]) -> None:
    """What a signal's handler raises goes on; what reading itself needs is no matter. The next is read."""
    space: dict[str, Any] = {"np": np, "x": np.ones(LENGTH), "y": np.ones(LENGTH)}
    exec(f"def run():\n    return {text}", space)
    reading.append(error())
    if error in (KeyboardInterrupt, TimeoutError):
        with pytest.raises(error):
            space["run"]()
    found = numpy.asarray(space["run"]())
    assert not reading
    space |= {"np": numpy, "x": numpy.ones(LENGTH), "y": numpy.ones(LENGTH)}
    assert found.tobytes() == space["run"]().tobytes()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_no_signal_is_lost() -> None:
    """An alarm in the middle of much code that is read for the first time."""
    space: dict[str, Any] = {"np": np, "x": np.ones(LENGTH)}
    lost = 0

    def handle(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for _ in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.003)
                for _ in range(10**5):
                    exec("x * 2 + 1 + x * 3", space)
                lost += 1
            except TimeoutError:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert lost == 0


@pytest.mark.parametrize(
    "text", ["x * y + 1", "np.exp(-((x - y) ** 2))", "np.where(x > y, x * 2, y)", "(x < y) | (x > 2)"]
)
def test_what_operands_make_large_waits(text: str) -> None:
    """A product of lines that memory has no room for is computed by parts, as it always was."""
    line = np.arange(200_000.0)
    space: dict[str, Any] = {"np": np, "x": line[:, None], "y": line[None, :]}
    found = eval(text, space)
    assert found.shape == (200_000, 200_000)
    space = {"np": numpy, "x": numpy.arange(2.0)[:, None], "y": numpy.arange(3.0)}
    assert numpy.asarray(found[:2, :3]).tobytes() == eval(text, space).tobytes()


def test_sums_of_complex_numbers_at_odd_places() -> None:
    """Elements of `where` lie where their parts may."""
    memory = numpy.zeros(8 * LENGTH + 4, "u1")[4:]
    for module in (numpy, np):
        a = module.asarray(memory.view("c8"))
        a[:] = module.arange(LENGTH) * 1j
        found = numpy.asarray(module.where(a.imag > 5, a * 2, a))
        assert (
            found.tobytes()
            == numpy.where(numpy.arange(LENGTH) > 5, numpy.asarray(a) * 2, numpy.asarray(a)).tobytes()
        )


def test_threads_of_little_stack() -> None:
    """Short lines and several results at a time need no more of it than NumPy does."""
    program = """
import threading, spartan_ng as np
def run():
    a, b, r = np.ones((3000, 3)), np.ones((3000, 3)), np.arange(3.0)
    for _ in range(3):
        c = (a + r) * (b - r) + a[:, :1] * b
        c = np.where((a > b) & (c < b), a[:, :1] * r, b + r)
    print(float(c.sum()))
threading.stack_size(1 << 16)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "18000.0\n"), done.stderr
