"""Jobs whose life a test tells: a real plan and a real recorder, without slots, Spark and waiting."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from rekindle.common import Configuration
from rekindle.common.checkpoint_statistics import OperatorSnapshot, SubtaskSnapshot
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.statistics import CheckpointRecorder
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.coordinator.epoch_rules import EpochSummary, summarised
from rekindle.coordinator.job_events import (
    AttemptEntered,
    AttemptFailed,
    CheckpointChanged,
    EpochCounted,
    JobOver,
    LinePrinted,
    SlotAlive,
    SlotsClosed,
    SlotsConnected,
    StatusEntered,
)
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import FailureOrigin, JobExecutionError
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan
from rekindle.metrics import MetricKind, MetricReading
from rekindle.monitor.job_recorder import JobRecorder
from rekindle.protocol import EdgeCount, LogLine, SlotHeartbeat, SlotHello, StageReport, TaskReport
from rekindle.testing import ManualClock

JOB_ID = "0a1b2c3d" * 4
START_MS = 1_700_000_000_000


def plan_of_three_tasks(parallelism: int = 2, **settings: str) -> JobPlan:
    """Source, then by key a function, then a slow one behind a rebalance, chained with a filter and a sink."""
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    numbers = env.from_sequence(1, 100).name("numbers").uid("numbers")
    counted = numbers.key_by(lambda n: n % 3, key_type=int).map(lambda n: n).name("count").uid("count")
    counted.rebalance().map(lambda n: n).name("slow").filter(lambda n: True).name("keep").print()
    return build_plan(env._program("orders"))


class RecordedJob:
    """A job that runs as far as the test says; its clock stands still between the test's calls."""

    def __init__(self, plan: JobPlan | None = None, job_id: str = JOB_ID, spark_url: str | None = None) -> None:
        self.plan = plan or plan_of_three_tasks()
        self.job_id = job_id
        self.clock = ManualClock(START_MS)
        self.checkpoints = CheckpointRecorder(
            {self.plan.nodes[chain.head].uid: chain.parallelism for chain in self.plan.chains}
        )
        self.recorder = JobRecorder(
            job_id,
            self.plan,
            self.clock,
            "Restart deactivated.",
            checkpoints=self.checkpoints.overview,
            spark_url=spark_url,
        )
        self._epoch = 0

    def run(self, attempt: int = 1) -> RecordedJob:
        """Bring an attempt to RUNNING, with its slots."""
        for state in (AttemptState.ACQUIRING, AttemptState.STARTING_SLOTS):
            self.recorder.on_event(AttemptEntered(attempt, state))
        slots = range(self.plan.slots)
        hellos = [SlotHello(self.job_id, attempt, slot, 100 + slot, "10.0.0.1", "boot", "", 0) for slot in slots]
        self.recorder.on_event(SlotsConnected(hellos))
        for slot in slots:
            self.recorder.on_event(SlotAlive(slot, SlotHeartbeat(50_000_000 + slot, 1.5)))
        self.recorder.on_event(AttemptEntered(attempt, AttemptState.DEPLOYING))
        self.recorder.on_event(AttemptEntered(attempt, AttemptState.RUNNING))
        self.recorder.on_event(StatusEntered(JobStatus.RUNNING))
        return self

    def epoch(
        self, records: int = 10, busy_ms: tuple[float, ...] = (1.0, 1.0, 1.0), *, more: bool = False, **task: Any
    ) -> EpochSummary:
        """An epoch in which each source subtask emits `records`, and every other task gets as many."""
        self._epoch += 1
        reports = []
        for stage, chain in enumerate(self.plan.chains):
            own = [edge for edge in self.plan.edges if edge.source in chain.nodes]
            inside = {edge.id: records for edge in own if self.plan.chained(edge)}
            leaving = [edge for edge in own if not self.plan.chained(edge)]
            entering = [edge for edge in self.plan.edges if edge.target == chain.head]
            for slot in range(chain.parallelism):
                sunk = records if stage == len(self.plan.chains) - 1 else 0
                report = TaskReport(chain.id, slot, records, sunk, 5000, False, busy_ms[stage], passed=inside, **task)
                sent = [EdgeCount(edge.id, slot, slot, records) for edge in leaving]
                received = [EdgeCount(edge.id, slot, slot, records) for edge in entering]
                reports.append(StageReport(self._epoch, stage, sent, received, [report], more and stage == 0))
        summary = summarised(self.plan, self._epoch, sum(busy_ms) + 50, reports)
        self.recorder.on_event(EpochCounted(summary))
        return summary

    def metric(self, name: str, kind: MetricKind, value: Any, operator: str = "count") -> None:
        """The function of an operator has told a metric, in subtask 0."""
        uid = next(node.uid for node in self.plan.nodes if node.name == operator)
        self.recorder.on_event(SlotsClosed({}, [MetricReading(operator, uid, 0, name, kind, value)]))

    def log(self, slot: int, text: str, stream: str = "log") -> None:
        self.recorder.on_event(LinePrinted(slot, LogLine("count (1/2)", stream, 20, "", text)))

    def fail(self, record: str | None = "{'id': 7}", restart_in_ms: int | None = 50) -> None:
        """The function `count` fails in subtask 1; the job restarts or not."""
        task = next(chain for chain in self.plan.chains if chain.name.startswith("count"))
        origin = FailureOrigin(f"{task.name} (2/2)", "count", 1, "Traceback\nKeyError: 'id'", "KeyError: 'id'", record)
        error = JobExecutionError("Traceback\nKeyError: 'id'\n\nJob failed.", origin=origin)
        self.recorder.on_event(AttemptEntered(0, AttemptState.SHUTTING_DOWN))
        self.recorder.on_event(AttemptEntered(0, AttemptState.FAILED))
        self.recorder.on_event(AttemptFailed(error, restart_in_ms))
        self.recorder.on_event(StatusEntered(JobStatus.RESTARTING if restart_in_ms is not None else JobStatus.FAILING))

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(round(seconds * 1000))

    def checkpoint(self, number: int, failure: str | None = None) -> None:
        """A checkpoint takes 30 ms, or fails."""
        now_ms = self.clock.monotonic() * 1000
        self.checkpoints.triggered(number, CheckpointKind.CHECKPOINT, now_ms, self.clock.wall_ms())
        if failure is not None:
            self.recorder.on_event(CheckpointChanged(self.checkpoints.failed(number, failure, now_ms + 30)))
            return
        for chain in self.plan.chains:
            uid = self.plan.nodes[chain.head].uid
            for subtask in range(chain.parallelism):
                operators = (OperatorSnapshot(self.plan.nodes[chain.head].name, 7, 70),)
                snapshot = SubtaskSnapshot(subtask, 3, 2, 5, 7, 70, operators=operators)
                self.checkpoints.acknowledged(number, uid, snapshot, now_ms + 30)
        self.recorder.on_event(
            CheckpointChanged(self.checkpoints.completed(number, f"file:///checkpoints/chk-{number}"))
        )

    def end(self, status: JobStatus) -> None:
        self.recorder.on_event(StatusEntered(status))
        self.recorder.on_event(JobOver())


