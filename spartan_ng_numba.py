"""Arrays of the package as arguments of functions that numba compiles, by its entry point for extensions.

An array is to numba the NumPy array that it lends for the call: one function serves both, of whatever
signature, and it may be one that was compiled before. The package is NumPy inside of such a function. numba
types what is new to it by its class, but asks NumPy's class alone for an array's memory: who lends it is
asked where numba has refused.

This stands outside of the package: numba calls it in all processes that compile, and few of them import that.
"""

from __future__ import annotations

import sys
from abc import ABC
from types import ModuleType
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.boxing import unbox_array, unbox_complex
from numba.core.pythonapi import NativeValue, _unboxers
from numba.core.typing.typeof import Purpose, typeof_impl

_LENDS = "_exported"
"""The method of an array that lends its memory to who has it for a time, as buffers are lent."""
_REFUSAL = "can't unbox array from PyObject into native value.  The object maybe of a different type"


class Lender(ABC):  # noqa: B024  # its hook says all
    """The arrays of the package, which may have yet to be imported."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return other.__module__.partition(".")[0] == "spartan_ng" and hasattr(other, _LENDS)


def register() -> None:
    """Have numba know the arrays and the package."""
    typeof_impl.register(Lender)(_typeof_array)
    typeof_impl.register(ModuleType)(_typeof_module)
    _unboxers.functions[types.Array] = _unbox
    _unboxers.functions[types.Complex] = _unbox_complex


def _typeof_array(array: Any, context: Any) -> Any:
    """The type of the memory. Numbers that have yet to be computed say that they are NumPy's."""
    return typeof_impl(getattr(array, _LENDS)(True), context)


def _typeof_module(module: ModuleType, context: Any) -> Any:
    """NumPy's module for ours, and for what a script has as its `numpy`."""
    package, *inner = module.__name__.split(".")
    if context.purpose is Purpose.constant and (package == "spartan_ng" or module.__name__ == "numpy"):
        numpys = sys.modules.get(".".join(["numpy", *inner[-1:]]))
        return None if numpys is None else types.Module(numpys)
    return getattr(module, "_numba_type_", None)


def _unbox(kind: Any, given: Any, c: Any) -> Any:
    """Code for NumPy's arrays as numba has it; then, where that has failed, for the memory that is lent.

    What is called is named, not referred to: numba keeps code in files, and other processes have
    no such class.
    """
    found = unbox_array(kind, given, c)
    value = cgutils.alloca_once_value(c.builder, found.value)
    fails = cgutils.alloca_once_value(c.builder, found.is_error)
    with c.builder.if_then(found.is_error, likely=False):
        c.pyapi.err_clear()
        writes = c.pyapi.bool_from_bool(ir.Constant(ir.IntType(1), 1))
        memory = c.pyapi.call_method(given, _LENDS, (writes,))
        c.pyapi.decref(writes)
        with c.builder.if_else(cgutils.is_not_null(c.builder, memory)) as (lent, refused):
            with lent:
                found = unbox_array(kind, memory, c)
                c.builder.store(found.value, value)
                c.builder.store(found.is_error, fails)
                c.pyapi.decref(memory)
            with refused:
                c.pyapi.err_clear()
                c.pyapi.err_set_string("PyExc_TypeError", _REFUSAL)
    return NativeValue(c.builder.load(value), is_error=c.builder.load(fails))


def _unbox_complex(kind: Any, given: Any, c: Any) -> Any:
    """Code for what Python makes a complex number of: numba takes no other class's imaginary part."""
    number = c.pyapi.call_function_objargs(c.pyapi.get_c_object("PyComplex_Type"), (given,))
    value = cgutils.alloca_once(c.builder, c.context.get_value_type(kind))
    fails = cgutils.alloca_once_value(c.builder, cgutils.true_bit)
    with c.builder.if_then(cgutils.is_not_null(c.builder, number)):
        found = unbox_complex(kind, number, c)
        c.builder.store(found.value, value)
        c.builder.store(found.is_error, fails)
        c.pyapi.decref(number)
    return NativeValue(c.builder.load(value), is_error=c.builder.load(fails))
