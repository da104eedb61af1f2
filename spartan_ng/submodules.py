"""NumPy's submodules under this package's name, as in `from spartan_ng.linalg import norm`.

Ours lie in the rooms of `api/`, and NumPy's own (`ma`, `typing`) are passed on: the names that Python looks
for have no files here. So a finder answers with the module that the attribute is: whoever imports
`spartan_ng.linalg` has the very module that `np.linalg` is. Finder and loader are no subclasses of those in
`importlib.abc`, which takes 4 ms to import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAMES = frozenset(
    {
        *("char", "core", "ctypeslib", "dtypes", "exceptions", "f2py", "fft", "lib", "linalg", "ma"),
        *("polynomial", "random", "rec", "special", "strings", "testing", "typing"),
    }
)
"""Attributes of this package that are modules, and no files of it."""


def package() -> ModuleType:
    """Ours with all its public names, for those of its rooms that show them in another way."""
    return sys.modules["spartan_ng"]


class _There:
    """Loads what is there already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """Have Python make one, for a moment."""

    def exec_module(self, module: ModuleType) -> None:
        """Put it in the place of the module that Python has made."""
        assert module.__spec__ is not None, "it was made of one"
        sys.modules[module.__spec__.name] = self._module


class _ModuleFinder:
    """Finds the modules that are attributes of this package, and what lies in them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What to load as `spartan_ng.linalg`; None of what is no business of ours."""
        package, _, below = fullname.partition(".")
        if package != "spartan_ng" or below.partition(".")[0] not in NAMES:
            return None
        module = named(below)
        if module is None:
            return None
        return ModuleSpec(fullname, _There(module), is_package=True)  # type: ignore[arg-type]


def named(below: str) -> ModuleType | None:
    """Our module of a name such as `random` or `polynomial.chebyshev`; None where there is none."""
    if below != "special":  # which NumPy has not
        try:
            importlib.import_module(f"numpy.{below}")  # what nobody has imported is no attribute yet
        except ModuleNotFoundError:
            return None
    found = package()
    for name in below.split("."):
        found = getattr(found, name)
    if found.__name__.startswith("spartan_ng."):  # Python looks in packages alone for what lies below
        found.__path__ = []
    return found


def open_submodules() -> None:
    """Have Python ask here."""
    sys.meta_path.insert(0, _ModuleFinder())
