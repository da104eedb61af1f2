"""What small arrays are asked by the million, as a table: statements x dtypes x layouts x owners of memory;
the statements are in `plain_statements.py`.

Run as a program it asks a part of the table and writes down what was answered, in a process that was told
whether to do without what is compiled; `test_quick.py` compares.
"""

from __future__ import annotations

import pickle
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy

import spartan_ng
from spartan_ng.api.core import quick
from tests.api.plain_statements import STATEMENTS


class Index:
    """An object that is an integer to whoever indexes."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __index__(self) -> int:
        return self.n

    def __repr__(self) -> str:  # without an address
        return f"Index({self.n})"


class Weird:
    """An operand that knows what to do with arrays."""

    __array_ufunc__ = None

    def __add__(self, other: Any) -> str:
        return "added"

    def __repr__(self) -> str:
        return "Weird()"

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __matmul__ = __rmatmul__ = __add__


class Told:
    """An operand whose class is told of NumPy's functions."""

    def __repr__(self) -> str:
        return "Told()"

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> str:
        return f"{function.__name__} {method} {len(inputs)} {sorted(keywords)}"


NUMBERS = ("?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", ">f8", ">i4")
DTYPES = (*NUMBERS, "f8", "f8", "i8", "M8[D]", "m8[s]", "S3", "U2", "O", "i4,f8")


def elements(dtype: str, n: int) -> numpy.ndarray:
    """So many different elements, as far as there are."""
    counted = numpy.arange(n) % 7 - (0 if numpy.dtype(dtype).kind in "u?" else 2)
    if dtype == "O":
        return numpy.array([*counted.tolist()[:-2], "text", [1, 2]][:n], object)
    if dtype == "i4,f8":
        found = numpy.zeros(n, dtype)
        found["f0"], found["f1"] = counted, counted / 2
        return found
    if dtype in ("M8[D]", "m8[s]"):
        return counted.astype("i8").astype(dtype)
    return counted.astype("U2").astype(dtype) if dtype in ("S3", "U2") else counted.astype(dtype)


LAYOUTS: dict[str, Callable[[str], numpy.ndarray]] = {
    "line": lambda d: elements(d, 6),
    "rows": lambda d: elements(d, 12).reshape(3, 4),
    "square": lambda d: elements(d, 9).reshape(3, 3),
    "columns": lambda d: numpy.asfortranarray(elements(d, 12).reshape(3, 4)),
    "cube": lambda d: elements(d, 24).reshape(2, 3, 4),
    "strided": lambda d: elements(d, 20)[::-3],
    "cut": lambda d: elements(d, 30).reshape(5, 6)[1:4, ::2],
    "one": lambda d: elements(d, 3)[2:].reshape(()),
    "nothing": lambda d: elements(d, 0),
    "no rows": lambda d: elements(d, 0).reshape(0, 3),
}


def lazily(np: Any) -> Any:
    """With everything lazy, where anything can be."""
    return np.config.override(small_bytes=0) if np is spartan_ng else nullcontext()


def _kept(np: Any, x: Any) -> Any:
    return np.array(x, copy=True, order="K")


def _rows(np: Any, x: Any) -> Any:
    return np.array(numpy.stack([x, x[..., ::-1] if x.ndim else x]))


def _read_only(np: Any, x: Any) -> Any:
    a = _kept(np, x)
    a.setflags(write=False)
    return a


def _pending(np: Any, x: Any) -> Any:
    with lazily(np):
        return _kept(np, x).copy()


def _number(np: Any, x: Any) -> Any:
    if not x.size or x.dtype.kind not in "biufcmM":
        return _kept(np, x)
    with lazily(np):
        return np.max(_kept(np, x))


def _mapped(mode: str) -> Callable[[Any, Any], Any]:
    def load(np: Any, x: Any) -> Any:
        if x.dtype.hasobject or not x.size:
            return _kept(np, x)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.npy"
            numpy.save(path, x)
            loaded = np.load(path, mmap_mode=mode)
            return loaded if np is spartan_ng else numpy.asarray(loaded)

    return load


def _lent(np: Any, x: Any) -> Any:
    if x.dtype.hasobject or not x.size:
        return _kept(np, x)
    return np.ndarray(x.shape, x.dtype, bytearray(x.tobytes()))


def _frozen(np: Any, x: Any) -> Any:
    found = pickle.loads(pickle.dumps(_kept(np, x).view()))
    return found[...]


def _standard(np: Any, x: Any) -> Any:
    found = _kept(np, x)
    return (
        found.__array_namespace__().asarray(found) if np is spartan_ng and x.dtype.kind in "biufc" else found
    )


