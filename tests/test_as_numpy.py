"""Unmodified NumPy scripts run here, and their libraries keep NumPy."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pytest

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(tmp_path, text, *command):
    (tmp_path / "library.py").write_text("import numpy\nkind = numpy.zeros(1).__class__.__module__\n")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", *(command or ("spartan_ng.as_numpy",)), str(script), "7"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@functools.cache
def by_numpy(script):
    """What a script prints with NumPy."""
    found = io.StringIO()
    with contextlib.redirect_stdout(found), numpy.printoptions():
        runpy.run_path(str(script), run_name="__main__")
    return found.getvalue()


@pytest.mark.slow
def test_a_script_finds_numpys_version_and_submodules(tmp_path):
    """What scripts decide by, and ways to import that lead to one module."""
    version = numpy.__version__
    text = f"""
        import numpy as np, numpy.linalg as la, numpy.version
        from numpy import array, linalg, version as module
        from numpy.version import full_version
        from numpy import *

        np.float = float  # as old scripts go on
        assert np.__version__ == numpy.version.version == module.version == full_version == {version!r}
        assert np is numpy and np.__name__ == "numpy" and np.lib.NumpyVersion(np.__version__) >= "1.20.0"
        assert la is linalg is np.linalg and np.float is float and next(map(str, [1])) == "1"
        assert type(arange(3)) is type(array([1])) is np.ndarray
        assert np.ndarray.__module__.startswith("spartan_ng.") and "arange" in dir(np)
        assert callable(np.__config__.show)
        try:
            np.no_such_name
        except AttributeError as error:
            print(error)
    """
    assert "'no_such_name'" in run(tmp_path, text)


END = "-- end --\n"
TWICE = f"""
import sys
import numpy
from spartan_ng import as_numpy, config
script = sys.argv[1]
for small_bytes in (config.small_bytes, 0):
    config.small_bytes = small_bytes
    with numpy.printoptions(), numpy.errstate():
        as_numpy.run(script, [])
    print(end={END!r})
"""


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_scripts_print_what_they_print_with_numpy(script):
    """Unmodified scripts as people write them; then with nothing small: all goes through the optimizer."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TWICE, str(script)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    usual, planned, rest = done.stdout.split(END)
    assert usual == by_numpy(script)
    assert planned == by_numpy(script)
    assert rest == ""


SCRIPT = """
    import sys
    import numpy as np
    import numpy.linalg as la
    from numpy.random import default_rng
    from numpy.lib.stride_tricks import sliding_window_view
    import library, scipy.special

    def total(n):
        import numpy
        return numpy.arange(n).sum()

    a = np.ones((3, 3))
    assert __name__ == "__main__" and __file__.endswith("script.py")
    assert sliding_window_view(a, (2, 2)).shape == (2, 2, 2, 2)
    assert 0 <= default_rng(1).random() < 1
    print(type(a).__module__, type(total(3)).__module__, la.norm.__module__)
    print(library.kind, total(4), sys.argv[1])
"""


@pytest.mark.slow
def test_only_the_script_sees_another_numpy(tmp_path):
    module, inner, linalg, library, total, argument = run(tmp_path, SCRIPT)
    assert (module, inner) == ("spartan_ng.api.ndarray.array", "spartan_ng.api.core.numbers")
    assert linalg.startswith("spartan_ng.api")
    assert library == "numpy"
    assert (total, argument) == ("6", "7")


@pytest.mark.slow
def test_star_brings_numpys_names_only(tmp_path):
    text = """
        from numpy import *
        print(type(zeros(3)).__module__, map.__module__, filter.__module__)
    """
    assert run(tmp_path, text) == ["spartan_ng.api.ndarray.array", "builtins", "builtins"]


def test_missing_submodules_are_import_errors(tmp_path):
    text = """
        try:
            import numpy.no_such
        except ImportError as error:
            print(error.name)
    """
    assert run(tmp_path, text) == ["numpy.no_such"]


@pytest.mark.slow
def test_command(tmp_path):
    got = run(tmp_path, SCRIPT, "spartan_ng.cli", "run", "-n", "1", "--threads", "1", "--as-numpy")
    assert got[0] == "spartan_ng.api.ndarray.array"
    assert got[-2:] == ["6", "7"]
