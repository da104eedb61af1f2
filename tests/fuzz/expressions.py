"""Programs of expressions as source text, run with NumPy and with this package: `python -m
tests.fuzz.expressions --help`.

All that they make has NumPy's bits, types and shapes; they warn as often, of the same, in the same lines, and
raise errors in the lines where NumPy does.
"""

from __future__ import annotations

import secrets
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from random import Random
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import click
import numpy
from tqdm import tqdm

import spartan_ng
from spartan_ng import recurring
from tests.fuzz.texts import OF_ONE, OF_TWO, Text

SIZES = (128, 2_048, 12_800, 131_072)
"""Elements of the larger arrays: of doubles 1 kB to 1 MB."""
DTYPES = ("f8", "f8", "f8", "f4", "i8", "c16", "u1", "i4", "c8", "i1", "i2", "u2", "u4", "u8", "f2")
ENDS = 0.03
"""How often a statement may end a program by an error."""
PROVEN = 6
"""Times that a program runs until its expressions' kernels are there, and have proved themselves."""
FILE = "<a program>"
_HEAD = """\
def program(np, given, package, o, called, reduce, awaited):
    a, b, c, row, column, mask, whole, short, single, number, t, t4 = given.values()
    v, w, k, s = {v}, {w}, 2, a.max() * 0 + 3
    here, listed, d, h = {{'a': a}}, [a], {{'u': a, 'n': 1.5}}, holder(np)
    h.u, h.n, lent = b, 0.25, {lent}
    o.written = {written}

    def identity(x):
        return x

    def recur(x, n):
        return x * 2 + recur(x + a, n - 1) if n else x + b

"""


class Foreign:
    """Anybody's object, whose operators, keys and attributes run code, which writes to an array, if any."""

    written: Any = None
    times = 0

    def _run(self, *_: Any) -> int:
        self.times += 1
        if self.written is not None:
            self.written[0] = self.times
        return 1

    def __getitem__(self, key: Any) -> int:
        if isinstance(key, int) and key > 1:  # whoever goes through it comes to an end
            raise IndexError
        return self._run()

    __add__ = __rsub__ = __neg__ = __lt__ = __len__ = __index__ = _run
    __array_ufunc__ = None
    attribute = property(_run)


@dataclass(frozen=True)
class Program:
    """Statements, and what they are given."""

    seed: int
    shape: tuple[int, ...]
    dtype: str
    head: str
    statements: tuple[str, ...]

    @property
    def text(self) -> str:
        """The function."""
        return self.head + indent("\n".join((*self.statements, "return locals()")), "    ")

    def without(self, k: int) -> Program:
        """The program without a statement."""
        return replace(self, statements=self.statements[:k] + self.statements[k + 1 :])

    def at(self, line: int) -> int:
        """The number of the statement that a line is in."""
        line -= self.head.count("\n")
        for k, statement in enumerate(self.statements):
            line -= statement.count("\n") + 1
            if line <= 0:
                return k
        return len(self.statements) - 1


def drawn(seed: int, size: int) -> Program:
    """A random program; most statements that NumPy refuses are left out."""
    drawn, random = _any(seed, size), Random(seed)
    while drawn.statements:
        error = run(drawn, numpy).error
        if error is None or random.random() < ENDS:
            break
        drawn = drawn.without(drawn.at(error[1][0]))
    return drawn


