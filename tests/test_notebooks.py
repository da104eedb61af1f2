"""A notebook in a kernel of its own: what its cells show, errors with the user's lines, Ctrl-C, a cluster."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
import types

import numpy
import pytest

import spartan_ng as np
from spartan_ng import progress, tracebacks
from spartan_ng.config import config
from spartan_ng.errors import SpartanError
from tests.waiting import Gate, until


def test_elsewhere_there_is_no_bar():
    assert not progress.in_notebook()


def test_without_widgets_a_notebook_has_a_bar_of_text(monkeypatch, capsys):
    app = types.SimpleNamespace(initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", types.SimpleNamespace(IPKernelApp=app))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    with config.override(progress=None), progress.progress("fit", "iteration") as bar:
        assert bar is not None
        bar(2, 7)
        assert (bar._bar.n, bar._bar.total) == (2, 7)


def deep(x):
    raise ValueError("mine\n" * 100)


def nothing(x):
    raise ValueError


def again(fails, link):
    """An error of the user's own, raised from another or while that is handled."""
    try:
        fails()
    except Exception as error:
        if link == "from":
            raise RuntimeError("mine") from error
        if link == "twice":
            again(lambda: again(fails, "from"), "from")
        raise KeyError("mine, too")  # noqa: B904 - what users do


@pytest.mark.parametrize("link", ["from", "while", "twice"])
@pytest.mark.parametrize(
    "fails",
    [
        lambda: np.map(deep, np.ones((300, 4)), dtype=float).compute(),
        lambda: np.ones((3, 4)) @ np.ones((3, 4)),
        lambda: np.ones((3000, 4)) @ np.ones((3000, 4)),
        lambda: np.load("there is none.csv"),
        lambda: np.linalg.inv(np.zeros((3, 3))),
        lambda: np.map(nothing, np.ones((300, 4)), dtype=float).compute(),
    ],
)
def test_errors_that_come_from_others_are_folded_with_them(fails, link):
    with config.override(small_bytes=0), pytest.raises((RuntimeError, KeyError)) as caught:
        again(fails, link)
    lines = tracebacks.folded(caught.value)
    text = "\n".join(lines)
    assert len(lines) <= 25
    assert "mine" in lines[-1]
    sentences = {"from": ["direct cause"], "while": ["During handling"], "twice": ["direct cause"]}[link]
    assert all(sentence in text for sentence in sentences)
    assert text.count("test_notebooks.py") >= 2
    package = str(numpy.__file__).replace("numpy", "spartan_ng").removesuffix("__init__.py")
    assert f'File "{package}' not in text


@pytest.mark.parametrize(
    "fails",
    [
        lambda: np.map(deep, np.ones((300, 4)), dtype=float).compute(),
        lambda: np.ones((3, 4)) @ np.ones((3, 4)),
        lambda: np.config.override(tiling="none").__enter__(),
    ],
    ids=["function", "shapes", "option"],
)
def test_an_error_shows_the_users_lines_and_few_others(fails):
    with config.override(small_bytes=0), pytest.raises(SpartanError) as caught:
        fails()
    lines = caught.value._render_traceback_()
    text = "\n".join(lines)
    assert len(lines) <= 25
    assert "test_notebooks.py" in text
    assert type(caught.value).__name__ in text
    package = str(numpy.__file__).replace("numpy", "spartan_ng").removesuffix("__init__.py")
    assert f'File "{package}' not in text.split("Error: ", 1)[0]


@pytest.mark.parametrize("debug", [0, 1])
def test_a_script_shows_few_lines_of_a_functions_error_too(debug):
    with config.override(small_bytes=0, debug=debug), pytest.raises(SpartanError) as caught:
        np.map(lambda tile: {}[tile.ndim], np.ones((300, 4)), dtype=float).compute()
    shown = "".join(traceback.format_exception(caught.value)).splitlines()
    assert (len(shown) <= 40) == (not debug)
    assert sum("test_notebooks.py" in line for line in shown) >= 3  # the call, the function, where it came in
    assert isinstance(caught.value.__context__, KeyError)


class Notebook:
    """Cells that run one after the other in a kernel."""

    def __init__(self, client, new) -> None:
        self._client, self._new = client, new

    def run(self, text: str):
        """What a cell with this text shows."""
        cell = self._new(text)
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return cell.outputs

    def shown(self, text: str) -> dict[str, str]:
        """The last value of a cell, by MIME types."""
        return next(o.data for o in self.run(text) if o.output_type == "execute_result")

    def error(self, text: str) -> list[str]:
        """The lines that a cell which fails shows of its error."""
        (error,) = (o for o in self.run(text) if o.output_type == "error")
        return "\n".join(error.traceback).splitlines()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """One kernel for all tests of this file that need one: it takes seconds to start."""
    client = pytest.importorskip("nbclient", reason="notebooks are not installed here")
    v4 = pytest.importorskip("nbformat").v4
    pytest.importorskip("ipykernel")
    folder = str(tmp_path_factory.mktemp("notebook"))
    made = client.NotebookClient(
        v4.new_notebook(),
        timeout=None,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": folder}},
    )
    with made.setup_kernel(env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}):
        found = Notebook(made, v4.new_code_cell)
        found.run("import os\nimport spartan_ng as np")
        yield found


@pytest.mark.slow
def test_arrays_show_what_they_are_and_compute_nothing_large(notebook):
    shown = notebook.shown("x = np.random.default_rng(0).random((10**6, 10**6)) * 2\nx")
    assert shown["text/plain"] == "<array 1000000×1000000 float64, 8 TB, not computed>"
    assert "<svg" in shown["text/html"]
    assert "8 TB" in shown["text/html"]
    assert notebook.shown("np.arange(3) + 1") == {"text/plain": "array([1, 2, 3])"}


