"""Arrays that lie outside of the program, and are read box by box where they are worked on; a kind a file."""

from spartan_ng.sources.function import BoxFunction
from spartan_ng.sources.indexed import Indexed
from spartan_ng.sources.mapped import MappedFile, cut_header_said, npy_file, npz_member, unpacked_member
from spartan_ng.sources.source import Serial, Source, checked_dtype, read_box
from spartan_ng.sources.tile import SourceTile, Unread

__all__ = [
    "BoxFunction",
    "Indexed",
    "MappedFile",
    "Serial",
    "Source",
    "SourceTile",
    "Unread",
    "checked_dtype",
    "cut_header_said",
    "npy_file",
    "npz_member",
    "read_box",
    "unpacked_member",
]
