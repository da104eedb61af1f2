"""The first programs of a process: NumPy computes them, step by step, until the session is there.

The optimizer, the kernels and the workers take a tenth of a second to import, in which NumPy does most of
what a first program asks for. So programs that NumPy is done with in less than twice that time do not wait:
after the wait, a plan without kernels would take half of NumPy's time. Nor is anything imported beside them
at first: Python runs one thread at a time, and BLAS waits for the slowest of its own, so that of short
programs it would take more than it could ever give back. Once NumPy has worked for as long as the import
takes, a thread imports the session, which is never dearer than twice the best. Where others keep processors
busy that thread gets little of them: once NumPy has worked beside it for twice the import, programs wait for
it. Of NumPy's steps the time counts that they took: memory may be several times as fast as predicted.
Numbers count before they are drawn: who draws many has much to do with them, and they are drawn by one
thread. What the allocator keeps for arrays to come is said at once, as many programs never ask for the
session. What the first plan needs comes next, and where kernels lie on disk, what loads them; for these
nobody waits. A program that came to plans when it started before will again: its import begins with that of
the package, so that its inputs are made meanwhile, and has those plans and their kernels ready.

Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching (Algorithmica 1988), the rule of renting and
buying.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Sequence
from functools import cache

from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.costs.tuned import AGAIN_S, BEGIN_S
from spartan_ng.ending import at_end
from spartan_ng.errors import SpartanError
from spartan_ng.garbage import collected_later
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.scratch import copy_fits
from spartan_ng.starts import came_to_plans, came_to_steps, note_steps
from spartan_ng.system.heap import begin_in_large_pages, go_on_in_large_pages, keep_freed
from spartan_ng.system.processes import before_fork, give_way_here

_WAITS = 2
"""A program waits for the import that NumPy would take so many times as long for, with what it has done
beside it."""

_ENOUGH_S = BEGIN_S
"""Seconds of NumPy's work from which on the session is imported beside the program."""

_NICENESS = 5
"""What the import gives way by: it has a quarter of a processor where others want all of it."""

_importing: threading.Thread | None = None
_there = threading.Event()
"""Set once that thread has imported the session."""
_worked_s = 0.0
"""Seconds that NumPy has worked on programs here."""
_beside_s = 0.0
"""Seconds that it has worked on them since the import began."""
_lock = threading.Lock()


def evaluate(nodes: Sequence[Node], order: Sequence[Node] | None) -> list[ArrayRef] | None:
    """The values of `nodes` by NumPy; None where they are for the session, which the caller imports."""
    global _worked_s, _beside_s
    if not _leaves_to_numpy():
        return None
    from spartan_ng.kernels.direct import as_array_ref, run_stepwise, stepwise_s

    order = topological(nodes) if order is None else order
    wanted = list(dict.fromkeys(node for node in nodes if node.data is None))
    if not all(copy_fits(node.nbytes) for node in wanted):  # also of one value, which is no work
        return None
    roots, order = _with_slices_pushed(wanted, order)
    if not _is_awaited(stepwise_s(roots, order)):
        return None
    begun, is_beside = time.perf_counter(), _importing is not None

    def begin_in_time() -> None:
        if _worked_s + time.perf_counter() - begun >= _ENOUGH_S:
            _begin()

    go_on_in_large_pages()
    found = run_stepwise(roots, order, after=begin_in_time)
    _leave_word()
    took_s = time.perf_counter() - begun
    _worked_s += took_s
    if is_beside:
        _beside_s += took_s
    values = {n: as_array_ref(n, v) for n, v in zip(wanted, found, strict=True)}
    return [values[node] if node.data is None else node.data for node in nodes]


def work_ahead(seconds: float) -> None:
    """NumPy is about to work for so long on what is not to be evaluated: that counts, too."""
    global _worked_s
    if _leaves_to_numpy():
        _worked_s += seconds
        if _worked_s >= _ENOUGH_S:
            _begin()


def is_dear(node: Node, stored: Container[Node]) -> bool | None:
    """Whether computing a step that the program holds takes longer than keeping it; None where the session
    says so."""
    if not _leaves_to_numpy():
        return None
    from spartan_ng.costs.profile import ONE_THREAD
    from spartan_ng.optimizer.fusion.keeping import is_dearer_than_writing

    return is_dearer_than_writing(node, stored, ONE_THREAD)


