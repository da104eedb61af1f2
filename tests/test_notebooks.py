"""What a notebook shows: a bar, and errors with the user's own lines."""

from __future__ import annotations

import sys
import types

import numpy
import pytest

import spartan_ng as np
from spartan_ng import progress
from spartan_ng.config import config
from spartan_ng.errors import SpartanError


@pytest.fixture
def kernel(monkeypatch):
    """This process as the kernel of a notebook."""
    app = types.SimpleNamespace(initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", types.SimpleNamespace(IPKernelApp=app))


def test_a_notebook_has_a_bar(kernel, capsys):
    with config.override(progress=None):
        assert progress.wanted()
        with progress.progress("fit", "iteration") as bar:
            assert bar is not None
            bar._shows_from = 0.0
            bar(2, 7)
            assert bar._bar.n == 2
            assert bar._bar.total == 7


def test_elsewhere_there_is_none():
    assert not progress.in_notebook()


def deep(x):
    raise ValueError("mine\n" * 100)


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