OWNERS: dict[str, Callable[[Any, Any], Any]] = {
    "own": _kept,
    "own again": _kept,
    "view": lambda np, x: _rows(np, x)[0, ...],
    "view of a view": lambda np, x: _rows(np, x)[:][1, ...],
    "read-only": _read_only,
    "pending": _pending,
    "view of what is pending": lambda np, x: _pending(np, x)[...],
    "number": _number,
    "mapped": _mapped("r+"),
    "mapped to read": _mapped("r"),
    "lent": _lent,
    "blank": lambda np, x: np.zeros(x.shape, x.dtype),
    "broadcast": lambda np, x: np.broadcast_to(_kept(np, x), x.shape),
    "turned": lambda np, x: _kept(np, x.T).T,
    "unpickled": _frozen,
    "standard": _standard,
}
"""Who has the memory: not that of `numpy.asarray`, which NumPy shares and we copy."""


SMALL = (None, None, None, 0, 64, 200)
"""Options `small_bytes`; None for the default."""
Case = tuple[str, str, str, str, int | None]


def drawn(seed: int, n: int) -> list[Case]:
    """So many cases of the table."""
    choose = random.Random(seed).choice
    return [
        (choose(STATEMENTS), choose(DTYPES), choose([*LAYOUTS]), choose([*OWNERS]), choose(SMALL))
        for _ in range(n)
    ]


def is_array(o: Any) -> bool:
    return isinstance(o, numpy.ndarray | spartan_ng.ndarray) and not isinstance(o, numpy.generic)


@contextmanager
def _quietly() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def told(o: Any, whole: bool) -> Any:
    """What there is to say of an object; with `whole`, also of its memory and its class."""
    if isinstance(o, tuple | list):
        return (type(o).__name__, [told(part, whole) for part in o])
    if is_array(o) or isinstance(o, numpy.generic) or (isinstance(o, bool) and not whole):
        plain = numpy.asarray(o.compute() if hasattr(o, "compute") else o)
        seen = (str(plain.dtype), plain.shape, repr(plain.tolist()))
        if not whole:
            return seen
        strides = o.strides if plain.size else ()  # without elements there is nothing to step to
        flags = (strides, o.flags.c_contiguous, o.flags.f_contiguous, o.flags.owndata, o.flags.writeable)
        return (f"{type(o).__module__}.{type(o).__name__}", flags if is_array(o) else (), seen)
    return (type(o).__name__, repr(o) if isinstance(o, int | float | complex | str | None) else "")


def said_of(o: Any, whole: bool) -> Any:
    """The same, or the error where elements cannot be computed."""
    try:
        with _quietly():
            return told(o, whole)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return ("raises", type(error).__name__, str(error))


def _chain(error: BaseException) -> list[tuple[str, str]]:
    found = []
    also: BaseException | None = error
    while also is not None:
        found.append((type(also).__name__, str(also)))
        also = also.__cause__ or also.__context__
    return found


def answer(np: Any, case: Case, whole: bool) -> dict[str, Any]:
    """What a statement gives, says and leaves behind."""
    statement, dtype, layout, owner, small = case
    x = LAYOUTS[layout](dtype)
    a = OWNERS[owner](np, x)
    names: dict[str, Any] = {
        "np": np,
        "numpy": numpy,
        "spartan_ng": spartan_ng,
        "lazily": lazily,
        "Index": Index,
        "Weird": Weird,
        "Told": Told,
        "a": a,
        "b": np.array(x[..., ::-1] if x.ndim else x),
        "b0": np.array(x[:1] if x.ndim else x),
        "i": np.array([0, 1]),
        "m": np.array([True, False, True]),
        "n": np.array(1),
        "t": np.array([[0], [1]]),
        "y": x[..., ::-1].copy() if x.ndim else x.copy(),
        "x": numpy.float64(2.5),
        "s": np.sum(np.array([0.5, 1.5])),
        "c": np.array([1 + 1j, 2, 3]),
    }
    with lazily(np):
        names["p"] = np.array([1.0, 2.0, 3.0]) + 1
    first = a[...] if is_array(a) else a  # another array of the memory, which sees what is written
    found: dict[str, Any] = {}
    override = (
        np.config.override(small_bytes=small) if np is spartan_ng and small is not None else nullcontext()
    )
    with warnings.catch_warnings(record=True) as warned, override:
        warnings.simplefilter("always")
        try:
            exec(compile(statement, "statement", "exec"), names)
        except Exception as error:  # noqa: BLE001
            found["error"] = type(error)
            found["said"] = _chain(error) if whole else None
    found["warned"] = sorted({(w.category.__name__, str(w.message)) for w in warned})
    result = names.get("r")
    found["result"] = said_of(result, whole)
    found["same"] = result is names.get("a")
    found["left"] = said_of(names["a"], whole) if "a" in names else None
    found["seen"] = said_of(first, whole)
    if whole and is_array(result) and is_array(a) and result is not a:
        found["shared"] = bool(np.shares_memory(result, a)) if hasattr(result, "_peek") else None
    return found


def main(path: str, seed: int, n: int) -> None:
    """Ask, and write down whether anything was compiled, and each case's answer and NumPy's."""
    with _quietly():
        cases = drawn(seed, n)
        answers = [answer(spartan_ng, case, whole=True) for case in cases]
    Path(path).write_bytes(pickle.dumps((quick.IS_COMPILED, answers)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
