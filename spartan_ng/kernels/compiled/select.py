"""Choose between the interpreter, numexpr's programs and compiled loops for a task, and have compiled what is
worth it.

The rule: a stage that the interpreter has worked on for `HOT_S` seconds in all will be run again, and is
compiled in the background, once kernels would have saved all stages together `MISSED` times as much; the
first run that finds all its kernels ready uses them. A run that is predicted to be long waits for its kernels
where these pay within it (`Compiler.wait_if_worth`). One that is predicted to take `SOON_S` uses kernels that
lie on disk; if there are none, they are compiled when the program has ended (`heir`), and its next start has
them from the first run on. A run never changes its tier under way, so that runs of one plan give the same
bits once the tier is settled. Where numexpr is asked for, its programs take the place of rows, and give the
same bits. Neither programs nor compiled loops report floating-point errors: where NumPy's error state asks
for more than warnings, the interpreter stays.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import WHOLE, Box, box_of
from spartan_ng.arrays.sparse import csr_array
from spartan_ng.config import config
from spartan_ng.costs.choices import COMPILED_ROWS, HOT_S, LONG_RUN_S, SOON_S
from spartan_ng.error_state import is_strict
from spartan_ng.kernels.blocks import Cut, block_sizes, cut_tile
from spartan_ng.kernels.body import Body
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from spartan_ng.kernels.compiled.formulas import OF_OUR_OWN
from spartan_ng.kernels.compiled.prepared import Compiled, Signature, signature
from spartan_ng.kernels.compiled.proof import flaw
from spartan_ng.kernels.compiled.proved import known_proofs
from spartan_ng.kernels.compiled.sampled import Sampled, SparseSignature, prepare_sampled, sparse_signature
from spartan_ng.kernels.compiled.sampled_proof import flaw_at_nonzeros
from spartan_ng.kernels.compiled.segments import VIEWS, NumpyStep, Segment, Step, compiles, split
from spartan_ng.kernels.compiled.trust import Trust
from spartan_ng.kernels.formats import is_sparse_block
from spartan_ng.kernels.packed import ELEMENTS, LOOKUPS, WORDS, way_of
from spartan_ng.plan.cascade import scanned_rows
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages import Fused, Pass, ScanTile, ScanTotals
from spartan_ng.plan.stages.passes import row_operations

_LAYOUTS = 8
"""Layouts of operands that a task keeps."""


_FAILED: dict[tuple[Fused, tuple[np.dtype[Any], ...]], str] = {}
"""Why stages over operands of these dtypes stay interpreted in this process, although they have kernels."""


class FittedKernel(Struct, frozen=True, eq=False):
    """A compiled stage and how its tile is cut for it."""

    body: Compiled
    cut: Cut

    @property
    def kernels(self) -> list[Kernel]:
        """All that must be compiled."""
        return self.body.kernels

    @property
    def calls_blas(self) -> bool:
        """Whether a matrix product is left to BLAS."""
        return self.body.calls_blas


class Tier:
    """One task's way from the interpreter to compiled loops."""

    def __init__(self, stage: Fused, tile: Box, expected_s: float = 0.0, saved: float = 1.0) -> None:
        """`expected_s`: what a run takes one thread of the interpreter, as predicted; 0 where nobody can.
        `saved`: the part of it that kernels save."""
        self.stage = stage
        self.tile = tile
        self._expected_s = expected_s
        self._saved = saved
        self._choices: dict[Signature | SparseSignature, FittedKernel | Sampled | None] = {}
        self._trust = Trust()
        self._bodies: dict[tuple[str, tuple[np.dtype[Any], ...]], Body] = {}
        self._is_sampled = stage.is_sampled
        self._is_left = stage.heavy or bool(exact_obstacle(stage))
        self._seconds = 0.0
        self._lock = threading.Lock()

    @property
    def is_hot(self) -> bool:
        """Whether the stage may be compiled by now."""
        known = self._seconds >= HOT_S or self._expected_s >= LONG_RUN_S
        return (known or config.kernels != "auto") and config.compiles

    @property
    def _pays(self) -> bool:
        """Whether the stage's kernels are worth starting the compiler's process for, where there is none."""
        is_long = self._expected_s * self._saved >= LONG_RUN_S
        return is_long or config.kernels != "auto" or compiler.pays

    def choose(
        self, operands: list[Any], error_state: dict[str, Any], threads: int = 1
    ) -> FittedKernel | Sampled | None:
        """The compiled stage for these operands, or None: interpret this run, on so many threads."""
        is_hot = self.is_hot
        if not is_hot and (self._expected_s < SOON_S * threads or not config.compiles):
            return None
        if is_strict(error_state):
            return None
        is_wanted = is_hot and self._pays
        if not (is_wanted or self._is_sampled or compiler.may_have_others):
            if (key := self._key(operands)) is not None:
                compiler.wish_at_end(self, partial(self._wished, key))
            return None
        choice = self.prepared(operands)
        if choice is None:
            return None
        kernels = choice.kernels
        if None not in [k.function for k in kernels]:
            return choice if self._is_trusted(choice, operands) else None
        waiting = [k for k in kernels if not k.settled]
        if not is_wanted and not all(map(compiler.is_kept, waiting)):
            compiler.wish(waiting, max(self._seconds, self._expected_s))
            return None
        for kernel in waiting:
            compiler.request(kernel)
        waiting = [k for k in waiting if not k.settled]  # what lies on disk is there at once
        if waiting and config.kernels == "compile":
            compiler.wait()
        elif waiting:
            compiler.wait_if_worth(waiting, self._saved_s(choice) / threads)
        failed = next((k for k in kernels if k.failure), None)
        if failed is not None:
            self._give_up(operands, f"compiling failed: {failed.reason}")
        ready = None not in [k.function for k in kernels]
        return choice if ready and self._is_trusted(choice, operands) else None

    def prepare_ahead(self, operands: list[Any], threads: int) -> None:
        """Lay the stage out for operands to come, and load its kernels, where `choose` will find them on disk
        and take them for the first run on so many threads."""
        if self._expected_s >= SOON_S * threads and config.compiles:
            choice = self.prepared(operands)
            if choice is not None and all(map(compiler.is_kept, choice.kernels)):
                for kernel in choice.kernels:
                    compiler.request(kernel)
                if isinstance(choice, FittedKernel) and known_proofs.recall(choice.body, signature(operands)):
                    with self._lock:
                        self._trust.admit(choice)

    def _saved_s(self, choice: FittedKernel | Sampled) -> float:
        """What the interpreter is predicted to take for what would be compiled."""
        if isinstance(choice, Sampled):
            return self._expected_s
        return self._expected_s * looped_share(self.stage, choice.body.steps)

    def prepared(self, operands: list[Any]) -> FittedKernel | Sampled | None:
        """The stage laid out for these operands, its kernels compiled or not; None where none are wanted."""
        if not config.compiles or self._is_left:
            return None
        if self._is_sampled:
            return self._sampled(operands)
        key = self._key(operands)
        return None if key is None else self._fitted(key)

    def _key(self, operands: list[Any]) -> Signature | None:
        """By what a loop over all elements is laid out; None where there is none for such operands."""
        if self._is_left or any(is_sparse_block(o) for o in operands):
            return None
        return signature([np.asarray(o) for o in operands])

    def _is_trusted(self, choice: FittedKernel | Sampled, operands: list[Any]) -> bool:
        """Whether a compiled stage may take the interpreter's place: it has to prove itself first."""
        what = f"the stage {self.stage.name!r}"

        def proof() -> str:
            said = _flaw(choice, operands)
            if not said and isinstance(choice, FittedKernel):
                known_proofs.note(choice.body, signature(operands))
            return said

        with self._lock:
            trusted = self._trust.of(choice, proof, what, choice.kernels)
        if not trusted:
            self._give_up(operands, "its kernel was wrong on a trial")
        return trusted

    def _give_up(self, operands: list[Any], why: str) -> None:
        _FAILED[self.stage, tuple(o.dtype for o in operands)] = why

    def interpreted(self, body: Body, operands: list[Any], error_state: dict[str, Any]) -> Body:
        """The body to interpret: `body`, or one with programs in it, which needs the same blocks."""
        if config.kernels != "numexpr" or self.stage.heavy or self._is_sampled:
            return body
        if any(type(o) is not np.ndarray for o in operands) or is_strict(error_state):
            return body
        key = tuple(o.dtype for o in operands)
        with self._lock:
            found = self._bodies.get(key)
            if found is None:
                from spartan_ng.kernels.virtual.programs import with_programs

                stage = with_programs(self.stage, list(key)).stage
                found = self._bodies[key] = body if stage is self.stage else Body(stage)
            return found

    def record(self, seconds: float) -> None:
        """The interpreter has worked on the task for so long."""
        self._seconds += seconds
        compiler.missed_s += seconds * self._saved

    def _fitted(self, key: Signature) -> FittedKernel | Sampled | None:
        return self._kept(key, lambda: prepare_stage(self.stage, self.tile, key))

    def _wished(self, key: Signature) -> tuple[Sequence[Kernel], float]:
        """The kernels for such operands, and the seconds that were worked without them."""
        choice = self._fitted(key)
        return () if choice is None else choice.kernels, max(self._seconds, self._expected_s)

    def _sampled(self, operands: list[Any]) -> FittedKernel | Sampled | None:
        if len(self.stage.rows) > COMPILED_ROWS:
            return None
        key = sparse_signature(self.stage, operands)
        return self._kept(key, lambda: prepare_sampled(self.stage, self.tile, operands))

    def _kept(
        self, key: Signature | SparseSignature, make: Callable[[], FittedKernel | Sampled | None]
    ) -> FittedKernel | Sampled | None:
        with self._lock:
            if key not in self._choices:
                if len(self._choices) >= _LAYOUTS:
                    self._choices.clear()
                    self._trust.clear()
                self._choices[key] = make()
            return self._choices[key]


