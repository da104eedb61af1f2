"""Which calls NumPy answers at once, as a table: for each, the least `config.small_bytes` at which it does.

Run as a program it prints the table, of programs that run in this process and of those that run elsewhere.
"""

from __future__ import annotations

import copy
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import scipy.sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core.handle import Handle
from tests.test_programs import running_on

MOST = 1 << 25
"""More bytes than any of the operands and the results has."""
NEVER = -1
"""Where no threshold has a call answered at once."""
CALLS = """
a + b  # 19200
a + c  # 9920
a - 1.5  # 9600
-a  # 9600
abs(a)  # 9600
a ** 2  # 9600
a ** 0.3  # 9600
a ** b  # 19200
a @ b.T  # 19200
a @ w  # 9601
w @ w  # 241
a[:, :2] @ b[:, :2].T  # 12800
a @ e.T  # 1
np.matmul(a, b.T)  # 19200
np.dot(a, b.T)  # 19200
np.matmul(a, b.T, out=np.zeros((40, 40)))  # 19200
np.inner(a, b)  # 19200
np.vdot(a, b)  # 9601
np.matvec(a, w)  # 9601
s @ w  # 3072
s @ b.T  # 12800
x[:40] @ s  # 3072
s.T @ x[:40]  # 3072
np.outer(w, w)  # 481
np.kron(w, w)  # 481
np.einsum("ij,ij->i", a, b)  # 19200
np.einsum("ij,kj->ik", a, b)  # 19200
np.einsum("i,j->ij", w, w)  # 480
np.tensordot(a, b.T, 1)  # 19200
np.linalg.norm(a)  # 1, 9600
np.linalg.norm(a, axis=1)  # 9600
np.linalg.norm(i)  # 240
np.linalg.inv(a[:30])  # 0, 7200
np.linalg.multi_dot([a, b.T, a])  # 28800
np.trace(a)  # 240
np.eye(20)  # 3200
np.eye(20, 10, 1, dtype=numpy.float32)  # 800
np.tri(9)  # 648
np.diag(w)  # 1, 7200
np.zeros(20)  # 1, 160
np.zeros((4, 5), complex)  # 1, 320
np.zeros(0)  # 1
np.zeros((4, 5), [("x", float)])  # 1, 160
np.zeros(numpy.array([4, 5]))  # 1, 160
np.empty((4, 5), numpy.int8)  # 1, 20
np.ones(20)  # 160
np.ones((4, 5), numpy.int8)  # 20
np.full((4, 5), 3)  # 160
np.full(0, 3)  # 1
np.full((4, 5), 3, numpy.float32)  # 80
np.zeros_like(a)  # 9600
np.ones_like(a)  # 9600
np.full_like(a, 2)  # 9600
np.array(n)  # 0
np.array(n, order="F")  # 9600
np.array([a, b])  # 19200
np.array([w] * 3)  # 720
np.array(a)  # 9600
np.array([1.0] * 70)  # 0
np.asarray(n)  # 0
np.array(a, numpy.float32)  # 9600
np.copy(a)  # 9600
a.copy()  # 9600
a.T.copy("F")  # 9600
copy.copy(a)  # 9600
a.astype(numpy.float32)  # 9600
np.astype(a, numpy.float32)  # 9600
i.astype(float)  # 240
np.arange(20)  # 160
np.arange(2.0, 19.5, 0.5)  # 280
np.arange(20, 0, -3)  # 54
np.arange(0)  # 0
np.arange(numpy.int16(20))  # 160
np.arange(20, dtype=numpy.float32)  # 80
np.linspace(0, 1, 20)  # 320
np.linspace(0, 1, 20, dtype=numpy.float32)  # 320
np.linspace(a, b, 3)  # 9600
np.linspace(w, 1, 4)  # 240
np.geomspace(1, 2, 20)  # 320
np.geomspace(a + 1, b + 2, 3)  # 9600
np.indices((4, 5))  # 320
np.indices((4, 5), numpy.int8)  # 40
np.indices((0, 5))  # 1
np.mgrid[:4, :5]  # 0
np.tril_indices(9)  # 81
np.triu_indices(9, m=4)  # 36
np.meshgrid(w, w)  # 481
np.fromfunction(lambda i, j: i + j, (4, 5))  # 320
a.reshape(30, 40)  # 0
a.T.reshape(1200)  # 9600
a.T.ravel()  # 9600
a.ravel("F")  # 9600
a.reshape(1200, order="F")  # 9600
a.flatten()  # 9600
a.sum()  # 9600
a.sum(axis=0)  # 9600
a.mean(axis=1)  # 9600
np.sum(a, axis=0, keepdims=True)  # 9600
np.add.reduce(a, 1, where=m, initial=0)  # 9600
a.max()  # 9600
a.argmax()  # 9600
a.argmin(axis=1)  # 9600
np.argmax(a, axis=0, keepdims=True)  # 9600
a.any()  # 9600
np.all(m, 0)  # 1200
np.count_nonzero(m, axis=0)  # 1200
np.ptp(a)  # 9600
a.std()  # 9600
np.var(a, axis=0)  # 9600
np.quantile(x, 0.3)  # 1, 9600
np.nanmean(a, 0)  # 9600
np.nansum(a)  # 9600
np.average(a, weights=w, axis=1)  # 9840
np.cov(a)  # 1, 9600
np.cumsum(a)  # 9600
a.cumsum(axis=0)  # 9600
np.maximum.accumulate(a, 1)  # 9600
np.add.reduceat(a, [0, 5, 10], axis=0)  # 1, 9600
np.multiply.reduceat(x, range(0, 1200, 3))  # 1, 9600
np.logaddexp.reduceat(x, [5, 3, 9])  # 1, 9600
np.subtract.outer(w, w)  # 480
np.add.outer(w, i[:2])  # 256
np.maximum(a, b)  # 19200
np.maximum(a, c)  # 9920
np.maximum(a, b, c.copy() + a)  # 9920, 19200
np.sqrt(a)  # 9600
np.modf(a)  # 9600
np.exp(a[..., None])  # 9600
np.hypot(c, w)  # 560
np.add(a, [1.0] * 30)  # 9600
np.sqrt(a, where=m, out=np.zeros_like(a))  # 9600
np.divide(a, c, out=a, where=m)  # 20400
np.add(a, b, out=a); a  # 19200
np.add(c, w, out=a); a  # 9600
np.add.at(x, j, 1.5); x  # 0
np.add.at(x, [1, 2], 1.5); x  # 0
np.subtract.at(a, (j % 40, j % 30), 1.5); a  # 400, 9600
a += b; a  # 9600
a += 1; a  # 9600
a *= c; a  # 9600
a **= 2; a  # 9600
a[1:3] += 1; a  # 1, 9600
a += l; a  # never
np.where(m, a, c)  # 11120
np.where(m, a, b)  # 20400
np.clip(a, c, 1)  # 9920
np.clip(a, 0, 1)  # 9600
np.select([m, a > 0.5], [a, b])  # 20400
np.choose(m.astype(int), [a, b])  # 28800
np.isclose(a, b)  # 19200
np.isin(j, [1, 2, 3])  # 401
np.isin(a, w[:20], invert=True)  # 9600
a[m]  # 9600
a[j % 40]  # 12000
x[j]  # 400
x[[1, 2, 3]]  # 1
x[[1] * 70]  # 560
x[range(3)]  # 1
a[range(3), [1, 2, 3]]  # 24
a[range(30), i]  # 240
a[[1, 2], :]  # 1
a[:, j % 30]  # 400
a[[1, 2], 3]  # 1
a[j % 40, j % 30]  # 400
a[np.ix_([1, 2], [3, 4])]  # 32
a[j[:, None] % 40, i[None, :]]  # 640
a[0]  # 0
a[..., None]  # 0
a[1, 2]  # 0
a[1:3] = 0; a  # 1, 9600
a[m] = 0; a  # 1, 9600
a[j % 40] = b[j % 40]; a  # 1, 12000
a[j % 40, j % 30] = 1; a  # 1, 9600
x[[1, 2]] = 7; x  # 0
a[:] = l; a  # never
a.flat[3] = 1; a  # 1, 9600
a.flat[[1, 2]] = 1; a  # 1, 9600
a.fill(3); a  # 1, 9600
np.copyto(a, b); a  # 1, 9600
np.copyto(a, c, where=m); a  # 20400
np.put(a, [1, 2], 3); a  # 1, 9600
np.put(a, j, w); a  # 1, 9600
np.place(a, m, w); a  # 1, 9600
np.putmask(a, m, b); a  # never
np.fill_diagonal(a, 0); a  # 1, 9600
np.put_along_axis(a, j[:40, None] % 30, 1, 1); a  # 320, 9600
np.take(a, j % 40, axis=0)  # 12000
np.take(x, j)  # 400
np.take_along_axis(a, j[:40, None] % 30, 1)  # 320
np.compress(m[0], a, axis=1)  # 30
np.extract(m, a)  # 9600
np.repeat(a, 2)  # 1, 19200
np.repeat(a, 2, 0)  # 1, 19200
np.repeat(a, 0, 0)  # 1
np.repeat(a, j[:30] % 3, 1)  # 216, 240
np.repeat(a, [2], 0)  # 1, 19200
np.tile(a, 3)  # 28800
np.tile(w, (3, 2))  # 1440
np.resize(a, (50, 30))  # 1, 19200
np.roll(a, 3, 1)  # 9600
np.flip(a, 0) + 1  # 9600
np.rot90(a) + 1  # 9600
np.pad(a, 3)  # 9600
np.concatenate([a, b], 1)  # 19200
np.concatenate([a, c], 1)  # 9920
np.stack([a, b], -1)  # 19200
np.block([[a, b], [b, a]])  # 38400
np.append(w, w)  # 480
np.insert(a, 3, 0, 0)  # 9600
np.delete(a, 3, 0)  # 9360
np.sort(a, 0)  # 9600
a.sort(); a  # 9600
a.partition(3); a  # 1, 9600
np.argsort(a, 1)  # 9600
np.unique(j)  # 400
np.unique(a, axis=0)  # 1, 9600
np.lexsort((j, j))  # 400
np.lexsort((a, b))  # 1, 9600
np.searchsorted(w, x)  # 1, 9840
np.bincount(j)  # 1, 400
np.histogram(x, 50)[0]  # 1, 9600
np.digitize(x, w)  # 1, 9840
np.interp(x, w, w)  # 1, 9600
np.convolve(x, w[:9])  # 1, 9672
np.gradient(a)[0]  # 9600
np.diff(a, axis=1)  # 9600
np.trapezoid(a, axis=1)  # 9600
np.cross(a[:, :3], b[:, :3])  # 960
np.fft.fft(x)  # 9600
np.fft.fft2(a)  # 9600
np.polyval([1, 2, 3], x)  # 9600
np.nonzero(m)[0]  # 1, 1200
np.tril(a)  # 9600
np.intersect1d(i, j)  # 536
np.isfinite(a)  # 9600
np.round(a, 2)  # 9600
np.is_busday(d)  # 320
np.busday_offset(d, 1, "forward")  # 320
d + 1  # 320
x.byteswap()  # 9600
x.view([("x", float)]).getfield(float, 0)  # 0
np.lib.stride_tricks.sliding_window_view(a, (3, 3)).max((2, 3))  # 1, 9600
np.broadcast_to(w, (300, 30)) * 2  # 72000
np.broadcast_to(w, (300, 30)) + np.broadcast_to(w, (300, 30))  # 144000
e + e  # 0
e + w  # 1
e * 2  # 0
e.sum(axis=0)  # 0
e.copy()  # 0
e[:, [1, 2]]  # 1
e.astype(int)  # 0
np.sort(e, 1)  # 0
np.repeat(e, 2, 0)  # 0
np.outer(e, w)  # 240
o == o  # 0
o[[1, 2]]  # 0
np.repeat(o, 2)  # 0
z + z  # never
z * 2 + a  # never
z[1:3] = 1; z  # 1, never
g.random(20)  # 160
g.random((4, 5), numpy.float32)  # 0
g.integers(0, 9, 20)  # 0
g.normal(size=20)  # 0
g.normal(w, 1.0)  # 0
g.choice(x, 3)  # 24
g.choice(9, 20)  # 0
g.permutation(x)  # 0
g.permutation(20)  # 0
g.permuted(a, axis=1)  # 0
g.shuffle(x); x  # 9600
u.random(20)  # 160
u.random((4, 5), numpy.float32)  # 80
u.integers(0, 9, 20)  # 160
u.choice(x, 3)  # 24
u.permutation(20)  # 160
u.shuffle(x); x  # 9600
u.random(2000)  # 16000
g.random(2000)  # 16000
g.integers(0, 9, 2000)  # 0
r.rand(20)  # 0
r.randint(0, 9, 20)  # 0
r.randint(0, 9, 2000)  # 0
r.permutation(20)  # 0
r.permutation(x)  # 9600
r.shuffle(x); x  # 0
r.choice(x, 5)  # 40
r.normal(size=2000)  # 0
l + 1; l  # never
(l + 1).sum().item(); l  # 9600, never
chained(l)  # 9600, never
picked(l)  # 1, never
np.zeros(1 << 25)  # 1, never
np.zeros((1 << 25) + 1)  # never
np.ones((1024, 1024), "f") @ np.ones((1024, 256), "f")  # 5242880
np.ones((1024, 1024), "f") @ np.ones((1024, 257), "f")  # never
np.einsum("ij,kj->ik", a, b[:20])  # 14400
np.einsum("ij,kj->ik", np.ones((90, 40)), np.ones((40, 40)))  # 41600
np.array([w] * 65)  # 15600
np.put(x, [1] * 65, 3); x  # 0
r.randint(0, 9, 1024)  # 0
r.randint(0, 9, 1025)  # 0
np.isin(x, y[:20])  # 9600
np.isin(x, y)  # 19200
x[j - 7]  # 400
np.take(a, l[:2].astype(int) * 0, axis=0)  # never
"""
"""Calls, each on arrays of its own; behind the last semicolon stands what is looked at. Then the least
threshold, in bytes, where programs run in this process; and where they run elsewhere, if that is another."""


