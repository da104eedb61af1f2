"""What is compiled answers as what is not, and as NumPy; and costs no memory, no signal and no thread."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import subprocess
import sys
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.api.core.cell import Cell
from spartan_ng.config import PURE_VARIABLE
from tests.api import plain_cases, plain_statements
from tests.api.test_small_calls import calls_of_ours
from tests.sampling import part

ROOT = Path(np.__file__).resolve().parent.parent
compiled = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")


def python(*command, pure="0", **more):
    """What a program says in a process of its own, with what is compiled or without."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={
            **os.environ,
            PURE_VARIABLE: pure,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONHASHSEED": "0",  # dates are hashed with it, as texts are
            **more,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the same answers --------------------------------------------------------------------------------


@pytest.mark.slow
@compiled
def test_compiled_answers_are_those_of_python(tmp_path, request):
    """Values, dtypes, classes, strides, errors and their texts, warnings, and who sees what was written."""
    seed, n = request.config.option.seed, part(8_000)
    found = {}
    for pure in "01":
        path = tmp_path / pure
        python("-m", "tests.api.plain_cases", str(path), str(seed), str(n), pure=pure)
        found[pure] = pickle.loads(path.read_bytes())
    assert (found["0"][0], found["1"][0]) == (True, False)
    for case, one, other in zip(plain_cases.drawn(seed, n), found["0"][1], found["1"][1], strict=True):
        assert one == other, case


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("name", ["arrays_of_lists", "lent", "folds_at_once"])
def test_tables_hold_without_what_is_compiled(name):
    """Of lists, of memory that others have, and of folds, for all that lies in it."""
    python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/api/test_{name}.py", pure="1")


OWN_WAYS = ("Told()", "** a", "= None", "ii->i", "q[...] = 3; r")
"""What else is asked of a foreign operand; powers that fail when they are computed; two mistakes at once;
diagonals of no rows and some columns, which NumPy takes for one; writes between arrays of ours and NumPy's,
which share no memory."""


@pytest.mark.slow
def test_answers_are_numpys(request):
    """Where NumPy answers so do we, and where it refuses so do we."""
    for case in plain_cases.drawn(request.config.option.seed, part(8_000)):
        statement, dtype, _, owner, _ = case
        if dtype not in plain_cases.NUMBERS or owner in ("number", "standard"):
            continue
        if any(way in statement for way in OWN_WAYS):
            continue
        if dtype == "g" and any(way in statement for way in ("'u1'", "a.dtype = 'i8'", "byteswap")):
            continue  # what lies between its numbers is nobody's
        theirs, ours = (plain_cases.answer(of, case, whole=False) for of in (numpy, np))
        assert ("error" in ours) == ("error" in theirs), case
        if "error" not in theirs:
            assert ours == {**theirs, "warned": ours["warned"]}, case


@pytest.mark.slow
def test_fields_are_the_same_in_both():
    """What a cell has, and what each of it is at first."""
    program = (
        "from spartan_ng.api.core import quick; from spartan_ng.api.core.cell import Cell; c = Cell();"
        "print({n: getattr(c, n) for n in dir(quick.CellFields) if not n.startswith('__')},"
        "sorted(n for n in dir(quick.HandleFields) if n[1] != '_'))"
    )
    said = {python("-c", program, pure=pure) for pure in "01"}
    assert len(said) == 1
    assert set(Cell.__annotations__) <= set(dir(quick.CellFields))


# --- which of the two --------------------------------------------------------------------------------


def test_nobody_has_to_want_what_is_compiled(monkeypatch):
    monkeypatch.setenv(PURE_VARIABLE, "1")
    assert quick._compiled() is None
    monkeypatch.delenv(PURE_VARIABLE)
    assert (quick._compiled() is not None) == quick.IS_COMPILED


# --- the one threshold -------------------------------------------------------------------------------


def test_the_option_is_followed_as_it_changes():
    a = np.arange(4.0)
    for small, is_here in ((0, False), (1 << 20, True), (8, False), (1 << 70, True)):
        with np.config.override(small_bytes=small):
            for found in (a + a, a * 2.0, -a, a < a, a @ np.ones((4, 4)), numpy.float64(2) * a, a**2):
                assert (found._peek() is not None) == is_here
    with np.config.override(small_bytes=8):
        b = np.zeros(1)
        b += 1.0
        assert b.tolist() == [1.0]


