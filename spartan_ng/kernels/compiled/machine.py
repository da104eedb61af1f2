"""LLVM's text to machine code for this processor, optimized as numba has it done."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

LIBRARY = frozenset({"memcpy", "memmove", "memset"})
"""Functions that machine code may call: any process has them."""
_LEVEL = 3


@cache
def _machine() -> Any:
    """What code is made for: the processor it is made on, as numba describes it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # LLVM 22 makes a formula of a fold of one value over and over, then unrolls the loop around it, and drops
    # the case that this one goes round once: the fold stays as it began. So no loop is unrolled whose length
    # is not known; those that are vectorized need none.
    llvm.set_option("spartan_ng", "-unroll-runtime=false")
    triple = llvm.get_process_triple()
    target = llvm.Target.from_triple(triple)
    is_x86 = llvm.Target.from_default_triple().name.startswith("x86")
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=_LEVEL,
        reloc="static" if is_x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


def object_file(text: str, function: str, name: str) -> bytes:
    """The machine code of a module's `function` under a `name`, without what it does not use."""
    return bytes(_machine().emit_object(optimized(text, function, name)))


def optimized(text: str, function: str, name: str) -> Any:
    """The module with this function alone, as machine code is made of it."""
    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    for definition in (*module.functions, *module.global_variables):
        if not definition.is_declaration:
            definition.linkage = "internal"
    entry = module.get_function(function)
    entry.linkage, entry.name = "external", name
    unused = llvm.create_new_module_pass_manager()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(module, llvm.create_pass_builder(machine, llvm.PipelineTuningOptions()))
    for is_first in (True, False):
        builder = _passes(machine)
        passes = builder.getModulePassManager()
        if is_first:  # loops are turned and branches straightened early, or they are not vectorized
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
    called = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    if not called <= LIBRARY:
        raise LookupError(f"the kernel calls {', '.join(sorted(called - LIBRARY))}")
    return module


def _passes(machine: Any) -> Any:
    options = llvm.create_pipeline_tuning_options()
    options.speed_level = _LEVEL
    options.slp_vectorization = False
    options.loop_vectorization = True
    return llvm.create_pass_builder(machine, options)
