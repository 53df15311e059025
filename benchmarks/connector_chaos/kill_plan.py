"""Which processes are killed, in which phase and where: a seeded plan, as data. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rekindle.crash_points import CrashPoint


class Victim(StrEnum):
    """The kind of process that is killed."""

    SLOT = "slot"
    DRIVER = "driver"
    BROKER = "broker"
    HBASE = "hbase"
    THRIFT = "thrift"
    POSTGRES = "postgres"

    @property
    def is_server(self) -> bool:
        """Whether the process is a server and not one of the job's own."""
        return self not in (Victim.SLOT, Victim.DRIVER)


class Phase(StrEnum):
    """What the job does when the process is killed."""

    FLOWING = "records flowing"
    BARRIER = "barrier to completion"
    COMMIT = "commit"
    RESTORE = "restore"


#: Points that only jobs reach whose sink commits with the checkpoints.
_OF_COMMITTERS = frozenset({CrashPoint.BEFORE_RECOMMIT, CrashPoint.AFTER_RECOMMIT})
#: The points at which a slot is paused while a server is killed.
_SERVER_POINTS: dict[Phase, Sequence[CrashPoint]] = {
    Phase.BARRIER: [CrashPoint.BEFORE_SNAPSHOT, CrashPoint.AFTER_SNAPSHOT, CrashPoint.BEFORE_UPLOAD],
    Phase.COMMIT: [CrashPoint.BEFORE_COMMIT],
    Phase.RESTORE: [CrashPoint.AFTER_RESTORE, CrashPoint.BEFORE_RECOMMIT],
}
#: The points at which a slot or a driver kills itself.
_OWN_POINTS: dict[tuple[Victim, Phase], Sequence[CrashPoint]] = {
    (Victim.SLOT, Phase.BARRIER): [
        CrashPoint.BEFORE_SNAPSHOT,
        CrashPoint.AFTER_SNAPSHOT,
        CrashPoint.BEFORE_UPLOAD,
        CrashPoint.AFTER_UPLOAD,
        CrashPoint.BEFORE_ACKNOWLEDGEMENT,
        CrashPoint.AFTER_ACKNOWLEDGEMENT,
    ],
    (Victim.SLOT, Phase.COMMIT): [CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT],
    (Victim.SLOT, Phase.RESTORE): [
        CrashPoint.BEFORE_RESTORE,
        CrashPoint.AFTER_RESTORE,
        CrashPoint.BEFORE_RECOMMIT,
        CrashPoint.AFTER_RECOMMIT,
    ],
    (Victim.DRIVER, Phase.BARRIER): [CrashPoint.BEFORE_CUT, CrashPoint.AFTER_CUT, CrashPoint.BEFORE_PUBLISH],
    (Victim.DRIVER, Phase.COMMIT): [CrashPoint.AFTER_PUBLISH, CrashPoint.BEFORE_NOTIFY, CrashPoint.AFTER_NOTIFY],
    (Victim.DRIVER, Phase.RESTORE): [CrashPoint.BEFORE_BEGINNING, CrashPoint.AFTER_BEGINNING],
}


@dataclass(frozen=True)
class Kill:
    """One kill: of a kind of process, in a phase, at a point (None: at any moment while records flow)."""

    victim: Victim
    phase: Phase
    point: CrashPoint | None

    def order(self) -> str:
        """The content of the crash file: a slot is paused while a server is killed."""
        assert self.point is not None
        process = Victim.DRIVER if self.victim is Victim.DRIVER else Victim.SLOT
        return f"{self.point.value}@{process}" + ("/stop" if self.victim.is_server else "")


def plan_kills(seed: int, kills_each: int, victims: Sequence[Victim], *, commits: bool) -> list[Kill]:
    """The kills in a random order: `kills_each` per kind of process, over all phases if there are enough.

    `commits`: the job's sink commits with the checkpoints.

    >>> plan = plan_kills(seed=7, kills_each=10, victims=[Victim.SLOT, Victim.DRIVER, Victim.BROKER], commits=True)
    >>> len(plan), len({(kill.victim, kill.phase) for kill in plan})
    (30, 12)
    """
    chance = random.Random(seed)
    kills = [_kill(victim, phase, chance, commits) for victim in victims for phase in _phases(kills_each, chance)]
    chance.shuffle(kills)
    return kills


def _phases(count: int, chance: random.Random) -> list[Phase]:
    """Each phase in turn, in a random order."""
    order = list(Phase)
    chance.shuffle(order)
    return [order[place % len(order)] for place in range(count)]


def _kill(victim: Victim, phase: Phase, chance: random.Random, commits: bool) -> Kill:
    points = _SERVER_POINTS.get(phase, ()) if victim.is_server else _OWN_POINTS.get((victim, phase), ())
    reached = [point for point in points if commits or point not in _OF_COMMITTERS]
    return Kill(victim, phase, chance.choice(reached) if reached else None)
