"""Kernels of the tests lie in a folder of their own, kept between runs."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("SPARTAN_NG_CACHE_DIR", str(Path(tempfile.gettempdir()) / "spartan_ng_test_kernels"))
