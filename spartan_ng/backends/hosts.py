"""What the workers of a cluster can do, where several share the processors and the memory of one host.

Each worker says which processors of its host it may use, and what these do together. Workers with more
threads than their host has processors share these; so plans expect of all of them no more than of the hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import PART_NS
from spartan_ng.wire.messages import Member


class _Host(Struct, frozen=True):
    """The workers on one host, and what they have of it."""

    threads: int
    """Of all of them."""
    processors: int
    """That one or another may use."""

    def busy(self, threads: int) -> float:
        """Processors that so many of the threads keep busy when all work."""
        return min(self.threads, self.processors) * threads / self.threads


def profile(members: Sequence[Member]) -> Profile:
    """The memory of the smallest of these workers, the share of the work each can take, and hosts' rates.

    The share is by threads, of which a host runs as many as it has processors, and by memory where that is
    less. Rates are assumed where a worker does not say them, and one worker where there are none yet.
    """
    memory = min((m.memory_bytes for m in members if m.memory_bytes), default=0)
    found = Profile(workers=max(1, len(members)), weights=_weights(members))
    if memory:
        found = replace(found, memory_bytes=memory, limited=True)
    return _with_rates(found, members) if members and all(m.processors for m in members) else found


def _with_rates(found: Profile, members: Sequence[Member]) -> Profile:
    """With the rates of one worker that is alone on its host, on average, and of all together."""
    alone, together = [0.0, 0.0], [0.0, 0.0]
    for member, busy in zip(members, _busy(members), strict=True):
        for i, rate in enumerate(member.rates):
            each = rate / len(member.processors)
            alone[i] += each * min(_threads(member), len(member.processors)) / len(members)
            together[i] += each * busy
    (bytes_s, flops_s), (all_bytes_s, all_flops_s) = (
        [max(1, round(rate)) for rate in rates] for rates in (alone, together)
    )
    return replace(
        found,
        memory_bytes_s=bytes_s,
        flops_s=flops_s,
        all_bytes_s=all_bytes_s,
        all_flops_s=all_flops_s,
        part_ns=PART_NS,
    )


def _hosts(members: Sequence[Member]) -> dict[str, _Host]:
    """The hosts of workers by their names."""
    on: dict[str, list[Member]] = {}
    for member in members:
        on.setdefault(_host_of(member), []).append(member)
    return {
        host: _Host(sum(map(_threads, there)), len(set().union(*(m.processors for m in there))))
        for host, there in on.items()
    }


def _host_of(member: Member) -> str:
    """What is equal for workers of one host; one that does not say its host has one of its own."""
    return member.host or f"of {member.name}"


def _threads(member: Member) -> int:
    return member.threads or 1


def _busy(members: Sequence[Member]) -> list[float]:
    """Processors that each worker keeps busy when all work."""
    hosts = _hosts(members)
    return [hosts[_host_of(member)].busy(_threads(member)) for member in members]


def _weights(members: Sequence[Member]) -> tuple[int, ...]:
    """The workers' power in sixteenths of the strongest one's; empty where all are equal."""
    threads = _busy(members) if all(m.processors for m in members) else [m.threads for m in members]
    most = max(threads, default=0) or 1
    memory = max((m.memory_bytes for m in members), default=0) or 1
    power = [
        min((n or most) / most, (m.memory_bytes or memory) / memory)
        for n, m in zip(threads, members, strict=True)
    ]
    weights = tuple(max(1, round(16 * p)) for p in power)
    # Plans for workers that are alike cut evenly, and are found again.
    return weights if len(set(weights)) > 1 else ()
