"""The state of the demo at one moment, which screens draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

#: The lines that the demo shows, and the stream whose rows each counts.
BRANCHES = {
    "events in batches": "batches",
    "duplicates": "dropped",
    "statuses": "statuses",
    "misfits": "rejected",
    "purchase windows": "purchases",
    "stock changes": "stock",
    "low-stock warnings": "low-stock",
    "back-orders": "back-orders",
}


@dataclass
class Act:
    """One fault of the demo."""

    what: str
    state: str = "to come"
    #: From the failure until all functions run again.
    seconds: float | None = None
    #: The checkpoint from which the job continued, as text.
    basis: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A completed checkpoint."""

    id: int
    kind: str
    duration_ms: int
    written_bytes: int
    state_bytes: int

    def __str__(self) -> str:
        kind = "savepoint" if "SAVEPOINT" in self.kind else "checkpoint"
        written, state = size(self.written_bytes), size(self.state_bytes)
        return f"{kind} {self.id} complete in {self.duration_ms} ms: {written} written, state {state}"


@dataclass
class Scene:
    """Everything that a screen shows."""

    title: str
    acts: list[Act]
    #: The lines that are shown, and the stream whose rows each counts.
    branches: dict[str, str] = field(default_factory=lambda: dict(BRANCHES))
    doing: str = "starting"
    total: int | None = None
    checkpoints: list[Checkpoint] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=monotonic)
    _past: list[tuple[float, dict[str, int]]] = field(default_factory=list)

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self.began

    def count(self, rows: dict[str, int]) -> None:
        """Record the number of visible rows; rates are those of the last ten seconds."""
        self.rows = rows
        now = self.elapsed()
        self._past = [each for each in self._past if now - each[0] < 10.0] + [(now, rows)]
        since, before = self._past[0]
        if now - since > 1.0:
            self.rates = {name: (rows[name] - before.get(name, 0)) / (now - since) for name in rows}


def size(count: int) -> str:
    """A number of bytes as text.

    >>> size(900), size(2_500_000)
    ('900 B', '2.5 MB')
    """
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