def test_steps_are_written_in_cells(notebook):
    notebook.run("drawn = np.random.default_rng(0).random((3000, 2000))\nroots = np.sqrt(drawn)")
    told = notebook.shown("np.explain(roots.sum())")["text/html"]
    assert re.search(r"In\[(\d+)\]:1-2; In\[(\d+)\]:1</text>", told)


@pytest.mark.slow
def test_a_cluster_lives_across_cells(notebook):
    assert "2 workers" in notebook.shown("cluster = np.cluster(2, threads=1)\ncluster")["text/plain"]
    made = "np.config.small_bytes = 0\nz = (np.random.default_rng(0).random((3000, 200)) + 1).persist()\nz"
    shown = notebook.shown(made)
    assert "on workers: 2×1 tiles" in shown["text/plain"]
    assert "1.63696169" in shown["text/html"]
    assert "<path" in shown["text/html"]
    assert notebook.shown("cluster.close()\nz.shape, 1 < float(z.mean()) < 2, cluster")["text/plain"] == (
        "((3000, 200), True, <Cluster: closed>)"
    )


def test_long_work_has_a_bar(notebook):
    pytest.importorskip("ipywidgets")
    shown = notebook.run(
        "from spartan_ng import progress\n"
        "shows, progress.DELAY_S = progress.DELAY_S, 0.0\n"
        "with np.config.override(small_bytes=0):\n    float(np.sqrt(np.arange(3_000_000.0)).sum())\n"
        "progress.DELAY_S = shows"
    )
    assert any("application/vnd.jupyter.widget-view+json" in o.get("data", {}) for o in shown)


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("np.asarray([1, 2, 3])[7]", "IndexError: index 7 is out of bounds for axis 0 with size 3"),
        ("np.map(mine, np.arange(10.0), dtype=float).compute()", "ValueError: mine"),
        ("np.ones((3, 4)) @ np.ones((3, 4))", "ShapeError: matmul"),
        ("np.zeros(3).sum(axis=5)", "AxisError: axis 5 is out of bounds"),
        ("np.concatenate([np.ones(3), 'x', None])", "Error: "),
        ("np.linalg.inv(np.zeros((3, 3)))", "LinAlgError: Singular matrix"),
    ],
    ids=["index", "function", "shapes", "axis", "operands", "numpys"],
)
def test_errors_begin_with_the_cell_and_are_short(notebook, mistake, says):
    notebook.run("def mine(tile):\n    raise ValueError('mine')")
    lines = notebook.error(f"value = 1\n{mistake}")
    assert 3 < len(lines) <= 25
    assert lines[0].strip().startswith("Cell In[")
    assert "line 2" in lines[0]
    assert lines[1].strip() == mistake
    assert not any("_linalg.py" in line for line in lines)
    assert any(says in line for line in lines)


def test_a_functions_error_has_no_frame_of_ours(notebook):
    notebook.run("def mine(tile):\n    return tile / missing")
    lines = notebook.error("np.map(mine, np.arange(10.0), dtype=float).compute()")
    assert not any("kernels" in line for line in lines)
    assert any("line 2, in mine" in line for line in lines)
    shown = notebook.error("np.map(mine, np.arange(3_000_000.0), dtype=float).sum()")
    assert shown[0].startswith("UserFunctionError: map: mine raised NameError"), (
        "the cell's display raised it"
    )


@pytest.mark.slow
def test_a_workers_error_has_the_source_of_the_cell(notebook):
    """Which the worker does not know."""
    notebook.run("def mine(tile):\n    return tile / missing\ncluster = np.cluster(2, threads=1)")
    try:
        lines = notebook.error("np.map(mine, np.arange(3_000_000.0), dtype=float).sum().item()")
    finally:
        notebook.run("cluster.close()")
    (at,) = (i for i, line in enumerate(lines) if "line 2, in mine" in line)
    assert lines[at + 1].strip() == "return tile / missing"


def test_an_error_from_another_is_folded(notebook):
    lines = notebook.error(
        "try:\n    np.ones((3, 4)) @ np.ones((3, 4))\nexcept ValueError as error:\n"
        "    raise RuntimeError('mine') from error"
    )
    assert len(lines) <= 25
    assert not any("products.py" in line for line in lines)
    assert any(line.startswith("ShapeError: matmul") for line in lines)
    assert "RuntimeError: mine" in lines


def test_errors_of_others_are_ipythons(notebook):
    assert any("ZeroDivisionError" in line for line in notebook.error("1 / 0"))
    assert "%tb" not in "".join(notebook.error("1 / 0"))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "cluster"])
def test_an_interrupt_stops_a_cell_and_the_next_goes_on(notebook, where, tmp_path):
    if where == "cluster":
        notebook.run("cluster = np.cluster(2, threads=1)")
    pid = int(notebook.shown("os.getpid()")["text/plain"])
    gate = Gate(tmp_path / "gate")

    def interrupt() -> None:
        until(lambda: gate.arrived)
        os.kill(pid, signal.SIGINT)

    kernel = threading.Thread(target=interrupt)
    kernel.start()
    notebook.run(
        f"def endless(tile):\n    open({str(tmp_path / 'gate')!r} + f'/{{os.getpid()}}.x', 'w').close()\n"
        "    while True:\n        tile = tile + 1.0"
    )
    lines = notebook.error("np.map(endless, np.arange(3_000_000.0), dtype=float).sum().compute()")
    kernel.join()
    assert len(lines) <= 25
    assert any(line.startswith("KeyboardInterrupt") for line in lines)
    assert notebook.shown("float((np.arange(3_000_000.0) * 2).max())")["text/plain"] == "5999998.0"
    if where == "cluster":
        notebook.run("cluster.close()")
