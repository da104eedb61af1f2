"""Calls of users' functions: what one raises comes back with its traceback and the user's own line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from spartan_ng.errors import UserFunctionError
from spartan_ng.ops.functions import UserFunction


def call_user(fn: UserFunction, operator: str, *args: Any, **keywords: Any) -> Any:
    """Call a user's function for `operator`; raises `UserFunctionError` where it raises."""
    try:
        return fn.function(*args, **keywords)
    except Exception as error:
        raise UserFunctionError(
            f"{operator}: {fn} raised {type(error).__name__}: {error}\n"
            f"The function was put into the program at {fn.origin}\n\n{traceback.format_exc()}"
        ) from error


def guarded(fn: UserFunction, operator: str) -> Callable[..., Any]:
    """The function as a callable that raises `UserFunctionError`."""
    return lambda *args: call_user(fn, operator, *args)
