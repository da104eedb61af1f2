"""What universal functions say of shapes and dtypes that do not fit: outputs', masks' and asked ones.

Several things may be wrong at once: NumPy looks at the mask's dtype first, then at dtypes, then at shapes.
"""

from __future__ import annotations

import random
import warnings

import numpy
import pytest

import spartan_ng as np
from tests.sampling import part

_TWO = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "true_divide",
    "floor_divide",
    "power",
    "arctan2",
    "greater",
]
_OTHERS = ["logical_and", "bitwise_and", "left_shift", "negative", "sqrt", "exp", "invert", "floor"]
NAMES = [*_TWO, *_OTHERS, "divmod", "modf", "frexp"]
SHAPES = [(3,), (2,), (2, 3), (3, 2), (), (0,), (1,)]
DTYPES = ["?", "i1", "u8", "f4", "f8", "c16"]


def _drawn(rng):
    """A function, what it is given as arguments for `ones`, and its keywords."""
    function = getattr(numpy, rng.choice(NAMES))
    ones = [(rng.choice(SHAPES), rng.choice(DTYPES)) for _ in range(function.nargs)]
    keywords = {}
    if rng.random() < 0.4:
        keywords["where"] = (rng.choice(SHAPES), rng.choice(["?", "?", "?", "i8"]))
    if rng.random() < 0.3:
        keywords["casting"] = rng.choice(["no", "safe", "unsafe", "same_kind"])
    if rng.random() < 0.3:
        keywords["dtype"] = rng.choice(DTYPES)
    return function, ones, keywords


def _outcome(xp, function, ones, keywords):
    operands = [xp.array(numpy.ones(*o)) for o in ones]
    keywords = dict(keywords)
    if "where" in keywords:
        keywords["where"] = xp.array(numpy.ones(*keywords["where"]))
    out = tuple(operands[function.nin :])
    try:
        getattr(xp, function.__name__)(*operands[: function.nin], out=out, **keywords)
    except Exception as error:  # noqa: BLE001 - its type is what is asked
        return error
    return [(a.shape, a.dtype, numpy.asarray(a).tolist()) for a in out]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_outputs_take_or_refuse_what_numpys_do(mode):
    first = random.randrange(1 << 31)
    for seed in range(first, first + part(8000)):
        drawn = _drawn(random.Random(seed))
        theirs, ours = (_outcome(xp, *drawn) for xp in (numpy, np))
        if isinstance(theirs, Exception):
            kind = TypeError if isinstance(theirs, TypeError) else type(theirs)
            assert isinstance(ours, kind), (seed, drawn, theirs, ours)
        else:
            assert ours == theirs, (seed, drawn)


READ_ONLY = [
    "np.multiply(d, f, out=d)",
    "np.multiply(d, f, out=d, where=d > 0)",
    "np.multiply(d, np.ones(4), out=d)",
    "np.negative(f + 0j, out=d)",
    "np.modf(f, out=(d, None))",
    "np.divmod(f, 2, out=(d, d))",
    "np.matmul(m * 1.5, f, out=d)",
    "np.add.reduce(m * 1.5, axis=0, out=d)",
    "np.add.accumulate(f * 1.5, out=d)",
    "np.max(m, axis=7, out=d)",
    "np.argmax(m, axis=0, out=d)",
    "np.ptp(m * 1.5, axis=0, out=d)",
    "np.clip(f, 0, 1, out=d)",
    "np.round(f, 1, out=d)",
    "np.take(f, [0, 1, 2], out=d)",
    "np.concatenate([f], out=d)",
    "np.put(d, [], [1])",
    "np.put(d, [0], [])",
    "np.place(d, d > 99, [1])",
    "np.place(d, d > 99, [])",
    "np.putmask(d, d > 99, 1)",
    "np.copyto(d, 1, where=False)",
    "d.fill(1)",
    "d.sort()",
    "d.partition(0)",
]


@pytest.mark.parametrize("statement", READ_ONLY)
def test_that_an_array_is_read_only_is_said_first(mode, statement):
    for xp in (numpy, np):
        m = xp.ones((3, 3), "u1")
        names = {"np": xp, "m": m, "d": m.diagonal(), "f": xp.ones(3)}
        with pytest.raises(ValueError, match="read-only"):
            exec(statement, names)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "cumulative_sum", "add.accumulate"])
@pytest.mark.parametrize("axis", [0, 1, -3, None, (), "a", 1.5])
@pytest.mark.parametrize("out", ["read-only", "long", "a list"])
def test_scans_look_at_the_axis_when_numpys_do(mode, name, axis, out):
    """Two mistakes at once: NumPy's functions look at the axis before the place, its `accumulate` after."""
    if out == "a list" and name == "cumulative_sum":
        pytest.skip("NumPy 2.4 crashes")
    said = []
    for xp in (numpy, np):
        x = xp.ones(4) if axis == 1 else xp.ones((3, 4))
        array = xp.ones((9, 2) if out == "long" else x.shape)
        array.flags.writeable = out != "read-only"
        place = [1.0] if out == "a list" else array
        function = xp.add.accumulate if "." in name else getattr(xp, name)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is what is asked
            function(x, axis=axis, out=place)
        said.append(caught.value)
    assert isinstance(said[1], type(said[0])), said


TOLD = [
    "divide",
    "floor_divide",
    "remainder",
    "log",
    "sqrt",
    "power",
    "divmod",
    "arctanh",
    "reciprocal",
    "fmod",
]


@pytest.mark.parametrize("setting", ["ignore", "warn", "raise"])
@pytest.mark.parametrize("name", TOLD)
def test_what_is_refused_is_not_computed(name, setting):
    """Outputs that do not fit are refused before anything tells of a division by zero."""
    said = []
    for namespace in (np, numpy):
        for shape in ((4, 1), (1,), (3, 4, 2), (4, 2)):
            function = getattr(namespace, name)
            operands = [namespace.full((4, 2), -1.0), namespace.zeros((4, 2))][-function.nin :]
            out = tuple(namespace.ones(shape) for _ in range(function.nout))
            with warnings.catch_warnings(record=True) as told, numpy.errstate(all=setting):
                warnings.simplefilter("always")
                try:
                    function(*operands, out=out)
                    ended: type[BaseException] | None = None
                except (ValueError, FloatingPointError) as error:
                    ended = ValueError if isinstance(error, ValueError) else FloatingPointError
            said.append((shape, ended, sorted(str(w.message) for w in told)))
    assert said[:4] == said[4:]
