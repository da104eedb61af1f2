"""A suite of six functions: what passes, fails, is skipped or ends the process is told apart."""

from __future__ import annotations

import textwrap
import tomllib

import pytest

from tests.numpy_suite import EXCEPTIONS, ROOT
from tests.outside.suite import Suite, outcome_of, run

NAME = "invented"
FILE = "tests/test_it.py"
TEXT = """
    import os
    import numpy as np
    import numpy._core.umath as behind
    import pytest
    from numpy._core.numeric import zeros
    from numpy.testing import assert_equal

    @pytest.mark.parametrize("n", [1, 2])
    def test_in_place(n):
        assert type(np.arange(n)).__module__.startswith("spartan_ng")
        assert type(zeros(n)) is type(np.arange(n))
        assert behind.add is np.add
        assert_equal(np.arange(n), list(range(n)))

    @pytest.mark.parametrize("n", [1, 2])
    def test_of_one_case(n):
        assert n == 1, "two is too much"

    @pytest.mark.skip
    def test_skipped():
        raise AssertionError

    def test_dies():
        os._exit(3)

    def test_listed():
        raise AssertionError

    def test_small():
        assert (np.arange(2) + 1).nbytes == 16
"""
LIST = """
    [[cannot]]
    why = "it is invented"
    tests = ["tests/test_it.py::test_listed"]

    [[cannot]]
    why = "only when all is lazy"
    only = "lazy"
    tests = ["tests/test_it.py::test_small"]
"""


@pytest.fixture
def make(tmp_path):
    root = tmp_path / NAME
    (root / "tests").mkdir(parents=True)
    (root / "__init__.py").write_text("")  # and none beside the tests, as in numpy._core
    (root / FILE).write_text(textwrap.dedent(TEXT))
    listed = tmp_path / "list.toml"
    listed.write_text(textwrap.dedent(LIST))

    def suite(mode):
        options = ["--in-place", str(root)] + (["--lazy"] if mode == "lazy" else [])
        return Suite(root, listed, options, {}, mode)

    return suite


@pytest.mark.slow
def test_what_became_of_each(make):
    found = outcome_of(make("default"), FILE)
    name = f"{FILE}::test_".__add__
    assert found.passed == {name("in_place"), name("small")}
    assert set(found.failed) == {name("of_one_case"), name("dies"), name("listed")}
    assert "two is too much" in found.failed[name("of_one_case")]
    assert "ended with 3" in found.failed[name("dies")]


@pytest.mark.slow
def test_the_list_is_held_to(make, capsys):
    assert run(make("lazy"), [FILE], 1, None) == 1
    said = capsys.readouterr().out
    assert "2 of     5" in said
    assert "2 fail unexpectedly" in said
    assert "1 pass that are listed" in said
    assert "1 it is invented" in said


def test_the_list_names_tests_of_numpy_with_reasons():
    groups = tomllib.loads(EXCEPTIONS.read_text())["cannot"]
    names = [name for group in groups for name in group["tests"]]
    assert len(set(names)) == len(names)
    assert all(len(group["why"]) > 20 for group in groups)
    for name in names:
        file, *path = name.split("::")
        source = (ROOT / file).read_text()
        assert all(
            f"{word} {part}" in source
            for word, part in zip(("class", "def")[-len(path) :], path, strict=True)
        )
