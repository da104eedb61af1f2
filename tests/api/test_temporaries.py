"""The memory of an expression's temporaries is taken for results, and nothing else ever is."""

from __future__ import annotations

import functools
import itertools
import operator
import platform
import sys

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED
from spartan_ng.api.ndarray import protocols

N, SMALL = 60_000, 4_200
TAKES = IS_COMPILED and sys.version_info < (3, 14) and platform.system() + platform.machine() == "Linuxx86_64"
"""Whether temporaries are found here."""
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
DTYPES = ["f8", "f4", "f2", "i8", "i4", "u1", "c16", "?"]


@pytest.fixture(autouse=True, params=[N, SMALL], ids=["many", "few"])
def done_at_once(request, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "N", request.param)
    with np.config.override(small_bytes=1 << 24):
        yield


def values(dtype, turn=1):
    return (numpy.arange(N) * turn % 7 + 1).astype(dtype)


def address(a):
    return a._peek().__array_interface__["data"][0]


@pytest.fixture
def copied(monkeypatch):
    """The copies that were made of what was handed to NumPy."""
    made = []

    def copy(value):
        made.append(value.nbytes)
        return value.copy()

    monkeypatch.setattr(protocols, "private_copy", copy)
    return made


def test_the_first_result_of_a_chain_is_the_last():
    a, i = np.array(values("f8")), np.array(values("i8"))
    places = []

    def placed(b):
        places.append(address(b))
        return b

    for chain in (
        lambda: placed(a + a) * 3.0,
        lambda: 3.0 * placed(a + a),
        lambda: placed(a + a) - a,
        lambda: a - placed(a + a),
        lambda: placed(a + a) // a % a,
        lambda: placed(a + a) ** 2,
        lambda: placed(a + a) ** 0.5,
        lambda: placed(a + a) ** -1,
        lambda: placed(a + a) * numpy.float64(3),
        lambda: placed(i + i) // numpy.int64(3),
        lambda: placed(i + i) << 2 & i | i ^ i >> i,
        lambda: 2 << placed(i % 3),
        lambda: placed(a < 3) & (a > 1),
        lambda: placed(a + a) * a[3],
        lambda: placed(a + a) - values("f8"),
        lambda: placed(a + a) * i,
        lambda: i - placed(a + a),
    ):
        found = chain()
        assert address(found) == places.pop() or not TAKES, "new memory"