@compiled
@pytest.mark.parametrize(
    "statement",
    [
        "a + b",
        "a[2]",
        "a[1:3]",
        "m[1, 2]",
        "m[:, 1]",
        "a[2] = 1.0",
        "a[1:3] = b[1:3]",
        "a += b",
        "-a",
        "a < b",
        "x * a",
        "m @ a",
        "a ** 2",
        "len(a)",
        "m[1] -= m[0]",
        "a @ b",
        "m[i, 0]",
        "k[l]",
        "c * w",
        "m[i, j] -= 0.5",
        "q[p, p]",
        "q[p, p] = p",
        "q[p, p] += 0.5",
        "o = a * b; o += 1.0",
        "[np.flip(q[0, :n]) for n in range(2, 9)]",
        "o = a.copy(); o[1:3] = b[1:3]",
        "np.sqrt(a)",
        "np.exp(2.0)",
        "np.exp(x)",
        "np.maximum(a, 0.5)",
        "np.add(a, b, b)",
        "np.multiply(a, b, out=b)",
    ],
)
def test_no_python_stands_in_between(statement):
    names = {"a": np.arange(4.0), "b": np.ones(4), "m": np.ones((4, 4)), "x": numpy.float64(2)}
    names |= {"i": numpy.int64(1), "j": 2, "np": np, "k": np.arange(1 << 16), "l": np.arange(9)}
    names |= {"c": np.ones((8, 1, 1, 64, 1)), "w": np.ones((1, 1, 64, 16))}
    names |= {"q": np.ones((300, 300)), "p": np.arange(300.0).astype(int)}
    for _ in range(40):  # in a loop: after calls with ever new lengths it is asked rarely what views are
        exec(statement, names)
    assert calls_of_ours(statement, names) == []


# --- classes -----------------------------------------------------------------------------------------


def test_a_class_of_ours_has_its_own_operators():
    class Loud(np.ndarray, own=True):
        __slots__ = ()

        def __getitem__(self, key):
            return ("item", super().__getitem__(key))

        def __add__(self, other):
            return ("sum", super().__add__(other))

        def __radd__(self, other):
            return "reflected"

        def __len__(self):
            return 7

    plain = np.arange(3.0)
    loud = object.__new__(Loud)
    loud._cell, loud._views, loud._state = plain._cell, (), None
    for _ in range(100):  # as long as the interpreter takes to learn what it finds
        assert loud[1] == ("item", 1.0)
        assert plain[1] == 1.0
    assert (loud + 1)[0] == "sum"
    assert plain + loud == "reflected"
    assert (len(loud), len(plain)) == (7, 3)


def test_a_method_that_is_replaced_is_asked(monkeypatch):
    a = np.arange(3.0)
    with monkeypatch.context() as patch:
        patch.setattr(np.ndarray, "__add__", lambda self, other: "mine")
        patch.setattr(np.ndarray, "__getitem__", lambda self, key: "item")
        assert [a + 1, a[0]] == ["mine", "item"]
    assert (a + 1).tolist() == [1, 2, 3]
    assert a[0] == 0


@pytest.mark.parametrize("ask", [lambda a: a + 1, lambda a: 1 + a, lambda a: a[0], len, lambda a: a == a])
def test_a_shell_without_fields_has_no_answer(ask):
    with pytest.raises(AttributeError):
        ask(object.__new__(np.ndarray))


# --- memory ------------------------------------------------------------------------------------------

LOOPS = [
    *[s for s in plain_statements.STATEMENTS if s.startswith("r = a[")],
    *[
        f"r = a {o} {v}"
        for o in plain_statements.OPERATORS
        for v in ("7", "b", "x", "s", "None", "np.zeros(99)")
    ],
    *[f"a {o}= {v}" for o in plain_statements.IN_PLACE for v in ("1", "b", "np.zeros(99)")],
    *[
        f"a[{k}] = {v}"
        for k in ("0", "1:", "0, 1", "np.int64(1)", "99", "'x'")
        for v in ("1", "b[0]", "a", "None")
    ],
    *[
        "-a",
        "len(a)",
        "x * a",
        "a @ b",
        "numpy.multiply(a, a)",
        "del a[0]",
        "a ** 2",
        "a == None",
        "a[1:][0] = 1",
    ],
]


