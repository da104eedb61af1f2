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

    __slots__ = ("_array", "_layout")

    def __init__(self, array: ndarray) -> None:
        self._array, self._layout = array, array._layout().flags

    c_contiguous = contiguous = property(lambda self: bool(self._layout.c_contiguous))
    f_contiguous = fortran = property(lambda self: bool(self._layout.f_contiguous))
    aligned = property(lambda self: bool(self._layout.aligned))
    writebackifcopy = property(lambda self: False)

    @property
    def owndata(self) -> bool:
        """Whether the memory is the array's own, also where it is lent."""
        cell = self._array._cell
        return not self._array._is_view() and (not cell.shared or cell.lent > 0)

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
        return bool(self.f_contiguous and not self.c_contiguous)

    @property
    def forc(self) -> bool:
        """In one of the orders."""
        return bool(self.f_contiguous or self.c_contiguous)

    @property
    def behaved(self) -> bool:
        """Aligned and writeable."""
        return bool(self.aligned and self.writeable)

    @property
    def carray(self) -> bool:
        """Behaved and in C order."""
        return bool(self.behaved and self.c_contiguous)

    @property
    def farray(self) -> bool:
        """Behaved and in Fortran order only."""
        return bool(self.behaved and self.fnc)

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
