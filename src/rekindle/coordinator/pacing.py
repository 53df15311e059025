"""How much goes into an epoch, and when the next one starts. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EpochLimits:
    """Settings of the pace."""

    initial_records: int
    max_records: int
    target_ms: int
    min_interval_ms: int


@dataclass(frozen=True)
class Pace:
    """The cap on an epoch's records per source subtask; adapts to how long epochs take (I5).

    >>> limits = EpochLimits(initial_records=1000, max_records=100_000, target_ms=1000, min_interval_ms=100)
    >>> pace = Pace.start(limits)
    >>> pace.after(duration_ms=90, capped=True).max_records, pace.after(duration_ms=1500, capped=True).max_records
    (4000, 500)
    """

    limits: EpochLimits
    max_records: int

    @staticmethod
    def start(limits: EpochLimits) -> Pace:
        """Begin small: what a record costs is not known yet."""
        return Pace(limits, min(limits.initial_records, limits.max_records))

    def after(self, duration_ms: float, capped: bool) -> Pace:
        """The pace after an epoch that took so long; `capped`: the sources had more than the cap let in."""
        if duration_ms > self.limits.target_ms * 1.25:
            return replace(self, max_records=max(1, self.max_records // 2))
        if not capped:
            return self
        growth = 4 if duration_ms * 4 < self.limits.target_ms else 2 if duration_ms * 1.5 < self.limits.target_ms else 1
        return replace(self, max_records=min(self.limits.max_records, self.max_records * growth))

    def pause_ms(self, since_last_start_ms: float, backlog: bool) -> float:
        """How long to wait before the next epoch, so that a trickle of records does not run jobs back to back."""
        return 0.0 if backlog else max(0.0, self.limits.min_interval_ms - since_last_start_ms)