def _flaw(choice: FittedKernel | Sampled, operands: list[Any]) -> str:
    if isinstance(choice, Sampled):
        return flaw_at_nonzeros(choice, operands)
    return flaw(choice.body, choice.cut, operands)


def looped_share(stage: Fused, steps: list[Step]) -> float:
    """The part of a stage's operations that compiled loops take over: calls of NumPy and BLAS take as long as
    before."""
    segments = [s for s in steps if isinstance(s, Segment)]
    looped = {i for s in segments for i in (*(i for i, _ in s.rows), *(e.register for e in s.endings))}
    rows = dict(enumerate(stage.rows, len(stage.reads)))
    rows |= {-1 - k: w.reducer for k, w in enumerate(stage.writes) if w.reducer is not None}
    dense = [None] * len(stage.reads)
    counts = dict(zip(rows, row_operations(stage.reads, stage.rows, stage.reducers, dense), strict=True))
    return sum(n for i, n in counts.items() if i in looped) / max(sum(counts.values()), 1)


def exact_obstacle(stage: Fused) -> str:
    """Why a stage that keeps the last bits is left to the interpreter; empty where compiled loops have them,
    too."""
    if not stage.exact:
        return ""
    if any(w.units for w in stage.writes) or any(r.kind == "fold" for r in stage.rows):
        return "config.reproducible: compiled folds have an order of their own"
    own = [str(r.fn) for r in stage.rows if r.fn in OF_OUR_OWN]
    if own:
        return f"config.reproducible: compiled, {own[0]} has other last bits"
    return "config.reproducible: loops over non-zeros have an order of their own" if stage.is_sampled else ""


