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


class Phase(StrEnum):
    """What the job does when the process is killed."""

    FLOWING = "records flowing"
    BARRIER = "barrier to completion"
    COMMIT = "commit"
    RESTORE = "restore"


#: The points at which a slot or a driver kills itself; for the broker, those at which a slot is paused meanwhile.
POINTS: dict[tuple[Victim, Phase], Sequence[CrashPoint]] = {
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
    (Victim.BROKER, Phase.BARRIER): [CrashPoint.BEFORE_SNAPSHOT, CrashPoint.AFTER_SNAPSHOT, CrashPoint.BEFORE_UPLOAD],
    (Victim.BROKER, Phase.COMMIT): [CrashPoint.BEFORE_COMMIT],
    (Victim.BROKER, Phase.RESTORE): [CrashPoint.AFTER_RESTORE, CrashPoint.BEFORE_RECOMMIT],
}


@dataclass(frozen=True)
class Kill:
    """One kill: of a kind of process, in a phase, at a point (None: at any moment while records flow)."""

    victim: Victim
    phase: Phase
    point: CrashPoint | None

    def order(self) -> str:
        """The content of the crash file: a slot is paused while the broker is killed."""
        assert self.point is not None
        process = Victim.DRIVER if self.victim is Victim.DRIVER else Victim.SLOT
        return f"{self.point.value}@{process}" + ("/stop" if self.victim is Victim.BROKER else "")


def plan_kills(seed: int, kills_each: int) -> list[Kill]:
    """The kills in a random order: `kills_each` per kind of process, over all phases if there are enough.

    >>> plan = plan_kills(seed=7, kills_each=10)
    >>> len(plan), len({(kill.victim, kill.phase) for kill in plan})
    (30, 12)
    """
    chance = random.Random(seed)
    kills = [_kill(victim, phase, chance) for victim in Victim for phase in _phases(kills_each, chance)]
    chance.shuffle(kills)
    return kills


def _phases(count: int, chance: random.Random) -> list[Phase]:
    """Each phase in turn, in a random order."""
    order = list(Phase)
    chance.shuffle(order)
    return [order[place % len(order)] for place in range(count)]


def _kill(victim: Victim, phase: Phase, chance: random.Random) -> Kill:
    points = POINTS.get((victim, phase))
    return Kill(victim, phase, chance.choice(points) if points else None)
