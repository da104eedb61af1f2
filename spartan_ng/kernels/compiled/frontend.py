"""Numba as far as LLVM's text: a function's module with those of the functions that it calls, and no further.

Numba would optimize the module of each function, once more with those that it calls, and make machine code of
every one, ready to be called by Python. Nobody calls them: `child` optimizes the whole, once. That takes half
of the time.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, PassManager
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class Library(CPUCodeLibrary):  # type: ignore[misc]
    """A module that nobody has optimized, and no engine knows."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """Numba's own, into a `Library`."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function; callers find it by an object that stands for what Python would call."""
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        found = state["cr"]
        stand_in = _stand_in()
        state.targetctx.insert_user_function(stand_in, found.fndesc, [state.library])
        state["cr"] = found._replace(cfunc=stand_in)
        return True


def _stand_in() -> Any:
    """A function in C that is no other's equal; nobody calls it."""
    return [].append


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline with its last part replaced."""

    def define_pipelines(self) -> list[Any]:
        """As numba's own, but for the lowering."""
        build = DefaultPassBuilder
        whole = PassManager("kernel")
        parts = (
            build.define_untyped_pipeline,
            build.define_typed_pipeline,
            build.define_nopython_lowering_pipeline,
        )
        for part in parts:
            whole.passes.extend(
                (_Lowering if p is NativeLowering else p, said) for p, said in part(self.state).passes
            )
        whole.finalize()
        return [whole]