def prepare_stage(stage: Fused, tile: Box, operands: Signature) -> FittedKernel | None:
    """A stage laid out for a tile and its operands; None where there is nothing worth compiling."""
    if len(stage.rows) > COMPILED_ROWS:
        return None
    steps = split(stage, [d for d, _, _ in operands])
    if not compiles(steps, stage):
        return None
    sizes = block_sizes(stage, tile, _held(stage, steps), calls=_calls_numpy(stage, steps))
    body = Compiled(stage, tile, sizes, operands, steps)
    cut = cut_tile(stage, tile, sizes, together=True)
    if body.is_whole:
        body.tabulate(cut)
    return FittedKernel(body, cut)


def _held(stage: Fused, steps: list[Step]) -> frozenset[int]:
    """The registers that lie in memory between steps, and the reads that several steps see."""
    first = len(stage.reads)
    seen: Counter[int] = Counter()
    held: set[int] = set()
    for step in steps:
        if isinstance(step, Segment):
            seen.update({o.source for o in step.operands})
            held.update(step.stores, (e.register for e in step.endings))
        else:
            seen.update(set(stage.rows[step.register - first].args))
            held.add(step.register)
    views = {i for i, row in enumerate(stage.rows, first) if row.kind in VIEWS}
    return frozenset((held | {r for r, n in seen.items() if n > 1}) - views)


def _calls_numpy(stage: Fused, steps: list[Step]) -> bool:
    """Whether some rows are NumPy's between compiled loops; views cost next to nothing."""
    first = len(stage.reads)
    return any(isinstance(s, NumpyStep) and stage.rows[s.register - first].kind not in VIEWS for s in steps)


def explain_tiers(stage: Fused, dtypes: list[np.dtype[Any]]) -> list[str]:
    """For people: what of a stage is compiled, and why the rest is not; reads have `dtypes`."""
    if obstacle := exact_obstacle(stage):
        return [f"interpreted ({obstacle})"]
    if len(stage.rows) > COMPILED_ROWS:
        return [f"interpreted: {len(stage.rows)} rows take too long to compile"]
    if stage.is_sampled:
        return _explain_sampled(stage, dtypes)
    out = []
    for step in split(stage, dtypes):
        if isinstance(step, NumpyStep):
            row = stage.rows[step.register - len(stage.reads)]
            if row.kind not in VIEWS:
                out.append(f"{row.fn or row.kind}: interpreted ({step.reason})")
            continue
        out.append(f"{' > '.join(step.names)}: {_when_compiled()}")
    return out


