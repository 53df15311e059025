"""The subtasks of a job: their states, and their figures from the reports of the epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rekindle.clock import Clock
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.errors import JobExecutionError
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.monitor.job_view import EdgeView, OperatorFigures, SubtaskView, VertexView
from rekindle.monitor.task_figures import RATE_SPAN_S, RunningTotal, SubtaskFigures
from rekindle.monitor.task_states import TaskStates
from rekindle.protocol import StageReport, TaskReport


class TaskBook:
    """The last reports of the subtasks of the current attempt. Not thread-safe."""

    def __init__(self, plan: JobPlan, clock: Clock) -> None:
        self._plan, self._clock = plan, clock
        self._states = TaskStates((chain.id, index) for chain in plan.chains for index in range(chain.parallelism))
        self._ended_s: float | None = None
        self._sender = {edge.id: plan.chain_of(edge.source).id for edge in plan.edges}
        #: Edges whose records come from Spark's own tasks: only those who receive them count them.
        self._from_frames = {edge.id for edge in plan.edges if not plan.has_tasks(plan.chain_of(edge.source))}
        self._into = {node.id: [edge.id for edge in plan.edges if edge.target == node.id] for node in plan.nodes}
        self._out_of = {node.id: [edge.id for edge in plan.edges if edge.source == node.id] for node in plan.nodes}
        self._reset()

    def _reset(self) -> None:
        now_s = self._clock.monotonic()
        self._ended_s = None
        self._figures = {
            (chain.id, index): SubtaskFigures(now_s)
            for chain in self._plan.chains
            for index in range(chain.parallelism)
        }
        #: The records over an edge: by (edge, sending subtask), chained edges included.
        self._passed: dict[tuple[int, int], RunningTotal] = {}
        self._began_s = now_s

    def attempt_entered(self, state: AttemptState) -> None:
        """The attempt has entered a state; its figures begin with RUNNING."""
        self._states.attempt_entered(state, self._clock.wall_ms())
        if state in (AttemptState.ACQUIRING, AttemptState.RUNNING):
            self._reset()
        if state in (AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED):
            self._ended_s = self._clock.monotonic()

    def failed(self, chain: Chain | None, error: BaseException) -> None:
        """A failure, in a subtask of `chain` if that is known."""
        if chain is not None and isinstance(error, JobExecutionError) and error.origin is not None:
            self._states.failed((chain.id, error.origin.subtask), self._clock.wall_ms())

    # -- epochs -------------------------------------------------------------------------------------------------------

    def epoch(self, summary: EpochSummary) -> None:
        """Add the reports of an epoch."""
        now_s, now_ms = self._clock.monotonic(), self._clock.wall_ms()
        waits = _work_after(summary.reports) if summary.more else {}
        for report in summary.reports:
            for task in report.tasks:
                self._task(task, waits.get(report.stage, 0.0), now_s)
                if task.finished:
                    self._states.finished((task.chain, task.subtask), now_ms)
            for count in report.sent:
                self._sent(count.edge, count.source, count.records, now_s)
            for count in report.received:
                if count.edge in self._from_frames:
                    self._sent(count.edge, 0, count.records, now_s)

    def _sent(self, edge: int, subtask: int, records: int, now_s: float) -> None:
        self._pass(edge, subtask, records, now_s)
        self._figures[self._sender[edge], subtask].records_out.add(records, now_s)

    def _task(self, task: TaskReport, waited_ms: float, now_s: float) -> None:
        figures = self._figures[task.chain, task.subtask]
        figures.records_in.add(task.records_in, now_s)
        figures.records_sunk.add(task.records_sunk, now_s)
        figures.busy_ms.add(task.busy_ms, now_s)
        figures.back_pressured_ms.add(waited_ms, now_s)
        figures.in_flight = task.in_flight
        figures.input_watermark, figures.output_watermark = task.input_watermark, task.watermark
        for edge, records in task.passed.items():
            self._pass(edge, task.subtask, records, now_s)

    def _pass(self, edge: int, subtask: int, records: int, now_s: float) -> None:
        total = self._passed.get((edge, subtask))
        if total is None:
            total = self._passed[edge, subtask] = RunningTotal(self._began_s)
        total.add(records, now_s)

    # -- views --------------------------------------------------------------------------------------------------------

    def vertices(self, vertices: Sequence[VertexView]) -> list[VertexView]:
        """The tasks with the states and figures of their subtasks."""
        now_s = self._ended_s if self._ended_s is not None else self._clock.monotonic()
        return [
            replace(vertex, subtasks=[self._subtask(chain, each, now_s) for each in vertex.subtasks])
            for chain, vertex in zip(self._plan.chains, vertices, strict=True)
        ]

    def _subtask(self, chain: Chain, subtask: SubtaskView, now_s: float) -> SubtaskView:
        return replace(
            subtask,
            status=self._states.status(chain.id, subtask.index),
            entered_ms=self._states.entered(chain.id, subtask.index),
            figures=self._figures[chain.id, subtask.index].figures(now_s),
            operators=self._operators(chain, subtask.index, now_s),
        )

    def _operators(self, chain: Chain, index: int, now_s: float) -> list[OperatorFigures]:
        """The records of each operator: of the head those of the task, of the others those of the edges before."""
        figures = []
        for node in chain.nodes:
            head = node == chain.head
            into = [self._figures[chain.id, index].records_in] if head else self._totals(self._into[node], index)
            out = self._totals(self._out_of[node], index)
            figures.append(
                OperatorFigures(
                    uid=self._plan.nodes[node].uid,
                    records_in=int(sum(each.value for each in into)),
                    records_out=int(sum(each.value for each in out)),
                    in_per_s=sum((each.per_s(now_s, RATE_SPAN_S) for each in into), 0.0),
                    out_per_s=sum((each.per_s(now_s, RATE_SPAN_S) for each in out), 0.0),
                )
            )
        return figures

    def _totals(self, edges: Sequence[int], index: int) -> list[RunningTotal]:
        return [self._passed[edge, index] for edge in edges if (edge, index) in self._passed]

    def edges(self, edges: Mapping[int, EdgeView]) -> list[EdgeView]:
        """The exchanges with their records."""
        now_s = self._ended_s if self._ended_s is not None else self._clock.monotonic()
        totals: dict[int, list[RunningTotal]] = {}
        for (edge, _), total in self._passed.items():
            totals.setdefault(edge, []).append(total)
        return [
            replace(
                view,
                records=int(sum(each.value for each in totals.get(edge, ()))),
                per_s=sum((each.per_s(now_s, RATE_SPAN_S) for each in totals.get(edge, ())), 0.0),
            )
            for edge, view in edges.items()
        ]


def _work_after(reports: Sequence[StageReport]) -> dict[int, float]:
    """For each stage the time that the stages after it took: with a backlog, its tasks waited for them.

    A task that could have gone on, if those after it were done sooner, is back-pressured in Flink's sense.

    >>> task = TaskReport(0, 0, 1, 0, 0, False, busy_ms=30.0)
    >>> _work_after([StageReport(1, 0, [], [], [], False), StageReport(1, 1, [], [], [task], False)])
    {0: 30.0, 1: 0}
    """
    work: dict[int, float] = {}
    for report in reports:
        work[report.stage] = max([work.get(report.stage, 0.0), *(task.busy_ms for task in report.tasks)])
    return {stage: sum(ms for later, ms in work.items() if later > stage) for stage in work}
