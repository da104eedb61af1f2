"""Dtypes, constants and the functions about them: NumPy's own, taking our arrays where they take arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from spartan_ng.api.core.chains import seen_through, without_memory
from spartan_ng.api.core.conversion import as_handle, is_array_like
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.quick import AS_GIVEN, shortened

bool = bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
intc, intp, uintc, uintp = np.intc, np.intp, np.uintc, np.uintp
byte, short, int_, long, longlong = np.byte, np.short, np.int_, np.long, np.longlong
ubyte, ushort, uint, ulong, ulonglong = np.ubyte, np.ushort, np.uint, np.ulong, np.ulonglong
float16, float32, float64, longdouble = np.float16, np.float32, np.float64, np.longdouble
half, single, double = np.half, np.single, np.double
complex64, complex128, clongdouble = np.complex64, np.complex128, np.clongdouble
csingle, cdouble = np.csingle, np.cdouble
bytes_, str_, object_, void = np.bytes_, np.str_, np.object_, np.void
datetime64, timedelta64 = np.datetime64, np.timedelta64
generic, number, integer, signedinteger = np.generic, np.number, np.integer, np.signedinteger
unsignedinteger, inexact, floating = np.unsignedinteger, np.inexact, np.floating
complexfloating, flexible, character = np.complexfloating, np.flexible, np.character
dtype, finfo, iinfo, errstate = np.dtype, np.finfo, np.iinfo, np.errstate

pi, e, euler_gamma, inf, nan, newaxis = np.pi, np.e, np.euler_gamma, np.inf, np.nan, np.newaxis
True_, False_ = np.True_, np.False_
little_endian, ScalarType, sctypeDict, typecodes = (
    np.little_endian,
    np.ScalarType,
    np.sctypeDict,
    np.typecodes,
)

seterr, geterr, seterrcall, geterrcall = np.seterr, np.geterr, np.seterrcall, np.geterrcall
setbufsize, getbufsize = np.setbufsize, np.getbufsize
set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions
base_repr, binary_repr, typename, mintypecode = np.base_repr, np.binary_repr, np.typename, np.mintypecode
format_float_positional, format_float_scientific = np.format_float_positional, np.format_float_scientific
datetime_data, isdtype, issubdtype, promote_types = (
    np.datetime_data,
    np.isdtype,
    np.issubdtype,
    np.promote_types,
)
iterable, get_include, info, ndindex = np.iterable, np.get_include, np.info, np.ndindex
show_config, show_runtime = np.show_config, np.show_runtime
__array_namespace_info__, __array_api_version__ = np.__array_namespace_info__, np.__array_api_version__
s_, index_exp, exceptions = np.s_, np.index_exp, np.exceptions


def _kind(a: Any) -> Any:
    return a.dtype if isinstance(a, Handle) else a


@numpy_function(np.result_type, front=shortened(np.result_type, 8, AS_GIVEN))
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that results from combining arrays, dtypes and Python scalars."""
    return np.result_type(*(_kind(a) for a in arrays_and_dtypes))


@numpy_function(np.can_cast, front=shortened(np.can_cast, 3, AS_GIVEN, frozenset({"casting"})))
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> builtins.bool:
    """Whether a dtype can be cast to another."""
    return np.can_cast(_kind(from_), to, casting)


@numpy_function(np.min_scalar_type, front=shortened(np.min_scalar_type, 1, AS_GIVEN))
def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    """The least dtype that holds a scalar."""
    if isinstance(a, Handle):
        return a.dtype if a.ndim else np.min_scalar_type(a._force())
    return np.min_scalar_type(a)


@numpy_function(np.common_type, front=shortened(np.common_type, 8, AS_GIVEN))
def common_type(*arrays: Any) -> Any:
    """The inexact type common to arrays."""
    return np.common_type(*(np.zeros(0, a.dtype) if isinstance(a, Handle) else a for a in arrays))


@numpy_function(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> builtins.bool:
    """Whether writing to one array changes the other: both are views of one base, and overlap there."""
    seen = _in_one_base(a, b)
    return seen is not None and np.shares_memory(*seen, max_work=max_work)


def _in_one_base(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Two views of one base as NumPy's, or None where they are no such views; what is lent is NumPy's."""
    a, b = (as_handle(x) if is_array_like(x) else x for x in (a, b))
    a, b = (x._peek() if isinstance(x, Handle) and x._cell.shared else x for x in (a, b))
    if not (isinstance(a, Handle) and isinstance(b, Handle)):  # one is NumPy's, maybe over our memory
        a, b = (x._peek() if isinstance(x, Handle) and not x._cell.borrowed else x for x in (a, b))
        return None if a is None or b is None or isinstance(a, Handle) or isinstance(b, Handle) else (a, b)
    if a._cell is not b._cell or a._cell.frozen:  # of numbers NumPy makes arrays
        return None
    cell = a._cell
    known = cell.value is not None
    base = cell.value if known else without_memory(cell.shape, cell.order, cell.dtype)
    return seen_through(base, a._views), seen_through(base, b._views)


@numpy_function(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> builtins.bool:
    """Whether two arrays are views of one base whose bounds overlap there."""
    seen = _in_one_base(a, b)
    return seen is not None and np.may_share_memory(*seen, max_work=max_work)


__all__ = [
    "False_",
    "ScalarType",
    "True_",
    "__array_api_version__",
    "__array_namespace_info__",
    "base_repr",
    "binary_repr",
    "bool",
    "bool_",
    "byte",
    "bytes_",
    "can_cast",
    "cdouble",
    "character",
    "clongdouble",
    "common_type",
    "complex64",
    "complex128",
    "complexfloating",
    "csingle",
    "datetime64",
    "datetime_data",
    "double",
    "dtype",
    "e",
    "errstate",
    "euler_gamma",
    "exceptions",
    "finfo",
    "flexible",
    "float16",
    "float32",
    "float64",
    "floating",
    "format_float_positional",
    "format_float_scientific",
    "generic",
    "get_include",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "half",
    "iinfo",
    "index_exp",
    "inexact",
    "inf",
    "info",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer",
    "intp",
    "isdtype",
    "issubdtype",
    "iterable",
    "little_endian",
    "long",
    "longdouble",
    "longlong",
    "may_share_memory",
    "min_scalar_type",
    "mintypecode",
    "nan",
    "ndindex",
    "newaxis",
    "number",
    "object_",
    "pi",
    "printoptions",
    "promote_types",
    "result_type",
    "s_",
    "sctypeDict",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
    "shares_memory",
    "short",
    "show_config",
    "show_runtime",
    "signedinteger",
    "single",
    "str_",
    "timedelta64",
    "typecodes",
    "typename",
    "ubyte",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "unsignedinteger",
    "ushort",
    "void",
]
