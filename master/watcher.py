"""What the master hears and says, told to a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spartan_ng.arrays import Key
from spartan_ng.web.board import Board, LoggedLines
from spartan_ng.web.drawing import described
from spartan_ng.wire.messages import (
    Discard,
    Doing,
    DropOwner,
    Happened,
    Here,
    JobDone,
    JobError,
    JobFailed,
    Member,
    Members,
    Printed,
    Recovered,
    Release,
    Submit,
)


class Watcher:
    """Looks on; the master's state machine does not know of it."""

    def __init__(self, board: Board, members: Members) -> None:
        self._board = board
        self._members: tuple[Member, ...] = ()
        self._use(members)
        self.log = LoggedLines(board)

    def heard(self, peer: str, label: str, message: Any) -> None:
        """Somebody said something."""
        match message:
            case Here():
                self._board.vitals(
                    peer,
                    used=message.used_bytes,
                    free=message.free_bytes,
                    spilled=message.spilled_bytes,
                    received=message.received_bytes,
                    sent=message.sent_bytes,
                )
            case Happened():
                self._board.happened(peer, message.events)
            case Doing():
                self._board.doing(peer, message.text)
            case Submit():
                self._submitted(peer, label, message)
            case Release():
                self._board.released(_name((peer, serial)) for serial in message.serials)
            case Recovered():
                self._board.recovered(message.text)
            case JobError() if message.kind != "JobCancelled":  # it was told to end: the master says why
                self._board.logged(label, "error", message.message)
            case Printed():
                self._board.logged(label, "print", message.text)

    def said(self, message: Any) -> None:
        """The master said something, to one or to many."""
        match message:
            case JobDone():
                self._board.ended(message.job, "done")
            case JobFailed():
                state = "interrupted" if message.is_loss else "failed"
                self._board.ended(message.job, state, message.message)
            case Members():
                self._use(message)
            case Discard():
                self._board.released(map(_name, message.keys))
            case DropOwner():
                self._board.released(self._held(message.owner))
                for job in self._board.keys("jobs"):
                    if job.startswith(message.owner + "/"):  # those that have ended stay as they are
                        self._board.ended(job, "failed", "the client is gone")

    def _submitted(self, peer: str, label: str, message: Submit) -> None:
        plan = f"{peer}:{message.plan_key}"
        if message.described:
            self._board.described(plan, described(message.described))
        known = not message.plan
        self._board.submitted(message.job, label, message.line, plan, message.ranks, known)
        self._board.released(_name((peer, serial)) for serial in message.released)
        found = self._board.plan(plan)
        if found is not None:
            self._hold(message.inputs, found["inputs"], found["arrays"], "")
            self._hold(message.outputs, found["outputs"], found["arrays"], message.line)

    def _hold(
        self, keys: tuple[Key, ...], slots: Sequence[int], arrays: Sequence[dict[str, Any]], line: str
    ) -> None:
        """Arrays of a plan lie on the workers; those that `line` did not make may be known already."""
        for key, slot in zip(keys, slots, strict=True):
            row = {name: arrays[slot][name] for name in ("shape", "dtype", "tiling", "nbytes")}
            self._board.holds(_name(key), {**row, "line": line}, is_new=bool(line))

    def _held(self, owner: str) -> list[str]:
        return [key for key in self._board.keys("arrays") if key.startswith(owner + ":")]

    def _use(self, members: Members) -> None:
        if members.members == self._members and not members.lost:
            return
        for lost in members.lost:
            self._board.worker_went(lost.name, f"worker {lost.label} is gone")
        self._members = members.members
        for rank, member in enumerate(members.members):
            self._board.worker_came(member.name, rank, member.label, member.threads, member.memory_bytes)


def _name(key: Key) -> str:
    return f"{key[0]}:{key[1]}"
