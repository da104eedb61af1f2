"""What is made of a scan in its own pass: every elementwise function, with the scan as each of its operands,
where the result is stored in the place of the scan."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kernels.rows import fills
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.stages import ScanTile
from tests import reference

_OTHERS = ("cast", "real", "imag", "power")  # no ufuncs, and one that refuses integers
FUNCTIONS = [n for n, f in ELEMENTWISE.items() if f.nout == 1 and n not in _OTHERS]
X = np.random.default_rng(0).integers(-3, 4, (90, 70))


def made(name, seen, scan):
    """A map of three operands at most, those in `seen` the scan itself; None where NumPy has no such loop."""
    nin = ELEMENTWISE[name].nin
    other = build.map_("add", scan, build.constant(np.ones((), scan.dtype)), dtype=scan.dtype)
    operands = [scan if k in seen else other for k in range(nin)]
    if name == "where":
        operands[0] = build.map_("greater", scan, build.constant(np.array(3, scan.dtype)))
    try:
        return build.map_(name, *operands)
    except TypeError:
        return None


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("dtype", ["i8", "f8", "?"])
@pytest.mark.parametrize("scan", ["add", "maximum", "logical_or"])
@pytest.mark.parametrize("axis", [0, 1])
def test_as_the_reference(scan, dtype, axis):
    if scan == "add" and dtype == "?":
        pytest.skip("sums of truth values are integers")
    x = X.astype(dtype)
    x = x if dtype != "f8" else np.where(x == 3, np.nan, x)
    tried = 0
    for name in FUNCTIONS:
        for seen in ({0}, {1}, {2}, {0, 1}, {1, 2}):
            if max(seen) >= ELEMENTWISE[name].nin:
                continue
            node = made(name, seen, build.scan(scan, build.constant(x), axis))
            if node is None:
                continue
            folded = build.fold("maximum", node, (0, 1)) if node.dtype.kind in "iuf" else node
            for kernels in ("interpret", "compile"):
                with config.override(kernels=kernels), np.errstate(all="ignore"):
                    found = [r.value for r in session.evaluate([node, folded])]
                wanted = [r.value for r in reference.evaluate([node, folded])]
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=f"{name} {seen} {kernels}")
            tried += 1
    assert tried > 20


def test_there_is_such_a_pass():
    scan = build.scan("add", build.constant(X), 0)
    node = made("where", {2}, scan)
    (stage,) = session.current().plan([node])[0].plan.stages
    assert isinstance(stage, ScanTile)
    assert fills(stage.rows[-1])
