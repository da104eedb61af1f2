"""What is compiled: the package does without it, only slower, where it cannot be built.

Everything else about the package stands in pyproject.toml.
"""

from pathlib import Path
from zlib import crc32

import numpy as np
from setuptools import Extension, setup


def compiled(source: str, *parts: str) -> Extension:
    """A module of one file, and of the parts that it includes."""
    text = b"".join(Path(name).read_bytes() for name in (source, *parts))
    return Extension(
        source.removesuffix(".c").replace("/", "."),
        [source],
        depends=list(parts),
        include_dirs=[np.get_include()],
        define_macros=[("SOURCE", str(crc32(text)))],  # which text was compiled
        optional=True,
    )


setup(
    ext_modules=[
        compiled(
            "spartan_ng/api/core/_quick.c", *sorted(map(str, Path("spartan_ng/api/core/plain").glob("*.h")))
        ),
        compiled("spartan_ng/system/_faults.c"),
        compiled("spartan_ng/kernels/_dots.c"),
        compiled("spartan_ng/kernels/_sorts.c", "spartan_ng/kernels/_sorts.h"),
    ]
)
