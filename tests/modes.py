"""Run a test twice: with NumPy doing small work at once, and with everything lazy.

Evaluation goes through the session; with SPARTAN_NG_ORACLE=1, through the reference interpreter, which also
checks what every node promises of its value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from spartan_ng.config import config
from tests import reference

if os.environ.get("SPARTAN_NG_ORACLE"):
    reference.install()


@pytest.fixture(params=["eager", "lazy"])
def mode(request) -> Iterator[str]:
    """NumPy at once, or nodes for everything."""
    small = config.small_bytes if request.param == "eager" else 0
    with config.override(small_bytes=small):
        yield request.param
