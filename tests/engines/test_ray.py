"""Plans on a real Ray, whose processes are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.errors import ConnectionFailed, MasterUnreachable, UserFunctionError
from tests.engines.test_plans import PROGRAMS, check_one
from tests.waiting import Gate, killing_one

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # of its own, by its own


def begin():
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)


@pytest.fixture(scope="module")
def engine():
    begin()
    yield
    ray.shutdown()


@pytest.fixture
def on_ray(engine):
    before = session.current().backend
    np.connect("ray")
    with config.override(small_bytes=0):
        yield
    session.current().backend.retire()
    session.use(before)


@pytest.mark.slow
def test_the_command_starts_a_ray_of_its_own_whatever_other_is_named(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text(
        "import spartan_ng as np\n"
        "from spartan_ng import session\n"
        "print(session.current().backend.engine.name, session.current().backend.workers)\n"
    )
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    command = [
        sys.executable,
        "-m",
        "spartan_ng.cli",
        "run",
        "--on",
        "ray",
        "-n",
        "1",
        "--threads",
        "1",
        script,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ray 1"


@pytest.mark.slow
def test_a_bar_sees_results_that_are_there(on_ray, tmp_path):
    backend: Any = session.current().backend
    engine = backend.engine
    with Gate(tmp_path / "gate") as gate:
        free, held = engine.submit("free", float), engine.submit("held", gate.enter)

        def report(done):
            if done == 0.5:
                gate.open()

        engine.follow([free, held], report)
        assert engine.get([free, held]) == [0.0, None]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_numpys_answer(on_ray, name):
    check_one(name)


@pytest.mark.slow
def test_a_process_that_is_killed_costs_no_answer(on_ray, tmp_path):
    x = np.array(numpy.arange(600.0).reshape(60, 10))
    with killing_one(tmp_path / "gate") as slow:
        found = numpy.asarray(np.map(slow, x * 2, dtype=float).sum(axis=0))
    numpy.testing.assert_allclose(found, (numpy.arange(600.0).reshape(60, 10) * 2 + 1).sum(axis=0))


def fails(block):
    raise ValueError("mine")


def exits(block):
    os._exit(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (fails, r"fails raised ValueError: mine\n(?s:.*)File \".*test_ray.py\", line \d+, in fails"),
        # Ray starts a process anew for each of its tries: minutes.
        pytest.param(exits, r"exits \(at .*test_ray.py:\d+\)", marks=pytest.mark.whole),
    ],
)
def test_errors_of_functions_come_with_the_users_line(on_ray, function, said):
    x = np.array(numpy.ones((60, 4)))
    with pytest.raises(UserFunctionError, match=said):
        np.map(function, x, dtype=float).compute()
    assert float((x * 2).sum()) == 480.0


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("shape", [(1,), (50,), (60, 7), (9, 4, 3), (2, 900)])
@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
def test_data_sets_come_and_go(on_ray, shape, dtype):
    x = (numpy.arange(numpy.prod(shape)).reshape(shape) % 7).astype(dtype)
    there = ray.data.from_numpy([x[:1], x[1:4], x[4:]]) if len(x) > 4 else ray.data.from_numpy(x)
    ours = np.from_ray(there)
    assert ours.dtype == x.dtype
    numpy.testing.assert_array_equal(ours, x)
    back = (ours + ours).to_ray("twice")  # type: ignore[attr-defined]
    assert back.count() == len(x)
    numpy.testing.assert_array_equal(numpy.stack([row["twice"] for row in back.take_all()]), x + x)
    numpy.testing.assert_array_equal(np.from_ray(back.map_batches(lambda b: b), "twice"), x + x)


@pytest.mark.slow
@pytest.mark.some(12)
@pytest.mark.parametrize("shape", [(5,), (5, 3), (4, 3, 2), (0,)])
@pytest.mark.parametrize("dtype", ["c16", "c8", ">f8", ">i4", ">c16", "f4", "i8", "M8[s]"])
def test_what_was_given_to_ray_is_taken_back(on_ray, shape, dtype):
    """In the machine's order of bytes, which Ray's tables have. Complex numbers are objects there, Python's:
    no rows of them have no dtype."""
    x = (numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) + 1).astype(dtype)
    found = np.from_ray(np.array(x).to_ray("v"), "v")  # type: ignore[attr-defined]
    if x.dtype.kind != "c":
        assert found.dtype == x.dtype.newbyteorder("=")
    elif len(x):
        assert found.dtype == complex
    assert found.shape == x.shape
    numpy.testing.assert_array_equal(found, x)


@pytest.mark.slow
def test_numbers_that_others_read_are_those_that_were_given_to_ray(on_ray):
    x = numpy.arange(15).reshape(5, 3)
    rows = np.array(x.astype(">i4")).to_ray("v").take_all()  # type: ignore[attr-defined]
    numpy.testing.assert_array_equal([row["v"] for row in rows], x)


@pytest.mark.slow
def test_what_lies_outside_passes_to_ray_as_it_is(on_ray, tmp_path):
    zarr = pytest.importorskip("zarr")
    a = numpy.random.default_rng(0).random((600, 5))
    zarr.create_array(tmp_path / "a.zarr", shape=a.shape, dtype=a.dtype)[...] = a
    rows = np.to_ray(np.from_zarr(tmp_path / "a.zarr"), "v")
    numpy.testing.assert_array_equal(np.from_ray(rows, "v"), a)


@pytest.mark.slow
def test_a_column_of_a_table_is_an_array(on_ray):
    table = ray.data.range(1000).map_batches(lambda b: {"id": b["id"], "half": b["id"] / 2})
    numpy.testing.assert_array_equal(np.from_ray(table, "half"), numpy.arange(1000) / 2)
    last = table.map_batches(lambda b: {k: v[b["id"] > 990] for k, v in b.items()})
    numpy.testing.assert_array_equal(np.from_ray(last, "id"), range(991, 1000))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Use 'expr' instead of 'fn'")
@pytest.mark.parametrize("at", [-1, 400, 900, 999])
def test_blocks_without_rows_are_none(on_ray, at):
    """A filter leaves them no columns; and no block at all may have rows. What Ray keeps is in the order in
    which its blocks come, unless it is told to keep theirs."""
    there = ray.data.range(1000, override_num_blocks=4).filter(lambda row: row["id"] > at)
    numpy.testing.assert_array_equal(np.from_ray(there, "id"), numpy.arange(at + 1, 1000))
    there.context.execution_options.preserve_order = True
    numpy.testing.assert_array_equal(np.from_ray(there.materialize(), "id"), numpy.arange(at + 1, 1000))


@pytest.mark.slow
def test_a_column_that_is_not_there_is_an_error(on_ray):
    with pytest.raises(ValueError, match="Cannot find column other"):
        np.from_ray(ray.data.range(10), "other")


def test_what_is_no_data_set_is_refused(on_ray):
    with pytest.raises(TypeError, match=r"takes a ray\.data\.Dataset, not ndarray"):
        np.from_ray(numpy.arange(3.0), "id")


def test_columns_of_texts_and_arrays_without_rows_are_refused(on_ray):
    with pytest.raises(TypeError, match=r"'item' has no rows of one shape and of numbers.*no texts"):
        np.from_ray(ray.data.from_items(["a", "b"]), "item")
    with pytest.raises(TypeError, match="'item' has no rows of one shape and of numbers"):
        np.from_ray(ray.data.from_items([[1j], [2j, 3j]]), "item")
    with pytest.raises(ValueError, match="row"):
        np.to_ray(np.array(3.0) + 1)


@pytest.mark.slow
def test_data_sets_need_a_ray():
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(\"ray\"\)"):
        np.from_ray(None)
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(\"ray\"\)"):
        np.to_ray(np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("again", [np.disconnect, partial(np.connect, "ray")])
def test_a_ray_that_was_shut_down_is_said_to_be(on_ray, again):
    """Of arrays that were there, and of new work; none of it begins another Ray."""
    a = numpy.arange(60_000.0).reshape(60, 1000)
    x, y = np.array(a), (np.array(a) * 2).persist()
    ray.shutdown()
    try:
        for asks in (lambda: (x * 3).compute(), y.compute, (np.array(a) + 1).sum):
            with pytest.raises(MasterUnreachable, match=r"Ray was shut down.*np\.connect.*np\.disconnect"):
                numpy.asarray(asks())
        assert not ray.is_initialized()
        begin()
        with pytest.raises(MasterUnreachable, match=r"Ray was shut down"):  # the new one does not know it
            y.compute()
        assert float((np.array(a) + 1).sum()) == (a + 1).sum()
        again()
        numpy.testing.assert_array_equal(x * 3, a * 3)
        numpy.testing.assert_array_equal(y, a * 2)
    finally:
        if not ray.is_initialized():
            begin()  # for the tests to come
