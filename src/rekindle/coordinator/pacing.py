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


#: How fast what is known of an epoch's overhead fades, per epoch: it is found out anew now and then.
_FADING = 0.9


@dataclass(frozen=True)
class Pace:
    """The cap on an epoch's records per source subtask; adapts to how long epochs take (I5).

    An epoch takes a while however few records it has, on a busy machine longer than its target. Fewer records would not
    make it shorter then, only more of them worth its while: the target is at least twice that overhead.

    >>> limits = EpochLimits(initial_records=1000, max_records=100_000, target_ms=1000, min_interval_ms=100)
    >>> pace = Pace.start(limits)
    >>> pace.after(duration_ms=90, capped=True).max_records, pace.after(duration_ms=1500, capped=True).max_records
    (4000, 500)
    """

    limits: EpochLimits
    max_records: int
    #: What the last epoch took, if the cap was halved for it.
    halved_after_ms: float | None = None
    #: What an epoch takes that no cap would shorten.
    overhead_ms: float = 0.0

    @staticmethod
    def start(limits: EpochLimits) -> Pace:
        """Begin small: what a record costs is not known yet."""
        return Pace(limits, min(limits.initial_records, limits.max_records))

    def after(self, duration_ms: float, capped: bool) -> Pace:
        """The pace after an epoch that took so long; `capped`: the sources had more than the cap let in."""
        if not capped:  # it was not the cap that made it so long, or so short
            return replace(self, halved_after_ms=None)
        overhead_ms = min(self.overhead_ms * _FADING, duration_ms)
        target_ms = max(self.limits.target_ms, 2 * overhead_ms)
        if duration_ms > target_ms * 1.25:
            return self._shortened(duration_ms, overhead_ms)
        growth = 4 if duration_ms * 4 < target_ms else 2 if duration_ms * 1.5 < target_ms else 1
        return replace(self._times(growth), halved_after_ms=None, overhead_ms=overhead_ms)

    def _shortened(self, duration_ms: float, overhead_ms: float) -> Pace:
        if self.halved_after_ms is not None and duration_ms > 0.8 * self.halved_after_ms:
            # Half the records took as long: it is not they that take the time.
            return replace(self._times(2), halved_after_ms=None, overhead_ms=duration_ms)
        fewer = max(1, self.max_records // 2)
        return replace(self, max_records=fewer, halved_after_ms=duration_ms, overhead_ms=overhead_ms)

    def _times(self, growth: int) -> Pace:
        return replace(self, max_records=min(self.limits.max_records, self.max_records * growth))

    def pause_ms(self, since_last_start_ms: float, backlog: bool) -> float:
        """How long to wait before the next epoch, so that a trickle of records does not run jobs back to back."""
        return 0.0 if backlog else max(0.0, self.limits.min_interval_ms - since_last_start_ms)
