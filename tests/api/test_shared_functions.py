"""Universal functions of larger arrays are shared by threads: that can be told by nothing but the time."""

from __future__ import annotations

import os
import random
import threading
import warnings
from functools import partial

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.api.elementwise import ufuncs
from tests.api.test_quick import python
from tests.api.test_small_calls import calls_of_ours

compiled = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")

DTYPES = "fdFDilB?"
SHAPES = [
    ((40_000,), (40_000,)),
    ((40_000,), ()),
    ((40_000,), (1,)),
    ((150, 300), (150, 300)),
    ((150, 300), (300,)),
    ((150, 1), (1, 300)),
    ((30, 40, 38), (40, 38)),
    ((30, 40, 38), (30, 1, 38)),
    ((1, 40_000), (2, 1)),
    ((3, 4, 5, 600), (3, 1, 5, 1)),
    ((8, 5, 15, 1), (5, 15, 8)),
    ((90, 7), (90, 1)),
    ((700, 3), (3,)),
]
LAYOUTS = {
    "plain": lambda a: a,
    "inner": lambda a: a[..., 1:-1] if a.ndim and a.shape[-1] > 2 else a,
    "lower": lambda a: a[1:] if a.ndim and a.shape[0] > 1 else a,
    "every second": lambda a: numpy.repeat(a, 2, -1)[..., ::2] if a.ndim else a,
    "backwards": lambda a: a[..., ::-1] if a.ndim else a,
    "turned": lambda a: numpy.asfortranarray(a),
    "stretched": lambda a: numpy.broadcast_to(a[..., :1], a.shape) if a.ndim else a,
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
}
NUMBERS = [2, 0.5, -3, 1e300, 1 << 40, 1.5 + 2j, True, numpy.float64(0.5), numpy.float32(3), numpy.int64(7)]
OF_ONE, OF_TWO = (
    sorted((f for f in ufuncs.OURS if (f.nin, f.nout) == (n, 1)), key=lambda f: f.__name__) for n in (1, 2)
)


