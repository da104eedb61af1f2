"""What is compiled: the package does without it, only slower, where it cannot be built.

Everything else about the package stands in pyproject.toml.
"""

from pathlib import Path
from zlib import crc32

import numpy as np
from setuptools import Extension, setup

SOURCE = "spartan_ng/api/core/_quick.c"
PARTS = sorted(map(str, Path("spartan_ng/api/core/plain").glob("*.h")))
TEXT = b"".join(Path(name).read_bytes() for name in (SOURCE, *PARTS))

setup(
    ext_modules=[
        Extension(
            "spartan_ng.api.core._quick",
            [SOURCE],
            depends=PARTS,
            include_dirs=[np.get_include()],
            define_macros=[("SOURCE", str(crc32(TEXT)))],  # which text was compiled
            optional=True,
        )
    ]
)
