"""Load machine code, and call it: no compiler in this process, and LLVM's loader only where ours does not do.

An object file's function has numba's calling convention: it takes a place for its result, one for its
exception, and its arguments (the address of a table, and its shape), and gives a status. Calls release the
interpreter's lock.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.ending import at_end
from spartan_ng.system import object_files
from spartan_ng.texts import renamed

Function = Callable[[np.ndarray[Any, Any]], None]
"""A kernel: takes its table."""

_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
_NOWHERE = ctypes.create_string_buffer(16)
"""Where kernels put what they return, which is nothing."""
_first_byte: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer
_address = ctypes.addressof
"""The quickest way to the address of a contiguous array that may be written to: 0.25 microseconds."""
_LOADING = threading.Lock()
_ENGINES: list[Any] = []
"""Whose memory LLVM's kernels lie in."""


def begin() -> None:
    """Load the loader, where that is LLVM's: it takes longer than loading a kernel."""
    if not object_files.are_read_here():
        with _LOADING:
            import llvmlite.binding  # noqa: F401


def load_code(name: str, machine_code: bytes) -> Function:
    """The function `name` of an object file."""
    address = object_files.loaded(machine_code, name)
    if address is None:
        address = _loaded_by_llvm(name, machine_code)
    native = _PROTOTYPE(address)
    result = ctypes.addressof(_NOWHERE)
    exception = result + ctypes.sizeof(ctypes.c_void_p)

    def function(table: np.ndarray[Any, Any]) -> None:
        lines, columns = table.shape
        status = native(result, exception, _address(_first_byte(table)), lines, columns)
        assert status == 0, f"kernels raise nothing, but {name} has"

    found = renamed(function, name)
    found.__dict__["address"] = address
    return found


def address_of(function: Function) -> int:
    """Where a kernel's machine code lies, for those who call it without the interpreter."""
    address: int = function.__dict__["address"]
    return address


def _loaded_by_llvm(name: str, machine_code: bytes) -> int:
    """The address of a function in memory that stays, as kernels do."""
    with _LOADING:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        engine.finalize_object()
        _ENGINES.append(engine)
        return int(engine.get_function_address(name))


def target() -> str:
    """All of this machine that machine code depends on, in LLVM's words."""
    with _LOADING:
        import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features().flatten()
        return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


at_end(_LOADING.acquire)
"""Who loads finishes, and nobody begins to: LLVM survives no sudden end."""