def rounds(statement, names, n):
    """How many memory blocks so many rounds keep, and how many references to what lives on."""
    code = compile(
        f"for _ in range({n}):\n try:\n  {statement}\n except Exception: pass", "statement", "exec"
    )
    watched = [None, numpy.add, Cell, np.ndarray, names["x"], ()]
    if "99" not in statement:  # where it refuses, NumPy keeps some
        watched.append(numpy.dtype("f8"))
    gc.collect()
    before, held = sys.getallocatedblocks(), [sys.getrefcount(w) for w in watched]
    exec(code, names)
    names.pop("r", None)
    gc.collect()
    return sys.getallocatedblocks() - before, max(
        sys.getrefcount(w) - h for w, h in zip(watched, held, strict=True)
    )


@compiled
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_nothing_is_kept(shape, some):
    """A block or a reference a round would show as hundreds."""
    n = 300
    gc.freeze()  # what other tests have left is looked through in no round
    for statement in some(LOOPS, 3):
        a = np.arange(float(numpy.prod(shape))).reshape(shape) + 1.0
        names = {"np": np, "numpy": numpy, "a": a, "b": a + 1, "x": numpy.float64(2.5), "s": np.sum(a)}
        names |= {"i": np.array([0, 1]), "m": a[..., 0] > 2, "n": np.array(1), "t": np.array([[0], [1]])}
        names |= {"Index": plain_cases.Index}
        rounds(statement, names, 5)
        kept = min(rounds(statement, names, n) for _ in range(3))
        assert max(kept) < n // 2, (statement, kept)


def test_cycles_are_collected():
    owner = SimpleNamespace()
    owner.array = np.arange(3.0)
    owner.array._cell.lender = owner
    owner.view = owner.array[1:]
    gone = weakref.ref(owner.view), weakref.ref(owner.array), weakref.ref(owner.array._cell)
    del owner
    gc.collect()
    assert [g() for g in gone] == [None] * 3


def test_a_view_keeps_what_it_shows():
    a = np.arange(6.0)
    seen, gone = a[2:], weakref.ref(a)
    del a
    assert gone() is None
    assert seen.tolist() == [2, 3, 4, 5]


# --- NumPy's loops, called without NumPy -------------------------------------------------------------

LINES = {
    "line": lambda n: numpy.arange(n) / 8 - 2,
    "backwards": lambda n: (numpy.arange(3 * n) / 8 - 2)[::-3],
    "rows": lambda n: (numpy.arange(2 * n) / 8 - 2).reshape(2, n),
    "columns": lambda n: (numpy.arange(2 * n) / 8 - 2).reshape(n, 2).T,
    "stretched": lambda n: numpy.broadcast_to(numpy.array(1.5), (n,)),
    "crooked": lambda n: numpy.frombuffer(bytes(8 * n + 1), "f8", n, 1),
    "swapped": lambda n: numpy.arange(n).astype(">f8"),
}
TELLING = [
    "a * 1e308 * 1e10",
    "a / 0",
    "a / (a - a)",
    "1e-320 * a * 1e-9",
    "np.sqrt(a)",
    "np.log(a)",
    "a @ (1e300 * a)",
]
WRITING = [
    "a *= 1e308; a *= 1e10",
    "a /= 0",
    "np.divide(a, 0, a)",
    "np.log(a, out=a)",
    "a[2:] /= a[:-2]",
    "a **= 700.5",
]


def told(np, statement, value, **state):
    """What a statement makes of an array, and what is said about it."""
    names = {"np": np, "a": np.array(value)}
    with warnings.catch_warnings(record=True) as said, numpy.errstate(**state):
        warnings.simplefilter("always")
        try:
            exec(f"r = {statement}" if statement in TELLING else f"{statement}; r = a", names)
        except FloatingPointError as error:
            names["r"] = str(error)
    found = names["r"]
    bits = found if isinstance(found, str) else (found.dtype, numpy.asarray(found).tobytes())
    return bits, numpy.asarray(names["a"]).tobytes(), [str(w.message) for w in said]


