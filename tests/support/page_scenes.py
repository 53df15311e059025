"""Jobs for the page, each in a state that people have to recognize: fine, failing, back-pressured, over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rekindle.common import Configuration
from rekindle.common.checkpoint_statistics import OperatorSnapshot, SubtaskSnapshot
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.coordinator.epoch_rules import summarised
from rekindle.coordinator.job_events import (
    AttemptEntered,
    AttemptFailed,
    CheckpointChanged,
    EpochCounted,
    SlotAlive,
    StatusEntered,
)
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import FailureOrigin, JobExecutionError
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.protocol import EdgeCount, SlotHeartbeat, StageReport, TaskReport
from tests.support.recorded_jobs import RecordedJob

#: What a page that takes text for HTML would run.
HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"
REPLAY = "Replay it to that point in a debugger: rekindle replay /checkpoints/orders/_replay/1-1-1-1.recording"
SPARK = "http://127.0.0.1:4040/"
TRACEBACK = """Traceback (most recent call last):
  File "/home/ann/shop/totals.py", line 41, in process_element
    amount = parse_amount(order["amount"])
  File "/home/ann/shop/amounts.py", line 12, in parse_amount
    return Decimal(text.replace(",", "."))
decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]"""


def plan_of_a_shop(name: str, parallelism: int = 4, **settings: str) -> JobPlan:
    """Two sources, a match of both by key, totals and alerts after it."""
    configuration = Configuration.from_dict(
        {"execution.checkpointing.interval": "10 s", "rekindle.progress": "off", **settings}
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    orders = env.from_sequence(1, 100).name("orders").uid("orders").map(_same).name("parse")
    payments = env.from_sequence(1, 100).name("payments").uid("payments")
    matched = orders.union(payments).key_by(_same, key_type=int).map(_same).name("match payments").uid("match")
    matched.key_by(_same, key_type=int).map(_same).name("totals per customer").uid("totals").print().name("to Kafka")
    matched.rebalance().map(_same).name("find fraud").uid("fraud").filter(_all).name("keep alerts").print()
    return build_plan(env._program(name))


def _same(value: int) -> int:
    return value


def _all(value: int) -> bool:
    return True


class ShopJob(RecordedJob):
    """A job whose epochs last a second and have a load for each task."""

    def __init__(self, name: str = "orders", number: int = 1, parallelism: int = 4, **settings: str) -> None:
        super().__init__(plan_of_a_shop(name, parallelism, **settings), f"{number:08x}" * 4, SPARK)

    def work(self, seconds: int, records: int = 300, busy: Mapping[str, float] | None = None, **task: Any) -> None:
        """Let epochs of one second pass. `busy`: the share of each task, by the beginning of its name."""
        for _ in range(seconds):
            self.later(1)
            self._epoch += 1
            wave = round(records * (1 + 0.25 * math.sin(self._epoch / 7)))
            self._one_second(wave, busy or {}, **task)
        for slot in range(self.plan.slots):
            self.recorder.on_event(
                SlotAlive(slot, SlotHeartbeat(312_000_000 + 41_000_000 * slot, 10.5 + self._epoch * 0.4))
            )

    def _one_second(self, records: int, busy: Mapping[str, float], more: bool = False, **task: Any) -> None:
        reports = []
        for chain in self.plan.chains:
            own = [edge for edge in self.plan.edges if edge.source in chain.nodes]
            leaving = [edge for edge in own if not self.plan.chained(edge)]
            entering = [edge for edge in self.plan.edges if edge.target == chain.head]
            inside = {edge.id: records for edge in own if self.plan.chained(edge)}
            for slot in range(chain.parallelism):
                report = TaskReport(
                    chain.id,
                    slot,
                    records * max(1, len(entering)),
                    0 if leaving else records,
                    self.clock.wall_ms() - 1500,
                    False,
                    1000 * _share(chain, busy) * (1 - 0.06 * slot),
                    passed=inside,
                    input_watermark=self.clock.wall_ms() - 1800 - 400 * chain.stage,
                    **task,
                )
                sent = [EdgeCount(edge.id, slot, slot, records) for edge in leaving]
                received = [EdgeCount(edge.id, slot, slot, records) for edge in entering]
                reports.append(StageReport(self._epoch, chain.stage, sent, received, [report], more))
        self.recorder.on_event(
            EpochCounted(summarised(self.plan, self._epoch, 640.0 + 40 * math.sin(self._epoch), reports))
        )

    def shot(
        self,
        number: int,
        *,
        failure: str | None = None,
        silent: str = "",
        straggler: str = "",
        is_savepoint: bool = False,
        is_open: bool = False,
    ) -> None:
        """A checkpoint; `silent` and `straggler` name a task whose last subtask does not answer, or late."""
        began_ms = self.clock.monotonic() * 1000
        kind = CheckpointKind.SAVEPOINT if is_savepoint else CheckpointKind.CHECKPOINT
        self.checkpoints.triggered(number, kind, began_ms, self.clock.wall_ms())
        for chain in self.plan.chains:
            for subtask in range(chain.parallelism):
                is_last = subtask == chain.parallelism - 1
                if not (is_last and silent and chain.name.startswith(silent)):
                    late = 640 if is_last and straggler and chain.name.startswith(straggler) else 0
                    self._answer(number, chain, subtask, began_ms, late)
        if failure is not None:
            self.recorder.on_event(CheckpointChanged(self.checkpoints.failed(number, failure, began_ms + 30_000)))
        elif not is_open:
            path = f"file:///checkpoints/orders/{'savepoint' if is_savepoint else 'chk'}-{number}"
            self.recorder.on_event(CheckpointChanged(self.checkpoints.completed(number, path)))

    def _answer(self, number: int, chain: Chain, subtask: int, began_ms: float, late_ms: int) -> None:
        delay, sync = 18 + 14 * chain.stage + 3 * subtask, 4 + chain.stage * 3
        later = 40 + 25 * chain.stage + (number * 7 + subtask * 5) % 23 + late_ms
        size, full = 120_000 * (chain.stage + 1) + number * 900, 5_400_000 * chain.stage + 60_000 * number + 2_000
        count = len(chain.nodes)
        operators = tuple(
            OperatorSnapshot(self.plan.nodes[node].name, size // count, full // count, sync, later)
            for node in chain.nodes
        )
        snapshot = SubtaskSnapshot(subtask, delay, sync, later, size, full, operators=operators)
        uid = self.plan.nodes[chain.head].uid
        self.checkpoints.acknowledged(number, uid, snapshot, began_ms + delay + sync + later + 6)

    def break_down(
        self, restart_in_ms: int | None, record: str = "{'order': 4711, 'amount': '12,50,-'}", then: str = ""
    ) -> None:
        """The totals fail at a record."""
        task = next(chain for chain in self.plan.chains if chain.name.startswith("totals"))
        summary = TRACEBACK.splitlines()[-1]
        origin = FailureOrigin(f"{task.name} (2/4)", "totals per customer", 1, TRACEBACK, summary, record)
        where = f"The operator 'totals per customer' failed in subtask 2 at the record {record}."
        text = f"{TRACEBACK}\n\n{where}\n{REPLAY}{then}"
        self.recorder.on_event(AttemptEntered(0, AttemptState.SHUTTING_DOWN))
        self.recorder.on_event(AttemptEntered(0, AttemptState.FAILED))
        self.recorder.on_event(AttemptFailed(JobExecutionError(text, origin=origin), restart_in_ms))
        self.recorder.on_event(StatusEntered(JobStatus.RESTARTING if restart_in_ms is not None else JobStatus.FAILING))


def _share(chain: Chain, busy: Mapping[str, float]) -> float:
    return next((share for name, share in busy.items() if chain.name.startswith(name)), 0.12 + 0.05 * chain.stage)


def running_job(number: int = 1, **settings: Any) -> ShopJob:
    """All is well; the last checkpoint had a straggler, and there is a savepoint."""
    job = ShopJob("orders of the shop", number, **settings)
    job.run()
    job.log(0, "reads 4 partitions")
    job.log(0, "hello from a print", "stdout")
    for checkpoint in range(1, 15):
        job.work(10)
        job.shot(checkpoint, straggler="totals" if checkpoint == 14 else "", is_savepoint=checkpoint == 9)
    job.work(4)
    return job


def failing_job(number: int = 2) -> ShopJob:
    """A checkpoint has expired because a subtask did not answer, then a record broke the job, which restarts."""
    settings: dict[str, Any] = {"execution.checkpointing.timeout": "30 s"}
    job = ShopJob("payments of the night", number, **settings)
    job.run()
    for checkpoint in range(1, 6):
        job.work(10)
        job.shot(checkpoint)
    job.work(10)
    job.shot(6, failure="Checkpoint expired before completing.", silent="find fraud")
    job.work(31)
    job.break_down(restart_in_ms=1000)
    job.later(1)
    job.run(attempt=2)
    job.work(3)
    job.break_down(restart_in_ms=2000)
    job.later(1)
    return job


def back_pressured_job(number: int = 3) -> ShopJob:
    """The totals are too slow for what comes."""
    job = ShopJob("clicks of the campaign", number)
    job.run()
    for checkpoint in range(1, 4):
        job.work(10, 900, {"totals": 0.94, "match": 0.05, "Source": 0.02}, more=True, in_flight=1200)
        job.shot(checkpoint)
    job.work(5, 900, {"totals": 0.94, "match": 0.05, "Source": 0.02}, more=True, in_flight=1200)
    return job


def finished_job(number: int = 4) -> ShopJob:
    """A bounded job that is over."""
    job = ShopJob("report of the day", number, parallelism=2)
    job.run()
    for checkpoint in range(1, 4):
        job.work(10)
        job.shot(checkpoint)
    job.recorder.on_event(AttemptEntered(0, AttemptState.CLOSING))
    job.recorder.on_event(AttemptEntered(0, AttemptState.FINISHED))
    job.recorder.on_event(StatusEntered(JobStatus.FINISHED))
    return job


def hostile_job(number: int = 5) -> ShopJob:
    """Everything that comes from users looks like HTML."""
    job = ShopJob(f"orders {HOSTILE}", number, parallelism=2)
    job.run()
    job.log(0, HOSTILE)
    job.work(3)
    job.shot(1, failure=f"Checkpoint was declined. {HOSTILE}")
    job.break_down(restart_in_ms=None, record=HOSTILE, then="; rm -rf ~")
    return job