def elements(shape, dtype, seed):
    """Elements of some kind, special ones among them."""
    rng = numpy.random.default_rng(seed)
    if dtype in "hilB?":
        return rng.integers(0, 2 if dtype == "?" else 60, shape).astype(dtype)
    a = rng.standard_normal(shape) * 3
    if dtype in "FD":
        a = a + 1j * rng.standard_normal(shape)
    a = a.astype(dtype)
    if seed % 3 == 0 and a.size > 9:
        a.reshape(-1)[:: a.size // 7] = rng.choice([0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1e30])
    return a


def told(call):
    """What a call gives, to the bit and as it lies, or its error's class, and its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = numpy.asarray(call())  # what has yet to be computed warns there
        except (TypeError, ValueError, OverflowError) as error:
            return type(error), None
    lies = tuple(s for s, n in zip(found.strides, found.shape, strict=True) if n > 1)
    return (found.dtype, found.shape, lies, found.tobytes()), sorted(str(w.message) for w in said)


def pairs(draw):
    """Two operands, now and then the second one a number."""
    one, two = draw.choice(SHAPES)
    if draw.random() < 0.5:
        one, two = two, one
    dtype, seed = draw.choice(DTYPES), draw.randrange(1000)
    other = dtype if draw.random() < 0.8 else draw.choice(DTYPES)
    lay = [LAYOUTS[draw.choice(list(LAYOUTS))] if draw.random() < 0.4 else LAYOUTS["plain"] for _ in "ab"]
    a, b = lay[0](elements(one, dtype, seed)), elements(two, other, seed + 1)
    if draw.random() < 0.5:
        lay[1] = lay[0] if a.shape == b.shape else lay[1]
    b = lay[1](b)
    if a.ndim and draw.random() < 0.2:
        b = draw.choice(NUMBERS)
    return (b, a) if draw.random() < 0.2 else (a, b)


@compiled
def test_answers_are_numpys_to_the_bit(request):
    """Values, dtypes, layouts, errors and warnings, of arrays alike and unlike."""
    draw = random.Random(request.config.option.seed)
    for _ in range(250):
        function = draw.choice(OF_ONE + 2 * OF_TWO)
        given = pairs(draw)
        if function.nin == 1:  # of complex numbers alone, NumPy's last bits depend on where they lie
            given = tuple(x for x in given if isinstance(x, numpy.ndarray) and x.ndim)[:1]
        expected = told(lambda f=function, x=given: f(*x))
        assert told(lambda f=function, x=given: quick.applied(f, x)) == expected, (function, given)


@compiled
@pytest.mark.parametrize("dtype", "fdi")
@pytest.mark.parametrize("shape", [(6, 5), (90, 7), (5, 1), (3, 1, 64), (4, 3, 65)])
def test_every_pair_of_layouts_of_short_lines(shape, dtype):
    """Also of two operands that both stand while the result goes on."""
    a, b = (elements(shape, dtype, seed) for seed in (1, 2))
    others = [lay(x) for lay in LAYOUTS.values() for x in (b, b[..., :1], b[0])]
    for one in (lay(a) for lay in LAYOUTS.values()):
        for other in (*others, 2, 0.5, numpy.float64(0.5)):
            try:
                numpy.broadcast_shapes(one.shape, numpy.shape(other))
            except ValueError:
                continue
            for function in (numpy.add, numpy.subtract, numpy.multiply, numpy.divide, numpy.maximum):
                for given in ((one, other), (other, one)):
                    expected = told(lambda f=function, x=given: f(*x))
                    ours = told(lambda f=function, x=given: quick.applied(f, x))
                    assert ours == expected, (function, given)


@compiled
@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize(
    "shapes", [((1,), (1,)), ((1, 1), (1, 1)), ((1,), (1, 1)), ((1, 1, 1), ()), ((2, 1), (1, 1))]
)
def test_one_complex_number_is_multiplied_in_numpys_way(shapes, dtype):
    """Its last bits hang on the steps of axes that nobody goes along."""
    texts = ("x * y", "x * x", "numpy.square(x)", "x / y", "x * 2.5", "x * y + x", "x - y * y", "abs(x * y)")
    for seed in (s for s in range(1, 30) if s % 3):  # others have special values
        x, y = (elements(shape, dtype, seed + i) for i, shape in enumerate(shapes))
        for lay in LAYOUTS.values():
            a, b = lay(numpy.asarray(x)), lay(numpy.asarray(y))
            for f, given in ((numpy.multiply, (a, b)), (numpy.square, (a,)), (numpy.multiply, (b, a))):
                expected = told(lambda f=f, g=given: f(*g))
                assert told(lambda f=f, g=given: quick.applied(f, g)) == expected, (f, given)
        for text in texts:
            ours, theirs = (
                told(partial(eval, text, {"numpy": numpy, "x": xp.array(x), "y": xp.array(y)}))
                for xp in (np, numpy)
            )
            assert ours == theirs, (text, x, y)


@compiled
def test_places_are_written_as_numpy_writes_them(request):
    """Also where operands lie over the place, or the place over itself."""
    draw = random.Random(request.config.option.seed)
    for _ in range(150):
        function = draw.choice([numpy.add, numpy.multiply, numpy.maximum, numpy.less, numpy.arctan2])
        memory = elements((200, 310), draw.choice("fd"), draw.randrange(1000))
        keys = [
            (slice(i, i + 150), slice(j, j + 300))
            for i, j in ((draw.randrange(3), draw.randrange(3)) for _ in "abc")
        ]
        if draw.random() < 0.3:
            keys = keys[:1] * 3
        is_apart = draw.random() < 0.3
        if draw.random() < 0.2:
            memory = numpy.broadcast_to(memory[:, :1], memory.shape) if is_apart else memory.T[:190].T
        found = []
        for call in (lambda f, x, out: f(*x, out=out), quick.applied):
            own = memory.copy("K")
            place = numpy.zeros_like(own) if is_apart else own
            where = tuple(slice(0, n) for n in own[keys[0]].shape) if is_apart else keys[2]
            out = place[where]
            operands = tuple(own[k] for k in keys[:2])
            answer = told(lambda f=function, c=call, x=operands, o=out: c(f, x, o))
            found.append((answer, place.tobytes()))
        assert found[0] == found[1], (function, keys, memory.strides)


@compiled
def test_elements_far_apart_are_written_as_numpy_writes_them(request):
    """Planes of the last axis, and columns, from others of the same array, too."""
    draw = random.Random(request.config.option.seed)
    for _ in range(60):
        memory = elements((120, 110, 9), draw.choice(DTYPES), draw.randrange(1000))
        key = (Ellipsis, draw.randrange(9)) if draw.random() < 0.5 else (slice(None), draw.randrange(110))
        value = draw.choice([memory[key].copy(), memory[..., 0], memory[:, 3], memory[:, 4, :1], memory[1]])
        found = []
        for xp in (numpy, np):
            own = xp.array(memory)
            try:
                own[key] = xp.array(value)
                own[key] = own[..., 5] if key[0] is Ellipsis else own[:, 5]
            except ValueError:
                pass
            found.append(numpy.asarray(own).tobytes())
        assert found[0] == found[1], (memory.dtype, key, value.shape)


@compiled
def test_powers_are_numpys_to_the_bit(request):
    """Also those that NumPy's operator knows other ways for."""
    draw = random.Random(request.config.option.seed)
    for exponent in (2, 2.0, 0.5, 1, 1.0, 0, -1, -1.0, 3, 1.5, -2.5, 1e300, numpy.float64(1.5)):
        for shape in ((20_000,), (150, 300), (90_000,)):
            a = elements(shape, draw.choice("fd"), draw.randrange(1000))
            answers = (told(lambda a=a, n=exponent: a**n), told(lambda a=a, n=exponent: np.array(a) ** n))
            # NumPy squares for 2 and, in its loop of powers, for 2.0: the same bits under another name.
            ours, expected = (
                (value, [w.replace("square", "power") for w in said]) for value, said in answers
            )
            assert ours == expected, (a.dtype, shape, exponent)


@compiled
@pytest.mark.parametrize("how", ["ignore", "warn", "raise", "call"])
def test_errors_of_elements_are_told_as_numpy_tells_them(how):
    """Those of a helper's elements, too: a bad one in each piece, in the first alone and in the last."""
    n = 60_000
    for bad in (slice(None, None, 1_000), slice(0, 1), slice(n - 1, n)):
        for statement in ("1 / x", "x / x", "np.log(x)", "np.exp(800 * (1 - x))", "x.__itruediv__(x)"):
            found = []
            for module in (numpy, np):
                called: list[object] = []
                x = module.ones(n)
                x[bad] = 0.0
                with (
                    warnings.catch_warnings(record=True) as said,
                    numpy.errstate(all=how, call=lambda *a, c=called: c.append(a)),
                ):
                    warnings.simplefilter("always")
                    try:
                        value: object = numpy.asarray(eval(statement, {"np": module, "x": x})).tobytes()
                    except FloatingPointError as error:
                        value = str(error)
                found.append((value, [str(w.message) for w in said], called))
            assert found[0] == found[1], statement


@pytest.mark.slow
@compiled
def test_threads_of_the_program_do_not_disturb_each_other():
    x = numpy.random.default_rng(0).random(50_000)
    wrong = []

    def work(k):
        a = np.array(x + k)
        for _ in range(60):
            found = numpy.asarray(np.sqrt(a) * a + k)
            wrong.extend([] if numpy.array_equal(found, numpy.sqrt(x + k) * (x + k) + k) else [k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_a_fork_has_helpers_of_its_own():
    """Those of the parent are not there: the child neither waits for them nor finds their locks held."""
    program = """
import os, threading, warnings
import numpy, spartan_ng as np
warnings.simplefilter("ignore")
x = np.array(numpy.random.default_rng(0).random(300_000))
over = False
def work():
    while not over:
        np.sqrt(x)
worker = threading.Thread(target=work)
worker.start()
for _ in range(8):
    np.exp(x)
    child = os.fork()
    if not child:
        twice = [numpy.asarray(x * 2.0) for _ in range(20)]
        os._exit(0 if all(numpy.array_equal(t, 2 * numpy.asarray(x)) for t in twice) else 1)
    assert os.waitpid(child, 0)[1] == 0
over = True
worker.join()
print("right")
"""
    assert python("-c", program).strip() == "right"


@pytest.mark.slow
@compiled
def test_one_thread_is_one_thread():
    """Nobody helps where the user wants one thread, or may use one processor."""
    program = """
import os
import numpy, spartan_ng as np
from pathlib import Path
def threads():
    return len(list(Path("/proc/self/task").iterdir()))
x = np.array(numpy.ones(300_000))
before = threads()
np.config.threads = 1
y = x + x
assert threads() == before
np.config.threads = None
y = x + x
print(threads() - before, min(7, len(os.sched_getaffinity(0)) - 1))
"""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("nobody says how many threads there are")
    started, wanted = python("-c", program).split()
    assert started == wanted


@pytest.mark.slow
@compiled
def test_signals_are_for_the_program():
    """A helper takes none: one that is sent to the process wakes the thread that sleeps."""
    program = """
import os, signal
import numpy, spartan_ng as np
x = np.array(numpy.ones(300_000))
before = set(os.listdir("/proc/self/task"))
y = x + x
for helper in set(os.listdir("/proc/self/task")) - before:
    lines = open(f"/proc/self/task/{helper}/status").read().splitlines()
    blocked = int(next(line.split()[1] for line in lines if line.startswith("SigBlk")), 16)
    of_programs = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
    assert all(blocked >> n - 1 & 1 for n in of_programs), hex(blocked)
"""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("nobody says what threads there are")
    python("-c", program)


# --- elements where a mask is true -------------------------------------------------------------------


@compiled
def test_masks_select_what_they_select_in_numpy(request):
    """Of all dtypes and layouts, with few truths, many, and truths that are neither 0 nor 1."""
    draw = random.Random(request.config.option.seed)
    for _ in range(120):
        shape = draw.choice([(5_000,), (40_000,), (100_003,), (200, 300), (3, 50, 301), (7,)])
        seed = draw.randrange(1000)
        rng = numpy.random.default_rng(seed)
        a = elements(shape, draw.choice("fdFDilB?hg"), seed) if draw.random() < 0.9 else rng.random(shape)
        a = LAYOUTS[draw.choice(list(LAYOUTS))](a) if draw.random() < 0.3 else a
        mask = rng.random(a.shape) < draw.choice([0, 1e-4, 0.1, 0.5, 0.9, 1])
        if draw.random() < 0.2:
            mask = numpy.sort(mask, axis=None).reshape(mask.shape)
        if draw.random() < 0.2:
            mask = (2 * mask.astype("u1")).view(bool)
        if draw.random() < 0.2:
            mask = numpy.asfortranarray(mask)
        expected = told(lambda x=a, m=mask: x[m])
        assert told(lambda x=a, m=mask: quick.selected(x, m)) == expected
        assert told(lambda x=a, m=mask: np.array(x)[np.array(m)]) == expected
    wrong = (numpy.arange(9_000.0), numpy.ones(9_001, bool)), (numpy.ones((90, 90)), numpy.ones(91, bool))
    for a, key in wrong:
        with pytest.raises(IndexError):
            quick.selected(a, key)
        with pytest.raises(IndexError):
            np.array(a)[np.array(key)]


@compiled
def test_selected_elements_are_the_programs_own():
    a = np.arange(50_000.0)
    part = a[a > 100]
    part[:] = 0
    assert float(a.sum()) == 49_999 * 25_000
    assert part.flags.owndata
    assert part.flags.writeable


ANSWERED = (
    *("a * b", "a + 1", "2 - a", "-a", "abs(a)", "a < b", "a == b", "a ** 2", "a ** b", "np.exp(a)"),
    *("np.hypot(a, b)", "m.T * 2", "m.T + m.T", "m * m[0]"),
)


@compiled
@pytest.mark.parametrize("statement", ANSWERED)
def test_no_python_stands_in_between_however_large_small_arrays_are(statement):
    """Up to `config.small_bytes`: NumPy does it at once in any case."""
    a, m = np.array(numpy.linspace(1, 2, 60_000)), np.array(elements((200, 300), "d", 1))
    assert calls_of_ours(statement, {"np": np, "a": a, "b": a * 0.5, "m": m}) == []


@compiled
def test_what_lies_turned_stays_turned():
    """As NumPy keeps it: what is made of it is written over where it is a temporary, and owns its memory."""
    m = elements((170, 130), "d", 5)
    ours = np.array(m)
    for ask in (
        lambda x: x.T * 2 + 1,
        lambda x: (x.T - 1) * x.T,
        lambda x: numpy.negative(x.T) if x is m else np.negative(x.T),
    ):
        found, expected = ask(ours), ask(m)
        assert found.tolist() == expected.tolist()
        assert (found.strides, found.flags.f_contiguous, found.flags.c_contiguous) == (
            expected.strides,
            expected.flags.f_contiguous,
            expected.flags.c_contiguous,
        )
        assert found.base is None
        assert found.flags.owndata
    ours.T[...] += 1
    target = ours.T
    target *= 2
    assert numpy.asarray(ours).tolist() == ((m + 1) * 2).tolist()
