"""`a.flags`: what NumPy tells about an array's memory, as far as it has a meaning here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spartan_ng.api.core.chains import is_read_only

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_SHORT = {
    "C": "c_contiguous",
    "CONTIGUOUS": "c_contiguous",
    "F": "f_contiguous",
    "FORTRAN": "f_contiguous",
    "O": "owndata",
    "W": "writeable",
    "A": "aligned",
    "X": "writebackifcopy",
    "B": "behaved",
    "CA": "carray",
    "FA": "farray",
}
_SHOWN = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")


class Flags:
    """Flags by NumPy's attributes (`flags.c_contiguous`) and keys (`flags["C"]`)."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: ndarray) -> None:
        layout = array._layout()
        self.c_contiguous = self.contiguous = bool(layout.flags.c_contiguous)
        self.f_contiguous = self.fortran = bool(layout.flags.f_contiguous)
        self.owndata = not array._is_view() and (not array._cell.shared or array._cell.lent > 0)
        self.aligned = bool(layout.flags.aligned)
        self.writebackifcopy = False
        self._array = array

    @property
    def writeable(self) -> bool:
        """Whether elements may be written; may be set to False, and back."""
        cell = self._array._cell
        locked = is_read_only(self._array._views) or (cell.shared and not self._array._peek().flags.writeable)
        return not cell.frozen and not locked

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._array.setflags(write=bool(value))

    @property
    def fnc(self) -> bool:
        """In Fortran order, and not in C order."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """In one of the orders."""
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self) -> bool:
        """Aligned and writeable."""
        return self.aligned and self.writeable

    @property
    def carray(self) -> bool:
        """Behaved and in C order."""
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        """Behaved and in Fortran order only."""
        return self.behaved and self.fnc

    def __getitem__(self, name: str) -> bool:
        try:
            return bool(getattr(self, _SHORT.get(name, name.lower())))
        except AttributeError:
            raise KeyError("Unknown flag") from None

    def __setitem__(self, name: str, value: Any) -> None:
        if _SHORT.get(name, name.lower()) != "writeable":
            raise KeyError(f"flag {name!r} cannot be set")
        self.writeable = value

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"flag {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and repr(self) == repr(other)

    def __repr__(self) -> str:
        return "".join(f"  {name} : {self[name]}\n" for name in _SHOWN)


__all__ = ["Flags"]
