"""Epochs: the number of records of one, the start of the next one, and whether one counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rekindle.errors import ProtocolError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.settings import EpochLimits
from rekindle.metrics import MetricReading
from rekindle.protocol import EdgeCount, StageReport, TaskReport

K = TypeVar("K")

#: Below this cap the cost of a record is hardly known: the epoch's work time decides, and the cap grows up to `_LEAP`
#: times.
_FEW_RECORDS = 1000
_LEAP = 32
#: The factor by which the measured overhead may rise per epoch.
_OVERHEAD_RISE = 1.1


@dataclass(frozen=True)
class Pace:
    """The cap on an epoch's records per source subtask; adapts to the duration of epochs (I5, I22).

    The first epoch has few records, because the cost of a record is not known. An epoch has an overhead however few
    records it has (`overhead_ms`), on a busy machine more than its target. Fewer records would not make it shorter
    then: the target is at least twice the overhead.

    >>> limits = EpochLimits(initial_records=1, max_records=100_000, target_ms=1000, min_interval_ms=100)
    >>> pace = Pace.start(limits)
    >>> cheap = pace.after(duration_ms=90, work_ms=0.1, capped=True)
    >>> cheap.max_records, cheap.after(duration_ms=91, work_ms=0.5, capped=True).max_records
    (32, 1024)
    >>> pace.after(duration_ms=340, work_ms=250, capped=True).max_records
    3
    """

    limits: EpochLimits
    max_records: int
    #: The duration of an epoch without its tasks' work; 0 before the first epoch.
    overhead_ms: float = 0.0

    @staticmethod
    def start(limits: EpochLimits) -> Pace:
        """The pace of the first epoch."""
        return Pace(limits, min(limits.initial_records, limits.max_records))

    def after(self, duration_ms: float, work_ms: float, capped: bool, left_over: bool = False) -> Pace:
        """The pace after an epoch.

        `work_ms`: the time of the slowest task of each stage, summed over the stages. `capped`: the sources had more
        records than the cap. `left_over`: the tasks could not process all records in the epoch's time.
        """
        pace = replace(self, overhead_ms=self._overhead(duration_ms - work_ms))
        if left_over:
            return pace._times(0.5)
        if not capped:  # the cap had no influence on the duration
            return pace
        target_ms = max(self.limits.target_ms, 2 * pace.overhead_ms)
        if duration_ms > target_ms * 1.25:
            return pace._times(min(0.5, target_ms / duration_ms))
        return pace._times(pace._growth(target_ms, duration_ms, work_ms))

    def _overhead(self, measured_ms: float) -> float:
        """The least measured overhead, rising slowly: a single long epoch has little influence."""
        if self.overhead_ms == 0.0:
            return max(1.0, measured_ms)
        return max(1.0, min(measured_ms, self.overhead_ms * _OVERHEAD_RISE))

    def _growth(self, target_ms: float, duration_ms: float, work_ms: float) -> int:
        if self.max_records < _FEW_RECORDS:
            room_ms = target_ms - self.overhead_ms
            return max(1, min(_LEAP, int(room_ms / max(work_ms, 0.001))))
        return 4 if duration_ms * 4 < target_ms else 2 if duration_ms * 1.5 < target_ms else 1

    def _times(self, factor: float) -> Pace:
        return replace(self, max_records=max(1, min(self.limits.max_records, int(self.max_records * factor))))

    def pause_ms(self, since_last_start_ms: float, backlog: bool) -> float:
        """How long to wait before the next epoch, so that few records do not cause Spark jobs back to back."""
        return 0.0 if backlog else max(0.0, self.limits.min_interval_ms - since_last_start_ms)


@dataclass(frozen=True)
class EpochSummary:
    """The numbers of an epoch that counted, for observers: progress line, tests, pages."""

    epoch: int
    duration_ms: float
    records_in: int
    records_out: int
    watermark: int | None
    more: bool
    #: The time of the slowest task of each stage, summed over the stages.
    work_ms: float = 0.0
    #: Records in flight: they wait in front of tasks whose time was over (unaligned checkpoints).
    in_flight: int = 0
    #: Readings of the metrics of user functions, from the tasks that reported them in this epoch.
    metrics: Sequence[MetricReading] = ()
    #: The lowest watermark of each alignment group.
    aligned: Mapping[str, int] = field(default_factory=dict)
    #: The nodes at the heads of chains that have input left.
    backlogged: frozenset[int] = frozenset()
    #: The stage that all readers of a source have reached, by the source's node.
    source_stages: Mapping[int, int] = field(default_factory=dict)
    #: What the slots reported, stage by stage.
    reports: Sequence[StageReport] = ()


def summarised(plan: JobPlan, epoch: int, duration_ms: float, reports: Sequence[StageReport]) -> EpochSummary:
    """The epoch's summary. Raises ProtocolError if the counts of sent and received records differ (I3)."""
    dataframe_edges = {edge.id for edge in plan.edges if plan.nodes[edge.source].kind is OperatorKind.SOURCE_DATAFRAME}
    wrong = imbalance(
        [count for report in reports for count in report.sent],
        [count for report in reports for count in report.received if count.edge not in dataframe_edges],
    )
    if wrong is not None:
        raise ProtocolError(f"Epoch {epoch} does not count: {wrong}.")
    tasks = [task for report in reports for task in report.tasks]
    sources = {chain.id for chain in plan.chains if chain.stage == 0}
    watermarks = [task.watermark for task in tasks if not task.finished]
    return EpochSummary(
        epoch=epoch,
        duration_ms=duration_ms,
        records_in=sum(task.records_in for task in tasks if task.chain in sources)
        + sum(count.records for report in reports for count in report.received if count.edge in dataframe_edges),
        records_out=sum(task.records_sunk for task in tasks),
        watermark=min(watermarks, default=None),
        more=any(report.more for report in reports),
        work_ms=_work_ms(reports),
        in_flight=sum(task.in_flight for task in tasks),
        metrics=[reading for task in tasks for reading in task.metrics],
        aligned=lowest_of_each(task.aligned for task in tasks),
        backlogged=frozenset(plan.chains[task.chain].head for task in tasks if task.backlog),
        source_stages=lowest_source_stages(plan, tasks),
        reports=reports,
    )


