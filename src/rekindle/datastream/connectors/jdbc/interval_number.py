"""The number of a checkpoint interval's rows, which their committable carries and the ledger repeats.

Numbers of one subtask rise: a later attempt has a higher number than an earlier one, and within an attempt they count
its intervals. A restore by hand begins a new timeline, whose numbers are apart (I14).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rekindle.datastream.connectors.sink_api import CommittableFile, InitContext


@dataclass(frozen=True)
class LedgerKey:
    """Names a row of the ledger: a subtask of a sink in a timeline.

    >>> LedgerKey.of(InitContext(job_name="shop", uid="orders", timeline="00000001-0a1b2c3d", subtask=2))
    LedgerKey(sink='shop/orders', timeline='00000001-0a1b2c3d', subtask=2)
    """

    sink: str
    timeline: str
    subtask: int

    @staticmethod
    def of(context: InitContext) -> LedgerKey:
        """The key of a writer."""
        return LedgerKey(f"{context.job_name}/{context.uid}", context.timeline, context.subtask)


@dataclass(frozen=True)
class IntervalNumber:
    """Names the rows of one interval for ever."""

    key: LedgerKey
    attempt: int
    count: int

    def committable(self, path: str, rows: int) -> CommittableFile:
        """Return the committable of this interval's file."""
        metadata = {**asdict(self.key), "attempt": self.attempt, "count": self.count, "rows": rows}
        return CommittableFile(path, metadata=metadata)

    @staticmethod
    def of(committable: Any) -> IntervalNumber:
        """Read a committable.

        >>> number = IntervalNumber(LedgerKey("shop/orders", "00000001-0a1b2c3d", 2), 3, 7)
        >>> IntervalNumber.of(number.committable("/scratch/interval-7", 100)) == number
        True
        """
        found = committable.metadata
        key = LedgerKey(found["sink"], found["timeline"], found["subtask"])
        return IntervalNumber(key, found["attempt"], found["count"])