def test_sums_are_added_up_in_the_first_of_what_they_are_made_of():
    """Python's `sum` has each sum, and what is made for it, alone; what others have stays as it is."""
    x = values("f8")
    a, b, others = np.array(x), np.array(x * 3), []
    kept = [a, b]

    def made(k, keeps=False):
        new = a * k
        others.append(address(new))
        kept.extend([new] * keeps)
        return new

    for program, expected, is_taken in (
        (lambda: sum(made(k) for k in range(1, 6)), 15 * x, True),
        (lambda: sum((made(k) for k in range(1, 6)), made(2)), 17 * x, True),
        (lambda: sum((made(k) for k in range(1, 6)), 0.5), 15 * x + 0.5, True),
        (lambda: sum(made(k, True) for k in range(1, 6)), 15 * x, False),
        (lambda: sum([a, b, a]), 5 * x, False),
        (lambda: sum(kept[:2], made(1)) * 2, 10 * x, False),
    ):
        others.clear()
        found = program()
        assert address(found) in others or not (is_taken and TAKES), "new memory"
        numpy.testing.assert_allclose(numpy.asarray(found), expected)
        numpy.testing.assert_array_equal(numpy.asarray(a), x)
        numpy.testing.assert_array_equal(numpy.asarray(b), x * 3)
    for k, array in enumerate(kept[2:], 1):
        numpy.testing.assert_allclose(numpy.asarray(array), k * x)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_small_result_is_written_over_a_temporary_beside_one_as_large(dtype):
    """Both together are more than what is small; but nothing is made besides."""
    places = []

    def placed(b):
        places.append(address(b))
        return b

    x = values(dtype)
    a = np.array(x)
    for program, expected in (
        (lambda: a * placed(np.conj(a)), x * numpy.conj(x)),
        (lambda: placed(np.sqrt(a)) - a, numpy.sqrt(x) - x),
    ):
        with np.config.override(small_bytes=a.nbytes * 3 // 2):
            result = program()
            assert not TAKES or address(result) == places[-1]
        numpy.testing.assert_array_equal(numpy.asarray(result), expected)


@pytest.mark.some(16)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_every_operator_is_numpys_on_temporaries_of_every_dtype(function, dtype):
    text = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
    sign = text[function.__name__]
    operands = ["(x|x)", "(x+y)", "x", "2", "2.5", "2j", "np.int16(2)", "np.float32(2.5)"]
    pairs = [*itertools.product(operands, repeat=2), ("(x*x)", "0.5"), ("(x*x)", "(-1)"), ("(x*x)", "-1.0")]
    for left, right in pairs:
        if "x" not in left + right:
            continue
        expression = f"{left} {sign} {right}"
        outcomes = []
        for xp in (numpy, np):
            x, y = xp.array(values(dtype)), xp.array(values(dtype, 3))
            kept = x.copy(), y.copy()
            try:
                with numpy.errstate(all="ignore"):
                    found = eval(expression, {"x": x, "y": y, "np": numpy})
                outcomes.append((str(found.dtype), numpy.asarray(found).tobytes()))
            except (TypeError, OverflowError, ValueError) as error:
                outcomes.append((type(error).__mro__[1].__name__, b""))
            numpy.testing.assert_array_equal(x, kept[0])
            numpy.testing.assert_array_equal(y, kept[1])
        assert outcomes[0] == outcomes[1], expression


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["-{}", "~{}", "abs({})", "+{}"])
def test_signs_of_temporaries_are_numpys(text, dtype):
    outcomes = []
    for xp in (numpy, np):
        x = xp.array(values(dtype))
        try:
            found = eval(text.format("(x*x)"), {"x": x})
            outcomes.append((str(found.dtype), numpy.asarray(found).tobytes()))
        except TypeError as error:
            outcomes.append((type(error).__mro__[1].__name__, b""))
        numpy.testing.assert_array_equal(x, values(dtype))
    assert outcomes[0] == outcomes[1], text


def kept_by_a_list(a):
    held = [a + 1.0]
    total = held[0] + 2.0
    return held[0], total, held[0] ** 2, -held[0], held[0]


def kept_by_a_closure(a):
    b = a + 1.0

    def inner():
        return b + 2.0

    return inner() - 2.0, b


def kept_by_a_generator(a):
    def parts():
        b = a + 1.0
        yield b
        yield b

    total = sum(parts())
    return total, a


def by_functions(a):
    b = a + 1.0
    added = operator.add(b, 1.0), operator.add(b, b), functools.reduce(operator.add, [b, b, b])
    return *added, operator.pow(b, 2), operator.neg(b), *map(operator.neg, [b]), b


def accumulated(a):
    return tuple(itertools.accumulate([a, a, a], operator.add))


def by_a_view(a):
    b = a + 1.0
    v = b[::2]
    c = b + 1.0
    w = (a + 1.0)[:] + 1.0
    return c, v + 1.0, w, b**2, -(a + 1.0)[:], b


def by_a_lazy_reader(a):
    b = a + 1.0
    with np.config.override(small_bytes=0):
        lazy = b * 2.0
    return b + 1.0, lazy, b


def through_a_class(a):
    class Wrapper:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Wrapper(self.value + other)

        def __del__(self):
            kept.append(self.value)

    kept: list[np.ndarray] = []
    total = (Wrapper(a + 1.0) + 1.0 + 1.0).value
    return (total, *kept)


KEEPERS = [
    kept_by_a_list,
    kept_by_a_closure,
    kept_by_a_generator,
    by_functions,
    accumulated,
    by_a_view,
    by_a_lazy_reader,
    through_a_class,
]


@pytest.mark.parametrize("program", KEEPERS, ids=lambda f: f.__name__)
def test_what_anybody_can_still_see_is_kept(program):
    ours = program(np.array(values("f8")))
    theirs = program(values("f8"))
    for found, wanted in zip(ours, theirs, strict=True):
        numpy.testing.assert_array_equal(found, wanted)


