"""Nothing is missing, nothing is twice: what was sent must have been received, channel by channel (I3). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rekindle.protocol import EdgeCount


def imbalance(sent: Iterable[EdgeCount], received: Iterable[EdgeCount]) -> str | None:
    """A sentence about the channels whose counts differ; None if all agree.

    >>> imbalance([EdgeCount(0, 0, 1, 5)], [EdgeCount(0, 0, 1, 5)]) is None
    True
    >>> imbalance([EdgeCount(0, 0, 1, 5)], [EdgeCount(0, 0, 1, 7)])
    'edge 0 from subtask 0 to 1: 5 records sent, 7 received'
    """
    out, into = _totals(sent), _totals(received)
    wrong = [channel for channel in out.keys() | into.keys() if out[channel] != into[channel]]
    if not wrong:
        return None
    return "; ".join(
        f"edge {edge} from subtask {source} to {target}: "
        f"{out[edge, source, target]} records sent, {into[edge, source, target]} received"
        for edge, source, target in sorted(wrong)[:5]
    )


def _totals(counts: Iterable[EdgeCount]) -> Counter[tuple[int, int, int]]:
    totals: Counter[tuple[int, int, int]] = Counter()
    for count in counts:
        totals[count.edge, count.source, count.target] += count.records
    return totals