@pytest.mark.parametrize("how", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("statement", TELLING + WRITING)
def test_what_a_loop_tells_is_told_once(statement, how):
    for value in (numpy.arange(5) - 2.0, numpy.arange(600) - 2.0):
        assert told(np, statement, value, all=how) == told(numpy, statement, value, all=how)


@pytest.mark.parametrize("n", [1, 2, 9, 500, 501])
def test_functions_of_doubles_have_numpys_bits(n, some):
    functions = [
        f for f in vars(numpy).values() if type(f) is numpy.ufunc and f.nin < 3 and hasattr(np, f.__name__)
    ]
    pairs = [(a, b) for a in LINES for b in (*LINES, 0.75, 3, numpy.float64(-2), 2**60, True)]
    for f in some(functions, 20):
        for a, b in some(pairs, 12):
            x, other = LINES[a](n), LINES[b](n) if b in LINES else b
            given = [(x,), (x, other), (other, x)][: 1 if f.nin == 1 else 3]
            for operands in given[-2:]:
                answers = []
                for of in (numpy, np):
                    ours = [of.array(o, copy=None) if isinstance(o, numpy.ndarray) else o for o in operands]
                    with numpy.errstate(all="ignore"):
                        try:
                            found = getattr(of, f.__name__)(*ours)
                        except (TypeError, ValueError, OverflowError):
                            found = ()
                    found = found if isinstance(found, tuple) else (found,)
                    answers.append([(r.dtype, r.shape, numpy.asarray(r).tobytes()) for r in found])
                assert answers[0] == answers[1], (f, a, b)


@pytest.mark.parametrize("n", [1, 7, 500, 501])
def test_products_of_lines_have_numpys_bits(n):
    for a in LINES.values():
        for b in LINES.values():
            x, y = a(n).reshape(-1)[:n], b(n).reshape(-1)[:n]
            mine, other = np.array(x, copy=None), np.array(y, copy=None)
            assert (mine @ other, np.dot(mine, other)) == (x @ y, numpy.dot(x, y))


@pytest.mark.parametrize("n", [9, 501, 6000, 9000])
def test_products_of_lines_are_summed_in_numpys_order(n):
    """`dot` copies what lies backwards for BLAS, `matmul` does not: digits that are rounded tell."""
    a, b = numpy.random.default_rng(n).random((2, 2 * n))
    for x, y in itertools.product((a[:n], a[n - 1 :: -1], a[::2], a[::-2]), (b[:n], b[n - 1 :: -1])):
        mine, other = np.array(x, copy=None), np.array(y, copy=None)
        assert (mine @ other, np.dot(mine, other)) == (x @ y, numpy.dot(x, y))


def test_parts_of_an_array_may_overlap():
    """Writes that read what they write, elements and places."""
    for statement in (
        "a[1:] += a[:-1]",
        "a[::-1] -= a",
        "np.add(a[1:], a[:-1], a[:-1])",
        "a[1:] = a[:-1]",
        "a[:] = a[::-1]",
        "a[2:5] = a[2:5]",
        "a[1:] = a[1:] * a[:-1]",
        "a[3:] += 1",
    ):
        mine, theirs = np.arange(9.0), numpy.arange(9.0)
        exec(statement, {"a": mine, "np": np})
        exec(statement, {"a": theirs, "np": numpy})
        assert mine.tolist() == theirs.tolist(), statement


def test_what_is_to_be_read_only_is_not_written_to():
    a = np.arange(4.0)
    a.setflags(write=False)
    for statement in ("a += 1", "a[1:] += 1", "a[1:] = a[1:]", "np.add(a, a, a)", "a[1:] = a[:3]"):
        with pytest.raises(ValueError, match="read-only"):
            exec(statement, {"a": a, "np": np})
    assert a.tolist() == [0, 1, 2, 3]


@compiled
def test_memory_that_is_used_again_is_empty():
    """Arrays and cells that follow others have nothing of theirs."""
    a = np.arange(4.0)
    for _ in range(200):
        gone = weakref.ref(a[1:] + 1.0)
        assert gone() is None
        b = a + a
        assert (b._views, b._state, b._cell.owner, b._cell.settled, b._cell.picks) == (
            (),
            None,
            None,
            False,
            0,
        )
        seen = b[1:]
        assert seen._cell.owner() is b
        seen += 1.0
    kept = a
    for _ in range(100_000):  # one lends the memory of the next
        b = np.arange(2.0)
        b._cell.lender, kept = kept, b
    del kept, b
