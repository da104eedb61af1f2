"""What is compiled is taken if it was compiled of the text that lies beside it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest

from spartan_ng.system import built


@pytest.mark.parametrize(("text", "is_taken"), [(b"here and there", True), (b"here", False)])
def test_what_was_compiled_of_another_text_is_refused(
    text: bytes, is_taken: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module: Any = SimpleNamespace(SOURCE=crc32(text))
    monkeypatch.setattr(built, "import_module", lambda name: module)
    (tmp_path / "here.c").write_text("here ")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "there.h").write_text("and there")
    found = built.built("here", str(tmp_path / "module.py"), "here.c", "parts/there.h")
    assert (found is module) == is_taken


def test_an_installed_package_has_no_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module: Any = SimpleNamespace(SOURCE=1)
    monkeypatch.setattr(built, "import_module", lambda name: module)
    assert built.built("here", str(tmp_path / "module.py"), "here.c") is module


def test_what_is_not_compiled_is_done_without() -> None:
    assert built.built("spartan_ng.not_there", __file__) is None