def _when_compiled() -> str:
    """Said of what has a compiled loop: by default that is used once it is known to be worth it."""
    return "compiled" if config.kernels == "compile" else "compiled once hot"


def explain_plan_tiers(plan: Plan) -> dict[int, tuple[str, ...]]:
    """For each pass of a plan, which tiers run it until it is hot and then, and why not a higher one."""
    found: dict[int, tuple[str, ...]] = {}
    for i, stage in enumerate(plan.stages):
        if not isinstance(stage, Fused | ScanTotals | ScanTile):
            continue
        if isinstance(stage, ScanTotals) and stage.of_states:
            continue
        slots = [plan.slots[r.slot] for r in stage.reads]
        programs = _explain_programs(stage, [s.dtype for s in slots]) if _is_dense(stage, slots) else []
        if not config.compiles:
            found[i] = tuple(programs) or (f'interpreted (config.kernels is "{config.kernels}")',)
        elif find_spec("numba") is None:
            found[i] = (*programs, "interpreted (numba is not installed)")
        elif isinstance(stage, ScanTotals | ScanTile):
            found[i] = (_explain_scan(stage, plan),)
        elif stage.heavy:
            found[i] = ("BLAS on whole tiles",)
        elif any(s.format == "compressed" for s in slots):
            found[i] = (_explain_packed(stage, [s.format for s in slots]),)
        elif stage.driver < 0 and any(s.format != "dense" for s in slots):
            found[i] = ("interpreted (sparse operands)",)
        elif (failed := _FAILED.get((stage, tuple(s.dtype for s in slots)))) is not None:
            found[i] = (*programs, f"interpreted ({failed})")
        else:
            found[i] = (*programs, *explain_tiers(stage, [s.dtype for s in slots]))
    return found


def _is_dense(stage: Pass, slots: list[Slot]) -> bool:
    """Whether the interpreter, which programs are a part of, works on blocks of dense elements."""
    dense = all(s.format == "dense" for s in slots)
    return dense and isinstance(stage, Fused) and not stage.heavy and not stage.is_sampled


def _explain_programs(stage: Any, dtypes: list[np.dtype[Any]]) -> list[str]:
    """What of a dense stage runs in programs, where they are wanted, and why the rest does not."""
    if config.kernels != "numexpr":
        return []
    from spartan_ng.kernels.virtual.programs import with_programs

    found = with_programs(stage, dtypes)
    told = [f"{names}: in numexpr's virtual machine" for names in found.names]
    return [*told, *(f"{name}: interpreted ({reason})" for name, reason in found.left)]


def _explain_packed(stage: Fused, formats: list[str]) -> str:
    """How a stage goes over compressed operands."""
    packed = frozenset(i for i, f in enumerate(formats) if f == "compressed")
    if stage.driver not in packed or stage.driver_labels[0] in (WHOLE, *stage.whole):
        return "on elements, decompressed as a whole"
    return {
        WORDS: "over distinct values and their counts",
        LOOKUPS: "over distinct values, then in compiled loops over the codes of rows",
        ELEMENTS: "on elements, decompressed block by block",
    }[way_of(stage, packed)]


def _explain_scan(stage: ScanTotals | ScanTile, plan: Plan) -> str:
    """What runs a scan's own pass, or that for its parts' states."""
    rows = scanned_rows(stage, plan)
    names = " > ".join(str(r.fn) for r in rows if r.kind not in VIEWS and r.fn is not None)
    slots = [plan.slots[r.slot] for r in stage.reads]
    if any(s.format != "dense" for s in slots):
        return f"{names}: interpreted (sparse or compressed operands, on their elements)"
    from spartan_ng.kernels.compiled.scans import scan_obstacle

    reason = scan_obstacle(rows, [s.dtype for s in slots])
    if isinstance(stage, ScanTile) and stage.exact:
        reason = reason or "config.reproducible: compiled scans have an order of their own"
    return f"{names}: interpreted ({reason})" if reason else f"{names}: {_when_compiled()}"


def _explain_sampled(stage: Fused, dtypes: list[np.dtype[Any]]) -> list[str]:
    operands: list[Any] = [
        np.broadcast_to(np.empty((), d), r.shape) for d, r in zip(dtypes, stage.reads, strict=True)
    ]
    operands[stage.driver] = csr_array(stage.reads[stage.driver].shape, dtype=dtypes[stage.driver])
    found = prepare_sampled(stage, box_of(stage.domain), operands)
    names = " > ".join(str(r.fn) if r.fn is not None else "matmul" for r in stage.rows if r.sampled)
    return [f"{names}: {'interpreted' if found is None else _when_compiled()}, at non-zeros alone"]