class FakeHandle:
    """A job's handle that notes what it is asked for."""

    def __init__(self, job_id: str = JOB_ID) -> None:
        self.job_id = JobID(job_id)
        self.asked: list[tuple[Any, ...]] = []
        self.outcome: Future[Any] = Future()

    def status(self) -> JobStatus:
        return JobStatus.RUNNING

    def cancel(self) -> Future[None]:
        self.asked.append(("cancel",))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def suspend(self) -> Future[None]:
        self.asked.append(("suspend",))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def trigger_checkpoint(self, full: bool = False) -> Future[int]:
        self.asked.append(("checkpoint", full))
        return self.outcome

    def trigger_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        self.asked.append(("savepoint", directory, format_type))
        return self.outcome

    def stop_with_savepoint(
        self, drain: bool, directory: str | None = None, format_type: str | None = None
    ) -> Future[str]:
        self.asked.append(("stop", drain, directory, format_type))
        return self.outcome

    def cancel_with_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        self.asked.append(("cancel with savepoint", directory, format_type))
        return self.outcome

    def result(self) -> Future[Any]:
        return Future()

    def accumulators(self) -> dict[str, Any]:
        return {}

    def metrics(self) -> list[Any]:
        return []

    def checkpoint_statistics(self) -> Any:
        return None

    def web_url(self) -> str | None:
        return None
