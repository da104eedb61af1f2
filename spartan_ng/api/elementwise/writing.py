"""What universal functions write into `out` at once, where that is here, and nobody else's."""

from __future__ import annotations

from typing import Any

from spartan_ng.api.core import door
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.operands import small_values, values_here
from spartan_ng.api.core.telling import applied
from spartan_ng.errors import is_refusal
from spartan_ng.ops.elementwise import Elementwise


def evaluated_for(part: Handle, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """NumPy's values of what is written to a part of an array by one function, None if one has none.

    The array, and a single operand, that are still lazy are evaluated: a pass with the function in it would
    make the part elsewhere, to be copied, and the array and the operand besides.
    """
    if part._views:
        others = [a for a in args if isinstance(a, Handle) and a._cell is not part._cell]
        lazy = [a for a in others if a._found() is None]
        if len(lazy) < 2 and (lazy or part._cell.value is None):
            part._have_here(*lazy)
    return values_here(args)


class Writing:
    """How a universal function writes its results."""

    np: Any
    nout: int
    row: Elementwise

    def _target(self, out: Any) -> Any:
        """NumPy's array where the elements of `out` lie, if they are here, nobody else's, and written at
        once; else None."""
        if type(out) is not Late.ndarray:
            return None
        target = out._open()
        if target is not None and door.is_small(target.nbytes):
            return target
        if not door.is_written_here(out, self.row.flops):
            return None
        if target is None and out._cell.value is not None:
            return out._in_place()
        return target

    def _write(self, known: tuple[Any, ...], out: Any = None, where: Any = True, **asked: Any) -> bool:
        """Have NumPy write where the elements of `out` lie; whether it did."""
        targets = tuple(map(self._target, out)) if type(out) is tuple else (self._target(out),)
        if len(targets) != self.nout or type(None) in map(type, targets):
            return False
        large = not door.is_small(targets[0].nbytes)
        mask = [True] if where is True else (values_here if large else few_values)((where,))
        if mask is None:
            return False
        if where is True and not asked and self.nout == 1:
            applied(self.np, known, targets[0])
        else:
            applied(self.np, known, out=targets, where=mask[0], **asked)
        return True

    def _written(self, args: tuple[Any, ...], outs: tuple[Any, ...], where: Any, **asked: Any) -> bool:
        """`_write` for operands of several shapes, and whatever else NumPy is asked for."""
        if any(o is None for o in outs) or not door.is_open():
            return False
        try:
            known = small_values(args)
            if known is None and all(
                type(o) is Late.ndarray and door.is_written_here(o, self.row.flops) for o in outs
            ):
                known = evaluated_for(outs[0], args) if self.nout == 1 else values_here(args)
            return known is not None and self._write(known, outs, where, **asked)
        except ValueError as error:
            if not is_refusal(error):
                raise
            return False