def lowest_of_each(reported: Iterable[Mapping[K, int]]) -> dict[K, int]:
    """The lowest value under each key: the watermark of an alignment group, for example.

    >>> lowest_of_each([{"orders": 7, "users": 3}, {}, {"orders": 5}])
    {'orders': 5, 'users': 3}
    """
    lowest: dict[K, int] = {}
    for each in reported:
        for key, value in each.items():
            lowest[key] = min(value, lowest.get(key, value))
    return lowest


def lowest_source_stages(plan: JobPlan, tasks: Iterable[TaskReport]) -> dict[int, int]:
    """The stage that all readers of a source have reached, by the source's node."""
    return lowest_of_each(
        {plan.chains[task.chain].head: task.source_stage} for task in tasks if task.source_stage is not None
    )


def _work_ms(reports: Sequence[StageReport]) -> float:
    slowest: dict[int, float] = {}
    for report in reports:
        for task in report.tasks:
            slowest[report.stage] = max(slowest.get(report.stage, 0.0), task.busy_ms)
    return sum(slowest.values())


def finished_tasks(reports: Sequence[StageReport]) -> set[tuple[int, int]]:
    """The tasks, as (chain, subtask), that have processed all their input."""
    return {(task.chain, task.subtask) for report in reports for task in report.tasks if task.finished}


def imbalance(sent: Iterable[EdgeCount], received: Iterable[EdgeCount]) -> str | None:
    """A text that names the channels whose counts differ; None if all agree.

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
