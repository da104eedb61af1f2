"""Kernels of the tests lie in a folder of their own, kept between runs; a compiler that compiles nothing."""

import os
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("SPARTAN_NG_CACHE_DIR", str(Path(tempfile.gettempdir()) / "spartan_ng_test_kernels"))


@pytest.fixture
def noted_compiler(monkeypatch):
    """A compiler in the place of this process's, none of whose kernels lies on disk, and what it is asked
    for: kernels "now", or "later"."""
    from spartan_ng.kernels.compiled import prepared, select
    from spartan_ng.kernels.compiled.compile import Compiler
    from spartan_ng.kernels.compiled.process import CompilerProcess

    fresh, asked = Compiler(), list[str]()
    monkeypatch.setattr(fresh, "request", lambda kernel: asked.append("now"))
    monkeypatch.setattr(fresh, "wish", lambda kernels, missed_s: asked.append("later"))
    monkeypatch.setattr(fresh, "is_kept", lambda kernel: False)
    monkeypatch.setattr(Compiler, "may_have_others", True)
    monkeypatch.setattr(CompilerProcess, "is_there", False)
    monkeypatch.setattr(select, "compiler", fresh)
    monkeypatch.setattr(prepared, "compiler", fresh)  # nobody else's kernels
    return fresh, asked
