"""Functions that count as distributed are called on three workers, and move little through the driver."""

from __future__ import annotations

import warnings

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import dispatch
from spartan_ng.api.coverage import rows
from tests.numpy_parity import proof
from tests.numpy_parity.operands import operands as plain_operands
from tests.numpy_parity.options import OPTIONS

pytestmark = pytest.mark.filterwarnings("ignore")

OPTION_BYTES = 8192
"""What the several calls of an entry may pass through the driver: a quarter of an operand."""
CALLS = proof.all_calls()
KINDS = {(r.namespace, r.name): r.kind for r in rows()}


@pytest.fixture(scope="module")
def workers():
    with proof.three_workers() as found:
        yield found


def same(ours, theirs, what):
    for g, w in zip(proof.flat(ours), proof.flat(theirs), strict=True):
        w = numpy.asarray(w)
        g = numpy.asarray(g)
        assert (g.shape, g.dtype) == (w.shape, w.dtype), what
        if w.dtype.kind in "fc":
            numpy.testing.assert_allclose(g, w, 1e-6, 1e-6, err_msg=what)
        else:
            numpy.testing.assert_array_equal(g, w, err_msg=what)


@pytest.mark.some(120)
@pytest.mark.parametrize("key", sorted(CALLS), ids=".".join)
def test_distributed(workers, key):
    backend, operands = workers
    found = proof.passed(backend, CALLS[key], operands)
    if key[0] != "numpy.random":
        same(found.result, CALLS[key](numpy, plain_operands()), ".".join(key))
    assert found.distributed == (KINDS[key] == "distributed"), f"{KINDS[key]}: {found}"


def test_every_function_is_called():
    """Only what is proven here counts as distributed."""
    assert {key for key, kind in KINDS.items() if kind == "distributed"} == set(CALLS)


def test_most_functions_are_distributed():
    kinds = [k for k in KINDS.values() if k in ("distributed", "driver")]
    assert kinds.count("distributed") >= 0.8 * len(kinds)
    assert "missing" not in KINDS.values()


@pytest.mark.some(40)
@pytest.mark.filterwarnings("error::spartan_ng.FallbackWarning")
@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_distributed_too(workers, name):
    backend, operands = workers
    found = proof.passed(backend, OPTIONS[name], operands)
    same(found.result, OPTIONS[name](numpy, plain_operands()), name)
    assert max(found.home, found.sent, found.left) <= OPTION_BYTES, found


@pytest.mark.slow
@pytest.mark.filterwarnings("error::spartan_ng.FallbackWarning")
def test_trial_histograms_bring_their_counts_home_and_nothing_else(workers):
    backend, operands = workers
    found = proof.passed(backend, lambda np, o: np.histogram(o.v, "stone"), operands)
    same(found.result, numpy.histogram(plain_operands().v, "stone"), "stone")
    assert found.home <= 8 * sum(range(1, 101)) + proof.LIMIT_BYTES


def _last(line, width, axis, keywords):
    line[len(line) - width[1] :] = 7


PARTS = {
    "apply_along_axis": lambda np, o: np.apply_along_axis(numpy.ptp, 0, o.v),
    "cond": lambda np, o: np.linalg.cond(o.stack * (numpy.arange(16) > 0)[:, None, None], 1)[1:],
    "datetime_as_string": lambda np, o: np.datetime_as_string(o.dates, "auto"),
    "gradient": lambda np, o: np.gradient(o.dates - o.dates[0]),
    "pad": lambda np, o: np.pad(o.v, 3, _last)[3:],
}


@pytest.mark.filterwarnings("default::spartan_ng.FallbackWarning")
@pytest.mark.parametrize("name", PARTS)
def test_a_rare_option_says_that_it_falls_back(workers, name, monkeypatch):
    _, operands = workers
    monkeypatch.setattr(dispatch, "_warned", set())
    monkeypatch.setattr(np.config, "kernels", "interpret")
    with pytest.warns(np.FallbackWarning, match=f"{name} is not distributed") as found:
        got = PARTS[name](np, operands)
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.FallbackWarning)
        PARTS[name](np, operands)
    same(got, PARTS[name](numpy, plain_operands()), name)


@pytest.mark.parametrize("dtype", [">u8", ">f4", ">c16", ">M8[D]"])
def test_numbers_have_the_byte_order_of_the_machine(workers, dtype):
    plain = numpy.array([3, 1, 2]).astype("i8").astype(dtype)
    with np.config.override(small_bytes=0):
        a = np.array(plain)
        found = [a[np.argmax(a != a[0])], a[1:][1]]
        if dtype[1] in "fc":
            found.append(np.median(a))
    wanted = [plain[1], plain[2], plain[2]]
    for ours, theirs in zip(found, wanted, strict=False):
        assert (ours.dtype, numpy.asarray(ours)) == (theirs.dtype, theirs)
        assert ours.dtype.isnative
