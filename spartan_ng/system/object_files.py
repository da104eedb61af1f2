"""Machine code of an object file, put into memory to be called, where that takes no linker.

LLVM's loader is a part of a library of a hundred megabytes, which takes longer to load than most programs of
NumPy's run. A kernel needs little of it: LLVM makes it for any place in memory ("large code model"), so that
all that is missing are whole addresses, of its own constants and of a few functions of the C library.

System V Application Binary Interface, AMD64 Architecture Processor Supplement, chapter 4.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from functools import cache

from msgspec import Struct

from spartan_ng.system import library
from spartan_ng.system.library import ADDRESS, INT, LONG, SIZE

_mmap = library.function("mmap", [ADDRESS, SIZE, INT, INT, INT, LONG], ADDRESS)
_munmap = library.function("munmap", [ADDRESS, SIZE])
_mprotect = library.function("mprotect", [ADDRESS, SIZE, INT])
_FAILED = ADDRESS(-1).value
_MACHINES = frozenset({"x86_64", "amd64"})
"""What the system calls the processors whose object files are read here."""
_IDENTITY = b"\x7fELF\x02\x01\x01"
"""ELF, 64 bits, the low byte first, version 1."""
_X86_64 = 62
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWINDING = 2, 4, 8, 0x70000001
"""Kinds of section: a table of symbols, one of places that wait for addresses, memory without content, and
what exceptions need to leave a function, which kernels never raise."""
_WRITE, _ALLOC = 1, 2
"""Flags of a section: it may be written to; it is to be in memory."""
_WHOLE_ADDRESS = 1
"""R_X86_64_64: a symbol's address and a number, in eight bytes."""
_UNDEFINED = 0
"""The section of a symbol that lies elsewhere."""
_NUMBER = struct.Struct("<Q")


class _Section(Struct, frozen=True):
    kind: int
    flags: int
    start: int
    size: int
    link: int
    target: int
    alignment: int


def are_read_here() -> bool:
    """Whether this system's object files are read here, as far as they need nothing else."""
    known = None not in (_mmap, _munmap, _mprotect) and hasattr(os, "uname")
    return known and os.uname().machine.lower() in _MACHINES


def loaded(content: bytes, name: str) -> int | None:
    """The address of the function `name` of an object file, in memory that stays until the process ends; None
    where somebody else has to load it: it is another system's, or needs more than addresses."""
    if not are_read_here() or content[: len(_IDENTITY)] != _IDENTITY:
        return None
    header = _HEADER.unpack_from(content)
    machine, at, count = header[2], header[6], header[12]
    if machine != _X86_64:
        return None
    fields = (_SECTION.unpack_from(content, at + i * _SECTION.size) for i in range(count))
    sections = [_Section(f[1], f[2], f[4], f[5], f[6], f[7], f[8]) for f in fields]
    places, size = _layout(sections)
    if not size:
        return None
    image = bytearray(size)
    for i, place in places.items():
        start = sections[i].start
        image[place : place + sections[i].size] = content[start : start + sections[i].size]
    return _placed(content, sections, places, image, name)


def _layout(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where the sections that are to be in memory lie there, and what they take; nothing where one of them is
    no code and no constant."""
    places: dict[int, int] = {}
    size = 0
    for i, section in enumerate(sections):
        if not section.flags & _ALLOC or not section.size or section.kind == _UNWINDING:
            continue
        if section.flags & _WRITE or section.kind == _NO_BITS or section.alignment > mmap.PAGESIZE:
            return {}, 0
        alignment = max(section.alignment, 1)
        places[i] = -(-size // alignment) * alignment
        size = places[i] + section.size
    return places, size


def _placed(
    content: bytes, sections: list[_Section], places: dict[int, int], image: bytearray, name: str
) -> int | None:
    """The address of a function of the `image`, once that is in memory with all its addresses."""
    assert _mmap is not None, "asked before"
    assert _munmap is not None, "asked before"
    assert _mprotect is not None, "asked before"
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _mmap(None, len(image), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base == _FAILED:
        return None
    entry = None
    if _addressed(content, sections, places, image, base):
        entry = _entry(content, sections, places, name)
    if entry is not None:
        ctypes.memmove(base, bytes(image), len(image))
        # Never to be written to and run at once, as systems that are careful ask.
        if not _mprotect(base, len(image), mmap.PROT_READ | mmap.PROT_EXEC):
            return int(base + entry)
    _munmap(base, len(image))
    return None


def _addressed(
    content: bytes, sections: list[_Section], places: dict[int, int], image: bytearray, base: int
) -> bool:
    """Put into an image that will lie at `base` the addresses that are missing; whether that was all."""
    for section in sections:
        if section.kind != _RELOCATIONS or section.target not in places:
            continue
        symbols = sections[section.link]
        for offset, info, addend in _RELOCATION.iter_unpack(_bytes(content, section)):
            symbol, kind = info >> 32, info & 0xFFFFFFFF
            found = _SYMBOL.unpack_from(content, symbols.start + symbol * _SYMBOL.size)
            if found[3] == _UNDEFINED:
                address = _of_c_library(_text(content, sections[symbols.link], found[0]))
            else:
                address = base + places[found[3]] + found[4] if found[3] in places else None
            if kind != _WHOLE_ADDRESS or address is None:
                return False
            _NUMBER.pack_into(image, places[section.target] + offset, (address + addend) % (1 << 64))
    return True


def _entry(content: bytes, sections: list[_Section], places: dict[int, int], name: str) -> int | None:
    """Where a symbol lies in the image."""
    for section in sections:
        if section.kind == _SYMBOLS:
            for at, _, _, where, value, _ in _SYMBOL.iter_unpack(_bytes(content, section)):
                if where in places and _text(content, sections[section.link], at) == name:
                    return places[where] + int(value)
    return None


def _bytes(content: bytes, section: _Section) -> bytes:
    return content[section.start : section.start + section.size]


def _text(content: bytes, section: _Section, at: int) -> str:
    """The name that begins there in a table of names."""
    start = section.start + at
    return content[start : content.index(b"\0", start)].decode()


@cache
def _of_c_library(name: str) -> int | None:
    """The address of a function of the C library."""
    found = library.function(name, [])
    return None if found is None else ctypes.cast(found, ADDRESS).value  # type: ignore[arg-type]
