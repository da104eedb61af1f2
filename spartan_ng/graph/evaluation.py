"""The one way from the array API to the session: evaluate nodes to arrays with values.

The session begins to answer when it is imported (imports point from session to graph, never back). That is
when the first graph is evaluated: with the session come the optimizer, the kernels and the workers, which a
program that NumPy computes on the driver never meets.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Container, Sequence

from msgspec import Struct
from numpy import ndarray

from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.errors import SourceError, UserFunctionError, as_raised
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.sources.source import LOOPS


def _closed(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
    raise AssertionError("nobody evaluates yet: spartan_ng has not been imported")


def _unheard(seconds: float) -> None:
    pass


def _never(node: Node, stored: Container[Node] = ()) -> bool:
    return False


class Evaluator(Struct, frozen=True):
    """Who answers the array API.

    Parameters
    ----------
    evaluate : computes nodes together, given their graph where the caller has walked it
    in_process : whether programs run in this process, on the driver's own memory
    shares_files : whether the workers open the files that the driver does, under the same names
    worker_bytes : what arrays may take on a worker, and on all of them, and whether that was set as a limit
    is_sooner_here : whether the driver is done with so many steps on so many bytes that it has before workers
        would be, which do not have them
    lead : how many times as much as one worker all together do in a time
    ahead : is told for how many seconds NumPy is about to work on what no node stands for
    is_dear : whether computing a node again from data and stored nodes takes longer than keeping its value
    is_made : whether a node's array is made on the way to whatever reads it, and not fused away
    """

    evaluate: Callable[[Sequence[Node], Sequence[Node] | None], list[ArrayRef]]
    in_process: Callable[[], bool] = bool
    is_dear: Callable[[Node, Container[Node]], bool] = _never
    shares_files: Callable[[], bool] = bool
    worker_bytes: Callable[[], tuple[int, int, bool]] = lambda: (0, 0, False)
    is_sooner_here: Callable[[int, int], bool] = lambda steps, nbytes: False
    lead: Callable[[], float] = float
    ahead: Callable[[float], None] = _unheard
    is_made: Callable[[Node], bool] = _never


_evaluator = Evaluator(_closed)


def answer_by(evaluator: Evaluator) -> Evaluator:
    """Have another one answer; returns who did before."""
    global _evaluator
    before, _evaluator = _evaluator, evaluator
    return before


def in_process() -> bool:
    """Whether programs run in this process, on the driver's own memory."""
    return _evaluator.in_process()


def shares_files() -> bool:
    """Whether the workers open the files that the driver does, under the same names."""
    return _evaluator.shares_files()


def worker_bytes() -> int:
    """What arrays may take on a worker."""
    return _evaluator.worker_bytes()[0]


def together_bytes() -> int:
    """What arrays may take on all workers together."""
    return _evaluator.worker_bytes()[1]


def is_limited() -> bool:
    """Whether somebody has set what arrays may take; else it is what the machine has."""
    return _evaluator.worker_bytes()[2] or (config.memory_bytes is not None and in_process())


def is_dear(node: Node, stored: Container[Node]) -> bool:
    """Whether computing `node` again from data and `stored` nodes takes longer than keeping its value."""
    return _evaluator.is_dear(node, stored)


def is_sooner_here(steps: int, nbytes: int) -> bool:
    """Whether the driver is done with so many steps on so many bytes that it has before workers would be,
    which do not have them."""
    return _evaluator.is_sooner_here(steps, nbytes)


def lead() -> float:
    """How many times as much as one worker all together do in a time: those of one host share its cores."""
    return _evaluator.lead()


def is_made(node: Node) -> bool:
    """Whether a node's array is made on the way to whatever reads it, and not fused away."""
    return _evaluator.is_made(node)


def work_ahead(seconds: float) -> None:
    """Tell that NumPy is about to work for so long on what no node stands for."""
    _evaluator.ahead(seconds)


def evaluate(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
    """The values of `nodes`, computed together: shared steps run once. `order` is as from `topological`,
    where the caller has it.

    What a user's function raises says where, and the frames between it and here are nobody's: they are shown
    with `config.debug` alone. The function's own error is the `__context__`.

    SourceError in the thread of an event loop that a source is read by.
    """
    if get_ident() in LOOPS and in_process():
        _check_sources(nodes)
    try:
        return _evaluator.evaluate(nodes, order)
    except UserFunctionError as error:
        failed = error
    seen = as_raised(UserFunctionError, str(failed), failed.raised)
    seen.__context__ = failed.__cause__
    for note in getattr(failed, "__notes__", ()):
        seen.add_note(note)
    raise seen from (failed if config.debug else None)


def looked_over(order: Sequence[Node]) -> tuple[bool, bool, bool, bool]:
    """Whether there are work of NumPy's on whole lines, Python objects, turned arrays, and random numbers or
    sources in a graph. SourceError where a source of it has changed since it was opened."""
    has_lines = has_objects = has_turned = is_given = False
    for node in order:
        has_lines = has_lines or node.fn == "along_axis"
        ref = node.data
        value = None if ref is None else ref.value
        if node.op is Op.TRANSPOSE or (value.__class__ is ndarray and not value.flags.c_contiguous):
            has_turned = True
        has_objects = has_objects or node.dtype.hasobject
        source = None if ref is None else ref.source
        is_given = is_given or node.op is Op.RANDOM or source is not None
        if source is not None and source.is_written_to():
            raise SourceError(f"{source} has changed since it was opened")
    return has_lines, has_objects, has_turned, is_given


def _check_sources(nodes: Sequence[Node]) -> None:
    for node in topological(nodes):
        source = node.data.source if node.op is Op.DATA and node.data is not None else None
        if source is not None and source.waits_for_loop:
            raise SourceError(
                f"{source}: zarr asks for an array inside its own event loop, where nothing can be read; "
                "write it by spartan_ng.to_zarr, of xarray's by spartan_ng.xarrays.to_zarr, or give "
                "numpy.asarray(x)"
            )
