"""The one compiled file: what the package does without, only slower, where it cannot be built.

Everything else about the package stands in pyproject.toml.
"""

from pathlib import Path
from zlib import crc32

import numpy as np
from setuptools import Extension, setup

SOURCE = "spartan_ng/api/core/_quick.c"

setup(
    ext_modules=[
        Extension(
            "spartan_ng.api.core._quick",
            [SOURCE],
            include_dirs=[np.get_include()],
            define_macros=[("SOURCE", str(crc32(Path(SOURCE).read_bytes())))],  # which text was compiled
            optional=True,
        )
    ]
)
