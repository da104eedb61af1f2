"""Errors that make trouble when they are asked what they say; for the tests of every place that asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _class(base: type[BaseException], say: Callable[[Any], Any]) -> type[BaseException]:
    return type(f"Own{base.__name__}", (base,), {"__str__": say})


def _raises(self: Any) -> str:
    raise RuntimeError("no text")


def _exits(self: Any) -> str:
    raise SystemExit(3)


def _cyclic() -> BaseException:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class _Anonymous(Exception, metaclass=_Nameless):
    pass


ERRORS: dict[str, Callable[[], BaseException]] = {
    "surrogates": lambda: ValueError("\udc80 bad"),
    "surrogate key": lambda: KeyError("\ud800"),
    "str of surrogates": lambda: _class(Exception, lambda _: "\udc80\ud800")(),
    "str raises": lambda: _class(Exception, _raises)(),
    "str exits": lambda: _class(Exception, _exits)(),
    "str is an int": lambda: _class(Exception, lambda _: 5)(),
    "own BaseException": lambda: _class(BaseException, lambda _: "mine")(),
    "BaseException whose str raises": lambda: _class(BaseException, _raises)(),
    "GeneratorExit": lambda: GeneratorExit("mine"),
    "group": lambda: BaseExceptionGroup("mine", [KeyboardInterrupt(), SystemExit()]),
    "cycle": _cyclic,
    "long": lambda: ValueError("x" * 3_000_000),
    "no name": lambda: _Anonymous("mine"),
    "plain": lambda: ValueError("mine"),
}

SAID = {
    "surrogates": r"ValueError: \\udc80 bad",
    "surrogate key": r"KeyError: \\ud800",
    "str of surrogates": r"OwnException: \\udc80\\ud800",
    "str raises": "OwnException: <unprintable OwnException>",
    "str exits": "OwnException: <unprintable OwnException>",
    "str is an int": "OwnException: <unprintable OwnException>",
    "own BaseException": "OwnBaseException: mine",
    "BaseException whose str raises": "OwnBaseException: <unprintable OwnBaseException>",
    "GeneratorExit": "GeneratorExit: mine",
    "group": "BaseExceptionGroup: mine",
    "cycle": "ValueError: one",
    "long": "ValueError: xxx",
    "no name": "_Anonymous: mine",
    "plain": "ValueError: mine",
}
"""What comes back of each, as a regular expression."""


def raiser(name: str) -> Callable[[Any], Any]:
    """A function for arrays that raises the error `name`."""
    make = ERRORS[name]

    def raises(tile: Any) -> Any:
        raise make()

    return raises
