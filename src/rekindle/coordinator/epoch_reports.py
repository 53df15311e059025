"""What an epoch came to, from the reports of its slots: does it count, and what did it do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rekindle.coordinator.balance import imbalance
from rekindle.errors import ProtocolError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.metrics import MetricReading
from rekindle.protocol import StageReport


@dataclass(frozen=True)
class EpochSummary:
    """What observers (progress line, tests, pages) learn about an epoch that counted."""

    epoch: int
    duration_ms: float
    records_in: int
    records_out: int
    watermark: int | None
    more: bool
    #: What the slowest task of each stage took, summed over the stages.
    work_ms: float = 0.0
    #: Records that wait in front of tasks whose time was over (unaligned checkpoints).
    in_flight: int = 0
    #: What metrics of user functions said, of tasks that told it in this epoch.
    metrics: Sequence[MetricReading] = ()


def summarised(plan: JobPlan, epoch: int, duration_ms: float, reports: Sequence[StageReport]) -> EpochSummary:
    """The epoch's summary; ProtocolError if what was sent and what was received do not balance (I3)."""
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
    )


def _work_ms(reports: Sequence[StageReport]) -> float:
    slowest: dict[int, float] = {}
    for report in reports:
        for task in report.tasks:
            slowest[report.stage] = max(slowest.get(report.stage, 0.0), task.busy_ms)
    return sum(slowest.values())


def finished_tasks(reports: Sequence[StageReport]) -> set[tuple[int, int]]:
    """The tasks, as (chain, subtask), to which nothing will come any more."""
    return {(task.chain, task.subtask) for report in reports for task in report.tasks if task.finished}