def _parsed(line: str) -> tuple[str, tuple[int, int]]:
    text, _, told = line.partition("  # ")
    here, *elsewhere = (NEVER if word == "never" else int(word) for word in told.split(", "))
    return text, (here, elsewhere[0] if elsewhere else here)


LEAST = dict(map(_parsed, CALLS.strip().splitlines()))


def chained(a: Any) -> Any:
    """The end of a long chain of steps."""
    for _ in range(70):
        a = np.sqrt(abs(a))
    return a


def picked(a: Any) -> Any:
    """An array of which some elements have been asked for one by one."""
    for k in range(12):
        assert a[k, 0] is not None
    return a


def given(folder: str) -> dict[str, Any]:
    """Arrays by their names: of up to ten thousand bytes that are here, a lazy one, and files."""
    rng = numpy.random.default_rng(0)
    table = rng.random((40, 30))
    with np.config.override(small_bytes=MOST):
        found: dict[str, Any] = {
            "np": np,
            "copy": copy,
            "chained": chained,
            "picked": picked,
            "numpy": numpy,
            "n": table.copy(),
            "a": np.array(table),
            "b": np.array(rng.random((40, 30))),
            "c": np.array(rng.random((40, 1))),
            "w": np.array(numpy.sort(rng.random(30))),
            "x": np.array(rng.random(1200)),
            "y": np.array(rng.random(1200)),
            "i": np.array(rng.integers(0, 30, 30)),
            "j": np.array(rng.integers(0, 1200, 50)),
            "m": np.array(table > 0.5),
            "e": np.array(table[:0]),
            "o": np.array([1, "a", None] * 100, object),
            "d": np.array(["2024-01-05"] * 40, "M8[D]"),
            "s": np.asarray(scipy.sparse.csr_array(numpy.where(table > 0.7, table, 0))),
            "g": np.random.default_rng(0),
            "u": np.random.default_rng(),
            "r": np.random.RandomState(0),
            "file": f"{folder}/a.npy",
            "files": f"{folder}/a.npz",
        }
    with np.config.override(small_bytes=0):
        found["l"] = found["b"] - found["a"]
        found["z"] = np.zeros((40, 30))
    return found


