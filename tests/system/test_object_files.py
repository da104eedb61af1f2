"""Machine code in memory: what LLVM's loader would call, or nothing where more is needed than addresses."""

from __future__ import annotations

import ctypes
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from spartan_ng.system import object_files

llvm = pytest.importorskip("llvmlite.binding")
pytestmark = pytest.mark.skipif(not object_files.are_read_here(), reason="another system's object files")

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)
ENGINES: list[object] = []
TEXTS = {
    "nothing else": "define double @f(ptr %p, i64 %n) { ret double 0.0 }",
    "a number": """
define double @f(ptr %p, i64 %n) {
  %x = load double, ptr %p
  %y = fmul double %x, 0x3FF3C0CA428C59FB
  ret double %y
}""",
    "a table": """
@t = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
define double @f(ptr %p, i64 %n) {
  %a = getelementptr [4 x double], ptr @t, i64 0, i64 %n
  %x = load double, ptr %a
  ret double %x
}""",
    "wide constants": """
define double @f(ptr %p, i64 %n) {
  %x = load <4 x double>, ptr %p, align 8
  %y = fmul <4 x double> %x, <double 1.25, double 2.75, double 3.125, double 4.0625>
  store <4 x double> %y, ptr %p, align 8
  %z = extractelement <4 x double> %y, i64 2
  ret double %z
}""",
    "the C library": """
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
define double @f(ptr %p, i64 %n) {
  %q = getelementptr double, ptr %p, i64 4
  %a = call ptr @memcpy(ptr %q, ptr %p, i64 24)
  %b = call ptr @memset(ptr %p, i32 0, i64 16)
  %x = load double, ptr %q
  ret double %x
}""",
    "another function": """
define internal double @g(double %x) noinline { %y = fadd double %x, 3.25 ret double %y }
define double @f(ptr %p, i64 %n) {
  %x = load double, ptr %p
  %y = call double @g(double %x)
  ret double %y
}""",
}
BEYOND = {
    "a variable": """
@v = internal global double 1.0
define double @f(ptr %p, i64 %n) {
  %x = load volatile double, ptr @v
  store volatile double 7.0, ptr @v
  ret double %x
}""",
    "a function that nobody has": """
declare double @no_such_function_anywhere(double)
define double @f(ptr %p, i64 %n) {
  %x = call double @no_such_function_anywhere(double 1.0)
  ret double %x
}""",
}


def compiled(text: str, codemodel: str = "jitdefault") -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=2, reloc="static", codemodel=codemodel, jit=True)
    return bytes(machine.emit_object(llvm.parse_assembly(text)))


def by_llvm(content: bytes):
    """The address of the function in LLVM's memory, which stays."""
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    ENGINES.append(engine)
    return engine.get_function_address("f")


def answers(address: int) -> list[tuple[float, list[float]]]:
    """What a function gives, and leaves in the memory that it is given."""
    found = []
    for n in range(4):
        memory = np.linspace(-1.0, 2.0, 8)
        found.append((PROTOTYPE(address)(memory.ctypes.data, n), memory.tolist()))
    return found


def access(address: int) -> str:
    """What may be done with the memory there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        first, end = (int(x, 16) for x in span.split("-"))
        if first <= address < end:
            return rights
    return ""


@pytest.mark.parametrize("what", TEXTS)
def test_functions_are_those_that_llvm_loads(what: str) -> None:
    content = compiled(TEXTS[what])
    address = object_files.loaded(content, "f")
    assert address is not None
    assert access(address) == "r-xp"
    assert answers(address) == answers(by_llvm(content))


def test_each_has_memory_of_its_own() -> None:
    """The same code twice, and what others load later, change nothing."""
    contents = [compiled(text) for text in TEXTS.values()]
    expected = [answers(by_llvm(content)) for content in contents]
    addresses = [object_files.loaded(content, "f") for content in contents * 2]
    assert len({*addresses}) == len(addresses)
    assert [answers(a) for a in addresses if a is not None] == expected * 2


@pytest.mark.parametrize("what", BEYOND)
def test_what_needs_more_is_left_to_others(what: str) -> None:
    assert object_files.loaded(compiled(BEYOND[what]), "f") is None


def test_addresses_that_are_not_whole_are_left_to_others() -> None:
    assert object_files.loaded(compiled(TEXTS["a table"], "small"), "f") is None


def test_other_systems_files_are_left_to_others() -> None:
    content = compiled(TEXTS["a number"])
    for other in (
        b"\xcf\xfa\xed\xfe" + content[4:],  # Mach-O
        content[:18] + b"\xb7\x00" + content[20:],  # AArch64
        content[:4] + b"\x01" + content[5:],  # 32 bits
        b"",
    ):
        assert object_files.loaded(other, "f") is None
    assert object_files.loaded(content, "g") is None


@pytest.mark.parametrize("name", ["_mmap", "_mprotect", "_munmap"])
def test_systems_that_lack_a_function_have_others_load(name: str) -> None:
    with patch.object(object_files, name, None):
        assert not object_files.are_read_here()
        assert object_files.loaded(compiled(TEXTS["a number"]), "f") is None


def test_systems_that_allow_no_code_in_memory_have_others_load() -> None:
    content, given_back = compiled(TEXTS["a number"]), []
    with patch.multiple(
        object_files, _mprotect=lambda *given: -1, _munmap=lambda *given: given_back.append(given)
    ):
        assert object_files.loaded(content, "f") is None
    assert len(given_back) == 1
    with patch.object(object_files, "_mmap", lambda *given: object_files._FAILED):
        assert object_files.loaded(content, "f") is None