def test_a_traced_program_is_numpys():
    """A profiler or debugger holds frames, and their variables, more than once."""
    a = np.array(values("f8"))
    sys.settrace(lambda *event: None)
    try:
        b = a + 1.0
        c = (b + 1.0) + (b * 2.0)
    finally:
        sys.settrace(None)
    numpy.testing.assert_array_equal(b, values("f8") + 1.0)
    numpy.testing.assert_array_equal(c, values("f8") * 3.0 + 4.0)


MADE = {
    "at once": lambda x: x + 1.0,
    "planned": lambda x: np.cumsum(x),
    "zeros": lambda x: np.zeros(N),
    "selected": lambda x: x[x > 3.0],
    "a matrix": lambda x: np.sort(x.reshape(200, -1), axis=0),
}


@pytest.mark.parametrize("small_bytes", [0, 1 << 24])
@pytest.mark.parametrize("making", MADE)
def test_numpy_takes_the_memory_of_what_nobody_holds(making, small_bytes, copied):
    make = MADE[making]
    with np.config.override(small_bytes=small_bytes):
        x = np.array(values("f8"))
        for _ in range(100):  # also once the interpreter has specialized the call
            taken = numpy.asarray(make(x))
        assert taken.flags.writeable
        numpy.testing.assert_array_equal(taken, make(x).compute())
        assert not (TAKES and copied)
        copied.clear()
        held = make(x)
        numpy.testing.assert_array_equal(taken, numpy.asarray(held))
        assert not copied


def _computed(a):
    return a.compute() if hasattr(a, "compute") else a.copy()


def handed_on(xp, x):
    a = xp.cumsum(x)
    return numpy.asarray(a), a


def read_later(xp, x):
    a = xp.cumsum(x)
    later = a * 2.0
    return numpy.asarray([_computed(a)].pop()), later


def of_a_property(xp, x):
    class Holder:
        inside = xp.cumsum(x)

    return numpy.asarray(Holder.inside), Holder.inside


def of_a_list(xp, x):
    parts = [x * 2.0, xp.cumsum(x)]
    return numpy.asarray(parts[1]), parts[1]


def by_its_method(xp, x):
    a = xp.cumsum(x)
    return a.__array__(), a


def by_a_keyword(xp, x):
    a = xp.cumsum(x)
    return numpy.asarray(a=a), a


def as_a_view(xp, x):
    a = xp.cumsum(x)
    view = a[::-1]
    del a
    return numpy.asarray(view), view


def behind_a_view(xp, x):
    a = xp.cumsum(x)
    view = a[10:]
    _computed(a)
    return numpy.asarray([a[:]].pop()), view


def behind_a_reader(xp, x):
    a = xp.cumsum(x)
    float(a[3])
    later = a + 1.0
    return numpy.asarray([a].pop()), later


def popped(xp, x):
    parts = [xp.cumsum(x)]
    float(parts[0][1])
    later = parts[0] + 1.0
    return numpy.asarray(parts.pop()), later


def of_numpys(xp, x):
    theirs = values("f8")
    return numpy.array(xp.asarray(theirs)), xp.asarray(theirs)


def of_a_generator(xp, x):
    kept = []

    def parts():
        kept.append(xp.cumsum(x))
        yield kept[0]

    return numpy.asarray(next(parts())), kept[0]


HANDED = [
    handed_on,
    read_later,
    of_a_property,
    of_a_list,
    by_its_method,
    by_a_keyword,
    as_a_view,
    behind_a_view,
    behind_a_reader,
    popped,
    of_numpys,
    of_a_generator,
]


@pytest.mark.parametrize("small_bytes", [0, 1 << 24])
@pytest.mark.parametrize("program", HANDED, ids=lambda f: f.__name__)
def test_what_numpy_writes_to_what_it_was_handed_reaches_who_has_it(program, small_bytes):
    """As with an array of NumPy's, and nobody else."""
    kept = []
    with np.config.override(small_bytes=small_bytes):
        for xp in (np, numpy):
            x = xp.array(values("f8"))
            handed, found = program(xp, x)
            handed[...] = -1.0
            kept.append(found)
            numpy.testing.assert_array_equal(x, values("f8"))
        numpy.testing.assert_array_equal(*kept)