def is_made(node: Node) -> bool:
    """Whether NumPy makes a step's array on its way to whatever reads it: it is there then, and would be made
    again for what the program asks of it next."""
    if not _leaves_to_numpy():
        return False
    from spartan_ng.kernels.direct import stepwise_s

    return _is_awaited(stepwise_s([node], topological([node])))


def _is_awaited(predicted_s: float) -> bool:
    """Whether NumPy does so much, and the program does not wait for the session."""
    seconds = (_beside_s + predicted_s) / _WAITS
    return seconds <= AGAIN_S or (seconds <= BEGIN_S and not _comes_again())


@cache
def _comes_again() -> bool:
    """Whether the program has come to the session when it started before."""
    return came_to_plans()


@cache
def _leave_word() -> None:
    """As the program ends, leave word of its steps for its next start."""
    if not came_to_steps():
        at_end(note_steps)


def begin_again() -> None:
    """Import what the program has come to when it started before: the session, beside it; what runs steps."""
    if _comes_again():
        _begin()
    elif came_to_steps():
        import spartan_ng.kernels.direct
        import spartan_ng.optimizer.fusion.keeping  # noqa: F401


def wait() -> None:
    """Until the session is there, if it is being imported."""
    if _importing is not None and _importing is not threading.current_thread():
        _there.wait()


def _with_slices_pushed(wanted: list[Node], order: Sequence[Node]) -> tuple[list[Node], Sequence[Node]]:
    """Roots with the values of those `wanted`, and their graph: of what is read in part, NumPy makes that."""
    are_pushed = "push_slices" not in config.disabled_passes
    if are_pushed and any(n.op is Op.SLICE and _may_be_cut(n.inputs[0]) for n in order):
        from spartan_ng.optimizer.rewrite.slices import push_slices

        roots = push_slices(wanted)
        return roots, topological(roots)
    return wanted, order


def _may_be_cut(a: Node) -> bool:
    """Whether a slice may go below what it is taken of: elementwise results, lookups, and these turned."""
    return a.op is Op.MAP or "take" in (a.fn, a.op is Op.TRANSPOSE and a.inputs[0].fn)


def _leaves_to_numpy() -> bool:
    """Whether the program's settings leave work to NumPy on the driver."""
    asked = config.debug or config.check or config.memory_bytes is not None
    return config.small_bytes > 0 and config.kernels == "auto" and not asked


def import_beside(work: Callable[[], object]) -> threading.Thread | None:
    """Do what imports something on a thread of its own; not a daemon: an import that is cut off may crash.
    None where the program ends: nobody waits for threads that begin then."""
    if not threading.main_thread().is_alive():
        return None
    # These lock themselves before a fork, and let go behind it: after us, if they register before us.
    import concurrent.futures.thread  # noqa: F401
    import logging  # noqa: F401

    def importing() -> None:
        give_way_here(_NICENESS)
        with collected_later():
            try:
                work()
            except RuntimeError:
                # Nothing can be registered for the end that has come, and nobody asks any more.
                if threading.main_thread().is_alive():
                    raise

    def wait() -> None:
        if thread is not threading.current_thread():
            thread.join()

    thread = threading.Thread(target=importing, name="spartan_ng imports")
    before_fork(wait)  # the child would wait for ever for a lock that the import held
    thread.start()
    return thread


def _begin() -> None:
    """Import the session beside the program."""
    global _importing
    with _lock:
        if _importing is None:
            _importing = import_beside(_import)


def _import() -> None:
    try:
        # NumPy does what the program asks for until the session is there.
        import spartan_ng.kernels.direct  # noqa: F401
        from spartan_ng import session

        _there.set()
        if threading.main_thread().is_alive():
            session.current().planner.load_ahead()
        if config.compiles and threading.main_thread().is_alive():
            from spartan_ng.kernels.compiled.compile import compiler

            compiler.load_ahead()
    except (SpartanError, OSError):  # no cluster is found, say: who needs it is told
        pass
    finally:
        _there.set()


keep_freed(config.memory_bytes)
if config.memory_bytes is None:
    begin_in_large_pages()
