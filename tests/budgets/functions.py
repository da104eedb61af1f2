"""Every public function of NumPy's, `np.fft`'s and `np.linalg`'s, and the methods that are no functions, with
arguments that are larger than the budget: `python -m tests.budgets --functions`.

Which calls there are is NumPy's to say: what it takes of small arrays is asked of those in a file, but for
what grows by more than its operands.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy

Given = tuple[tuple[Any, ...], dict[str, Any]]

Arguments = Callable[[Any, Any, Any], Given]
_SOME = numpy.array([3, 1])
_MODES = (
    "constant",
    "edge",
    "linear_ramp",
    "maximum",
    "mean",
    "median",
    "minimum",
    "reflect",
    "symmetric",
    "wrap",
    "empty",
)

ARGUMENTS: dict[str, Arguments] = {
    "x": lambda m, x, line: ((x,), {}),
    "x, axis=0": lambda m, x, line: ((x,), {"axis": 0}),
    "x, axis=1": lambda m, x, line: ((x,), {"axis": 1}),
    "line": lambda m, x, line: ((line,), {}),
    "x.T": lambda m, x, line: ((x.T,), {}),
    "x > .5": lambda m, x, line: ((x > 0.5,), {}),
    "planes, axis=1": lambda m, x, line: ((_planes(x),), {"axis": 1}),
    "planes, axis=0": lambda m, x, line: ((_planes(x),), {"axis": 0}),
    "x, x": lambda m, x, line: ((x, x), {}),
    "line, line": lambda m, x, line: ((line, line), {}),
    "x, 2": lambda m, x, line: ((x, 2), {}),
    "x, 2, 0": lambda m, x, line: ((x, 2, 0), {}),
    "line, 3": lambda m, x, line: ((line, 3), {}),
    "line, few": lambda m, x, line: ((line, numpy.arange(5.0)), {}),
    "x, places, 1": lambda m, x, line: ((x, _SOME, 1), {}),
    "x, places, value, 1": lambda m, x, line: ((x, _SOME, 7.0, 1), {}),
    "line, places, values": lambda m, x, line: ((line, _SOME, 7.0), {}),
    "x > .5, x": lambda m, x, line: ((x > 0.5, x), {}),
    "x, x > .5, value": lambda m, x, line: ((x, x > 0.5, 7.0), {}),
    "x > .5, x, x": lambda m, x, line: ((x > 0.5, x, x), {}),
}
_WITH_NAN: dict[str, Arguments] = {
    "with nan, axis=0": lambda m, x, line: ((m.where(x > 0.5, x, m.nan),), {"axis": 0}),
    "with nan planes, axis=1": lambda m, x, line: ((_planes(m.where(x > 0.5, x, m.nan)),), {"axis": 1}),
}
_JOINED: dict[str, Arguments] = {"[x, x]": lambda m, x, line: (([x, x],), {})}
_BETWEEN: dict[str, Arguments] = {"x + 1, x + 2, 3": lambda m, x, line: ((x + 1, x + 2, 3), {})}
_SHARE: dict[str, Arguments] = {
    "x, .3, axis=0": lambda m, x, line: ((x, 0.3), {"axis": 0}),
    "x, .3, axis=1": lambda m, x, line: ((x, 0.3), {"axis": 1}),
    "line, .3": lambda m, x, line: ((line, 0.3), {}),
}
_ROLLED: dict[str, Arguments] = {
    "line, few": lambda m, x, line: ((line, numpy.arange(5.0)), {}),
    "few, line": lambda m, x, line: ((numpy.arange(5.0), line), {}),
}
_ROLLED_WITHIN: dict[str, Arguments] = {
    **_ROLLED,
    "line, few, same": lambda m, x, line: ((line, numpy.arange(5.0), "same"), {}),
    "line, few, valid": lambda m, x, line: ((line, numpy.arange(5.0), "valid"), {}),
}
_PICKED: dict[str, dict[str, Arguments]] = {
    "select": {"x > .5, x < .2": lambda m, x, line: (([x > 0.5, x < 0.2], [x, 2 * x], 7.0), {})},
    "piecewise": {"x < .5, x > .7": lambda m, x, line: ((x, [x < 0.5, x > 0.7], [1.0, 2.0, 3.0]), {})},
    "lexsort": {"line, line > .5": lambda m, x, line: (((line, line > 0.5),), {})},
    "unstack": {
        "planes": lambda m, x, line: ((_planes(x),), {}),
        "x, axis=1": lambda m, x, line: ((x,), {"axis": 1}),
    },
}
_OF_ONE: dict[str, dict[str, Arguments]] = {
    **dict.fromkeys(("convolve", "correlate"), _ROLLED_WITHIN),
    "polymul": _ROLLED,
    "pad": {f"x, 3, {mode}": lambda m, x, line, mode=mode: ((x, 3, mode), {}) for mode in _MODES},  # type: ignore[misc]
    **{name: _WITH_NAN for name in dir(numpy) if name.startswith("nan") and name != "nan_to_num"},
    **{name: _JOINED for name in dir(numpy) if "stack" in name or name.startswith("conc")},
    **dict.fromkeys(("linspace", "geomspace", "logspace"), _BETWEEN),
    **dict.fromkeys(("quantile", "percentile"), _SHARE),
    **{name: {**_SHARE, **_WITH_NAN} for name in ("nanquantile", "nanpercentile")},
    "histogram": {"x, 20, range": lambda m, x, line: ((x, 20, (0.0, 1.0)), {})},
    "unique": {"line, counts": lambda m, x, line: ((line,), {"return_counts": True})},
    "astype": {"x, float32": lambda m, x, line: ((x, "f4"), {})},
    "reshape": {"x, planes": lambda m, x, line: ((x, (-1, 10)), {})},
    "einsum": {"ij,ij->i": lambda m, x, line: (("ij,ij->i", x, x), {})},
    **_PICKED,
}
"""Arguments that mean something to some functions."""
_ALONE = frozenset(
    [
        *("linspace", "geomspace", "logspace", "quantile", "percentile", "nanquantile", "nanpercentile"),
        *("pad", "convolve", "correlate", "polymul", *_PICKED),
    ]
)
"""Functions that take no others: numbers of an array would be lengths or shares, or all pairs of elements
would be added up."""


def _planes(x: Any) -> Any:
    """Rows in thirteen parts: what an axis in the middle, or a first one of few, is."""
    return x[: len(x) // 13 * 13].reshape(13, -1, x.shape[1])


_NONE = """
apply_along_axis apply_over_axes array2string array_repr array_str base_repr binary_repr block bmat
broadcast common_type data dump dumps fromfile fromfunction frompyfunc fromregex genfromtxt
get_include getbufsize geterr info item load loadtxt may_share_memory memmap mintypecode ndenumerate
ndindex nditer nested_iters poly poly1d polydiv printoptions roots save savetxt savez
savez_compressed set_printoptions setbufsize seterr seterrcall shares_memory show_config
show_runtime test to_device tobytes tofile tolist vectorize
"""
_LEFT = frozenset(_NONE.split())
"""What is no function of arrays or takes elements for arrays, takes functions, makes texts, objects or files
of all elements, or looks at memory; and sums over all pairs of elements."""
_OTHERWISE = frozenset(["sort", "partition", "resize"])
"""Methods that write where the function of their name does not; others are the functions."""
_UFUNCS = frozenset(["add", "exp", "divmod", "frexp", "greater", "logaddexp", "isnan", "matmul", "vecdot"])
"""One for each kind of universal function."""
OPEN = frozenset(
    [
        "argsort",
        "argpartition",
        "partition",
        "empty",
        "empty_like",
        "resize",
        "searchsorted",
        "lexsort",
        "qr",
        "svd",
        "eig",
        "eigh",
        "eigvals",
        "lstsq",
        "svdvals",
        "roots",
        "pinv",
        "polyfit",
        "pad(x, 3, empty)",
    ]
)
"""Functions and calls of whose answers NumPy leaves something open, among equals, in signs, last bits, or
memory that nothing was written to: these have to come."""


UNTRUE = frozenset({"intersect1d(x, x > .5, value)"})
"""Calls that say what is not so, as that there are no duplicates: anything may come of them."""


def is_open(name: str) -> bool:
    """Whether NumPy leaves something open of what a program gives."""
    return name in OPEN | UNTRUE or name.partition("(")[0].rpartition(".")[2] in OPEN


OVER = frozenset(
    {
        "array.sort(x.T)",  # in a copy in memory
        *(f"{name}(x, x > .5, value)" for name in ("intersect1d", "setdiff1d", "setxor1d")),  # not unique
        *(f"{name}(x, places, value, 1)" for name in ("intersect1d", "setdiff1d", "setxor1d")),
        *(
            f"{name}({of})"
            for name in ("unique_all", "unique_inverse")
            for of in ("x", "line", "x.T", "x > .5")
        ),
        *(f"{name}(x.T)" for name in ("fft.irfft", "fft.irfft2", "fft.irfftn")),
        *(f"polyval({of})" for of in ("x > .5, x", "line, few", "line, 3", "line, line", "x, 2", "x, x")),
        *("union1d(x, x)", "isin(line, line)", "isin(x, x)", "fft.hfft(x, axis=0)"),
    }
)
"""What takes longer than others by far, takes more than the budget, or has no answer."""
_GROWTH = 4
"""More than so many times what a function is given, it returns by purpose."""


def program(name: str) -> Callable[[Any, Any, Any], Any]:
    """What a name of `PROGRAMS` stands for, as the tables have theirs."""
    of, said = name.rstrip(")").split("(", 1)
    *room, function = of.split(".")
    arguments = _arguments_of(function)[said]

    def work(m: Any, x: Any, line: Any) -> Any:
        args, keywords = arguments(m, x, line)
        if room == ["array"]:
            found = getattr(args[0], function)(*args[1:], **keywords)
        else:
            found = getattr(getattr(m, room[0]) if room else m, function)(*args, **keywords)
        return args[0] if found is None else found  # what it has written to

    return work


def _arguments_of(function: str) -> dict[str, Arguments]:
    return {**({} if function in _ALONE else ARGUMENTS), **_OF_ONE.get(function, {})}


def _functions() -> Iterator[str]:
    for room, names in (("", dir(numpy)), ("fft.", numpy.fft.__all__), ("linalg.", numpy.linalg.__all__)):
        of = getattr(numpy, room[:-1]) if room else numpy
        for name in sorted(set(names)):
            f = getattr(of, name, None)
            if name.startswith("_") or name in _LEFT or not callable(f) or inspect.isclass(f):
                continue
            if not isinstance(f, numpy.ufunc) or name in _UFUNCS:
                yield room + name
    for name in dir(numpy.ndarray):
        is_method = not name.startswith("_") and callable(getattr(numpy.ndarray, name))
        if is_method and name not in _LEFT and (name in _OTHERWISE or not hasattr(numpy, name)):
            yield f"array.{name}"


def _is_taken(name: str) -> bool:
    """Whether NumPy takes such arguments, and returns in proportion to them."""
    sizes = []
    for rows in (26, 52):
        x = numpy.random.default_rng(0).random((rows, 10))
        try:
            found = program(name)(numpy, x, x.reshape(-1).copy())
        except Exception:  # noqa: BLE001 - NumPy's, of what it does not take
            return False
        values = found if isinstance(found, (tuple, list)) else [found]
        if not all(isinstance(v, (numpy.ndarray, numpy.generic, bool, int, float, complex)) for v in values):
            return False
        sizes.append(sum(numpy.asarray(v).nbytes for v in values[:3]))
    return sizes[1] <= max(_GROWTH * x.nbytes, 1000) and sizes[1] <= 2.5 * sizes[0] + 100


@cache
def programs() -> tuple[str, ...]:
    """The names of all that is asked: `linalg.norm(x, axis=0)`, `array.argmax(line)`."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        names = (f"{f}({said})" for f in _functions() for said in _arguments_of(f.split(".")[-1]))
        return tuple(filter(_is_taken, names))
