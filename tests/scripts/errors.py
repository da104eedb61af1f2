"""Floating-point errors raised, called, ignored and warned about, and the errors of wrong arguments."""

# mypy: ignore-errors
# (wrong arguments are its subject)

import warnings

import numpy as np

zeros, values = np.zeros(5), np.arange(5.0)
for kind, run in {
    "divide": lambda: 1 / zeros,
    "over": lambda: np.exp(values * 400),
    "invalid": lambda: np.sqrt(values - 2),
    "under": lambda: np.float64(1e-300) * np.full(3, 1e-300),
}.items():
    with np.errstate(all="ignore"):
        ignored = run()
    with np.errstate(**{kind: "raise"}):
        try:
            run()
        except FloatingPointError as error:
            print(kind, "->", error, ignored)
seen = []
with np.errstate(all="call", call=lambda what, flag: seen.append((what, flag))):
    np.log(zeros)
    values / zeros
print(seen)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    float((1 / zeros).sum())
    np.mean([])
    np.nanmax([np.nan])
print([f"{w.category.__name__}: {w.message}" for w in caught])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for run in (
        lambda: float(np.log(zeros)[0]),
        lambda: np.array([1.0, 2.0]).astype(int) / 2,
        lambda: np.int8(127) + np.int8(1),
    ):
        try:
            print(run())
        except RuntimeWarning as warning:
            print("warned:", warning)
old = np.seterr(divide="ignore")
print(old, np.geterr()["divide"], 1 / zeros[:2])
np.seterr(**old)


def kind_of(run):
    try:
        return repr(run())
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return next(
            c.__name__ for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions")
        )


cases = [
    lambda: np.ones((2, 3)) + np.ones((3, 2)),
    lambda: np.ones((2, 3)) @ np.ones(2),
    lambda: np.arange(3)[5],
    lambda: np.arange(3)[1.5],
    lambda: np.arange(3)["a"],
    lambda: np.ones(3).reshape(2, 2),
    lambda: np.concatenate([np.ones(2), np.ones((2, 2))]),
    lambda: np.sum(np.ones((2, 2)), axis=2),
    lambda: np.linalg.inv(np.zeros((2, 2))),
    lambda: np.array([[1, 2], [3]]),
    lambda: np.zeros(3).__setitem__(slice(None), [1, 2]),
    lambda: bool(np.ones(2)),
    lambda: int(np.ones(2)),
    lambda: np.array([1, 2], dtype=np.uint8) + 300,
    lambda: np.arange(3).astype(float).__iadd__(1j),
    lambda: np.max([]),
    lambda: np.broadcast_to(np.ones(3), (2, 2)),
    lambda: np.datetime64("x"),
    lambda: np.zeros(-1),
    lambda: np.ones(3).no_such_attribute,
    lambda: hash(np.ones(2)),
    lambda: np.dtype("no"),
]
print([kind_of(c) for c in cases])
