"""Matrices whose columns are dictionaries with codes, offsets or runs ("Compressed Linear Algebra")."""

from spartan_ng.compressed.compress import compress_columns, sample_columns
from spartan_ng.compressed.matrix import CompressedMatrix, is_compressed

__all__ = ["CompressedMatrix", "compress_columns", "is_compressed", "sample_columns"]
