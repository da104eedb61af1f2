"""Where arrays are written to, box by box, from the workers that make them; a kind a file."""

from spartan_ng.sinks.npy import NpyFile
from spartan_ng.sinks.sink import Sink
from spartan_ng.sinks.zarr_store import ZarrStore

__all__ = ["NpyFile", "Sink", "ZarrStore"]