def _any(seed: int, size: int) -> Program:
    """Any program."""
    random = Random(seed)
    shapes = ((size,), (size // 50 + 1, 50), (size // 3, 3), (4, size // 28, 7))
    head = _HEAD.format(
        v=random.choice(("a", "a[...]", "a[::-1]", "a.T.T")),
        w=random.choice(("b", "a", "b[:]")),
        lent=random.choice(("[0, 0]", "[0, 0]", "N.asarray(a)")),
        written=random.choice(("None", "None", "a", "lent")),
    )
    text = Text(seed)
    return Program(
        seed,
        random.choice(shapes),
        random.choice(DTYPES),
        head,
        tuple(text.statements(random.randint(4, 16))),
    )


def _given(program: Program) -> dict[str, Any]:
    random = numpy.random.default_rng(program.seed)
    shape = program.shape
    made: dict[str, Any] = {name: random.normal(size=shape) * 5 for name in "abc"}
    made["a"].flat[:: 7 * (program.seed % 3) + 1] = 0
    made["b"].flat[:: 11 * (program.seed % 5) + 3] *= 1e3
    made |= {"row": random.normal(size=shape[-1:]), "column": random.normal(size=(*shape[:-1], 1))}
    made = {
        name: (abs(x) % 99 if program.dtype[0] == "u" else x).astype(program.dtype)
        for name, x in made.items()
    }
    made |= {"mask": random.random(shape) < 0.5, "whole": random.integers(-9, 9, shape)}
    made |= {"short": random.integers(0, 99, shape).astype("u1"), "single": random.random(shape, "f4")}
    return made


def _awaited(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value


def _known(value: Any) -> Any:
    """What two modules' values are compared by."""
    if isinstance(value, (numpy.ndarray, numpy.generic, spartan_ng.ndarray)):
        if type(value).__name__ == "Pending":
            return "an array that is pending"
        plain = numpy.array(value, order="C")
        numbers = plain.reshape(-1)
        numbers = numbers.view(plain.real.dtype) if plain.dtype.kind == "c" else numbers
        if plain.dtype.kind in "fc":
            numbers[numpy.isnan(numbers)] = numpy.nan  # whose sign nobody promises
        return (plain.dtype.str, plain.shape, numbers.tobytes())
    if isinstance(value, (list, tuple)):
        return [_known(x) for x in value]
    return value if isinstance(value, (int, float, complex, str)) else None


@dataclass(frozen=True)
class Outcome:
    """What has come of a program: arrays and numbers by name, an error or nothing, and what was told, in
    which lines."""

    values: dict[str, Any]
    error: Any
    told: list[Any]


def run(program: Program, module: Any) -> Outcome:
    """Run it with NumPy, or another module in its place."""
    given = {name: module.array(x) for name, x in _given(program).items()}
    given |= {"number": 0.75, "t": numpy.float64(1.25), "t4": numpy.float32(0.5)}
    kinds: list[str] = []
    called = SimpleNamespace(append_kind=lambda kind, flag: kinds.append(kind))
    space: dict[str, Any] = {name: getattr(module, name) for name in (*OF_ONE, *OF_TWO, "where")}
    space |= {"N": numpy, "holder": lambda np: SimpleNamespace(np=np)}
    exec(compile(program.text, FILE, "exec"), space)
    error: Any = None
    found: dict[str, Any] = dict(given)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = space["program"](module, given, module, Foreign(), called, reduce, _awaited)
        except Exception as raised:  # noqa: BLE001 - whatever it is, NumPy raises it, too
            lines = [f.lineno for f in traceback.extract_tb(raised.__traceback__) if f.filename == FILE]
            error = (isinstance(raised, ArithmeticError), lines)
        names = [name for name in found if name not in ("np", "package", "given", "h", "here", "d")]
        values = {name: _known(found[name]) for name in names}
    said: list[Any] = [(str(w.message), w.lineno, w.filename) for w in told]
    return Outcome(values, error, [*said, *kinds])


def fault(program: Program, times: int = 1) -> str | None:
    """What is not as in NumPy, in words, when it has run so often."""
    expected = run(program, numpy)
    with spartan_ng.config.override(small_bytes=type(spartan_ng.config)().small_bytes):
        every = (_fault(run(program, spartan_ng), expected) for _ in range(times))
        return next((said for said in every if said is not None), None)


def _fault(found: Outcome, expected: Outcome) -> str | None:
    if found.error != expected.error:
        return f"raises {found.error}, NumPy {expected.error}"
    if found.told != expected.told and not _is_late(found.told, expected.told):
        return f"tells {found.told}, NumPy {expected.told}"
    for name, value in expected.values.items():
        other = found.values.get(name)
        if other != value and not _is_rounded(other, value):
            return f"{name} is another: {_short(other)}, NumPy's {_short(value)}"
    return None


def _is_late(told: list[Any], other: list[Any]) -> bool:
    """Whether the same is told, some of it once what waited is looked at, here."""
    is_late = any(isinstance(one, tuple) and one[2] == __file__ for one in told)
    texts, others = ({one[0] if isinstance(one, tuple) else one for one in all_} for all_ in (told, other))
    return is_late and texts == others


def _is_rounded(known: Any, other: Any) -> bool:
    """Whether many complex numbers differ in their last bits: NumPy's products have others when they are
    written over an operand, as over temporaries of 256 kB."""
    alike = isinstance(known, tuple) and isinstance(other, tuple) and known[:2] == other[:2]
    if not alike or known[0][1] != "c" or len(known[2]) < 1 << 18:
        return False
    ours, numpys = (numpy.frombuffer(x[2], x[0]) for x in (known, other))
    return numpy.allclose(ours, numpys, 1e-3 if known[0] == "<c8" else 1e-9, equal_nan=True)


def _short(known: Any) -> str:
    if not isinstance(known, tuple):
        return repr(known)[:200]
    dtype, shape, elements = known
    return f"{dtype} {shape} {numpy.frombuffer(elements, dtype)[:4]}"


def shortened(program: Program, times: int = 1) -> Program:
    """The program with as few statements as show a fault."""
    for k in range(len(program.statements)):
        less = program.without(k)
        if fault(less, times) is not None:
            return shortened(less, times)
    return program


@contextmanager
def compiling(least: float = 0.0) -> Iterator[None]:
    """Around what has all expressions compiled that come again, from so many operations on elements on."""
    with spartan_ng.config.override(kernels="compile"):
        recurring.compile_recurring(least)
        try:
            yield
        finally:
            recurring.compile_recurring()


@click.command(context_settings={"show_default": True})
@click.option("--programs", default=300, help="How many programs to run, each at all sizes.")
@click.option("--seed", type=int, help="The first program; fresh by default, and printed.")
@click.option("--keep-going", is_flag=True, help="Go on after a fault.")
@click.option("--compiled", is_flag=True, help="Run each again and again, with its expressions compiled.")
def main(programs: int, seed: int | None, keep_going: bool, compiled: bool) -> None:
    """Run random programs of expressions, and show the first that is not as in NumPy, as short as it gets."""
    with compiling() if compiled else nullcontext():
        _main(programs, seed, keep_going, PROVEN if compiled else 1)


def _main(programs: int, seed: int | None, keep_going: bool, times: int) -> None:
    first = secrets.randbelow(2**31) if seed is None else seed
    print(f"seed {first}", flush=True)
    found: Counter[int] = Counter()
    errors = 0
    for at in tqdm(range(first, first + programs), unit="program", mininterval=30):
        for size in SIZES:
            program = drawn(at, size)
            said = fault(program, times)
            errors += run(program, numpy).error is not None if size == SIZES[0] else 0
            if said is None:
                continue
            found[size] += 1
            short = shortened(program, times)
            again = f"--seed {at} --programs 1{' --compiled' * (times > 1)}"
            shown = f"{short.shape} {short.dtype}: {fault(short, times)}\n{short.text}\n"
            print(f"# {again}, {shown}", flush=True)
            if not keep_going:
                sys.exit(1)
            break
    print(f"{programs} programs, {errors} of which NumPy ends with an error; {found.total()} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
