"""Where arrays are written to, box by box, from the workers that make them; a kind a file."""

from spartan_ng.sinks.hdf5 import Hdf5File
from spartan_ng.sinks.npy import NpyFile
from spartan_ng.sinks.parquet import ParquetFolder
from spartan_ng.sinks.sink import Sink
from spartan_ng.sinks.zarr_store import ZarrPart, ZarrStore

__all__ = ["Hdf5File", "NpyFile", "ParquetFolder", "Sink", "ZarrPart", "ZarrStore"]
