"""Sums, extremes and truths in pandas' tables (labels, limits, cells), and in compiled code of Python's."""

import datetime
import decimal
import json
import sqlite3
import struct
import time

import numpy
import pytest

import spartan_ng as np

pandas = pytest.importorskip("pandas")

EXPRESSIONS = """
frame.iloc[a.argmax()].tolist()
frame.loc[a.argmax()].tolist()
frame.at[a.argmax(), "x"]
frame.iloc[: i.max()].x.tolist()
frame.head(i.max()).x.tolist()
series.get(a.argmax())
series[a.argmin()]
series.replace(a.min(), 9.0).tolist()
series.rolling(i.min()).sum().max()
frame.clip(a.min(), a.max()).x.tolist()
(a.sum() < frame).x.tolist()
(frame < a.sum()).x.tolist()
str(pandas.Series([a.sum(), a.mean()]).dtype)
str(pandas.Series({"m": a.mean(), "n": i.sum()}).dtype)
str(pandas.DataFrame({"k": [a[0], a.sum()]}).dtypes.tolist())
str(frame.assign(u=a.sum()).dtypes.tolist())
str(pandas.DataFrame([(k, (a * k).mean()) for k in range(3)], columns=["k", "m"]).describe())
frame.apply(xp.sum).tolist()
len(pandas.date_range("2020-01-01", periods=i.sum()))
len(pandas.RangeIndex(i.sum()))
json.dumps({"a": a.sum()})
decimal.Decimal(a.sum())
datetime.timedelta(a.sum())
sqlite3.connect(":memory:").execute("select ?", (a.sum(),)).fetchone()
struct.pack("<d", a.sum())
bytes(a.sum())
time.gmtime(a.sum())
a.sum().fromhex("0x1.8p1")
hasattr(a.sum(), "__len__")
hasattr(a.sum(), "__iter__")
repr(a.sum()), repr(i.max()), repr((a > 1).all())
type(i.max())(3), type(a.sum())(3)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_what_numpys_numbers_are_taken_for(expression):
    results = []
    for xp in (numpy, np):
        a, i = xp.array([1.0, 5.0, 2.0]), xp.array([3, 2])
        frame = pandas.DataFrame({"x": [3.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]})
        names = {"xp": xp, "a": a, "i": i, "frame": frame, "series": frame.x, "pandas": pandas}
        modules = (datetime, decimal, json, sqlite3, struct, time)
        results.append(eval(expression, {**names, **{m.__name__: m for m in modules}}))
    assert results[1] == results[0]


def test_integers_that_overflow_warn():
    a = np.array([200, 100], "u1")
    with pytest.warns(RuntimeWarning, match="overflow encountered in scalar add"):
        assert a[1] + a.max() == 44