def is_at_once(text: str, small_bytes: int, folder: str) -> bool:
    """Whether a call leaves nothing to be planned."""
    *before, looked_at = text.split(";")
    names = given(folder)
    with np.config.override(small_bytes=small_bytes), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if before:
            exec(";".join(before), names)
        found = eval(looked_at.strip(), names)
        return all(a._peek() is not None for a in _handles(found))


def _handles(found: Any) -> Iterator[Handle]:
    if isinstance(found, Handle):
        yield found
    elif isinstance(found, tuple | list):
        for f in found:
            yield from _handles(f)


def least(text: str, folder: str) -> int:
    """The least threshold at which a call is answered at once; with a larger one it is, too."""
    low, high = -1, MOST
    if not is_at_once(text, high, folder):
        return NEVER
    while high - low > 1:
        middle = 0 if low < 0 else (low + high) // 2
        if is_at_once(text, middle, folder):
            high = middle
        else:
            low = middle
    return high


def write_files(folder: str) -> None:
    """The files that calls read."""
    table = numpy.random.default_rng(0).random((40, 30))
    numpy.save(f"{folder}/a.npy", table)
    numpy.savez(f"{folder}/a.npz", a=table)


def main() -> None:
    """Print the table, or lines of it that are about to be written down."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        for text in sys.argv[1:] or LEAST:
            here = least(text, folder)
            with running_on(SimulatedBackend(2)), np.config.override(disabled_passes=frozenset({"home"})):
                elsewhere = least(text, folder)
            told = ["never" if n == NEVER else str(n) for n in (here, elsewhere)]
            print(f"{text}  # {', '.join(told[: 1 + (here != elsewhere)])}")


if __name__ == "__main__":
    main()
