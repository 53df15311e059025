"""Runs a plan's tasks in this process: the same tasks, chunks and order as on Spark, without processes and threads.

Epochs are run one by one, so that a test decides where the cuts fall.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from rekindle.clock import Clock
from rekindle.datastream.data_stream import DataStream
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.protocol import TO_DRIVER, EdgeCount
from rekindle.runtime.context import Accumulators
from rekindle.runtime.exchange.chunk import decode_row, read_header
from rekindle.runtime.task import EpochBudget, SlotServices, Task
from rekindle.serde import cloud_dumps, codec_for
from rekindle.testing.clock import ManualClock


class InProcessJob:
    """A job of bounded sources, epoch by epoch.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> sorted(InProcessJob.of(env.from_collection([1, 2, 3]).map(lambda n: n * 2)).run())
    [2, 4, 6]
    """

    @classmethod
    def of(cls, stream: DataStream, clock: Clock | None = None, max_records: int = 1_000_000) -> InProcessJob:
        """The job that `stream.execute_and_collect()` would run."""
        program = stream._env._program("test", stream._collect())
        stream._env.close()
        return cls(build_plan(program), clock, max_records)

    def __init__(self, plan: JobPlan, clock: Clock | None = None, max_records: int = 1_000_000) -> None:
        self.plan = plan
        self.accumulators = Accumulators()
        self.sent: list[EdgeCount] = []
        self.received: list[EdgeCount] = []
        self._budget = EpochBudget(max_records, target_ms=60_000)
        self._directory = tempfile.TemporaryDirectory(prefix="rekindle-test-")
        self._services = SlotServices(
            attempt=0,
            clock=clock or ManualClock(),
            directory=self._directory.name,
            accumulators=self.accumulators,
            load_function=lambda node: _own_copy(plan.nodes[node].function),
            load_edge_function=lambda edge, part: _own_copy(getattr(plan.edges[edge], part)),
            load_selector=lambda node, index: _own_copy(plan.nodes[node].key_selectors[index]),
            wake=lambda: None,
        )
        self.tasks = {
            (chain.id, subtask): Task(plan, chain, subtask, self._services)
            for chain in plan.chains
            for subtask in range(chain.parallelism)
            if plan.nodes[chain.head].kind is not OperatorKind.SOURCE_DATAFRAME
        }
        for task in self.tasks.values():
            task.open()

    @property
    def finished(self) -> bool:
        """Whether every task has ended."""
        return all(task.finished for task in self.tasks.values())

    def epoch(self) -> list[Any]:
        """Run one epoch; what came out of `execute_and_collect`'s end of the stream."""
        collected: list[Any] = []
        for stage in range(self.plan.stages):
            rows = [row for task in self._stage(stage) for row in self._run(task)]
            for destination, row in reversed(rows):  # arrival order must not matter
                if destination == TO_DRIVER:
                    header = read_header(row)
                    codec = codec_for(self.plan.nodes[header.edge].output_type)
                    collected[:0] = decode_row(row, header, codec).records
                else:
                    self._deliver(destination, row)
        return collected

    def run(self, until: Callable[[], bool] = lambda: False) -> list[Any]:
        """Run epochs to the end of the input (or `until`), close the functions, and give back everything collected."""
        collected: list[Any] = []
        while not self.finished and not until():
            collected.extend(self.epoch())
        self.close()
        return collected

    def close(self) -> list[tuple[str, BaseException]]:
        """Close every function; the errors of those that could not, by subtask."""
        errors = [error for task in self.tasks.values() for error in task.close()]
        self._directory.cleanup()
        return errors

    def _stage(self, stage: int) -> Iterator[Task]:
        return (task for task in self.tasks.values() if task.chain.stage == stage)

    def _run(self, task: Task) -> Iterator[tuple[int, bytes]]:
        outcome = task.run_epoch(self._budget)
        self.sent.extend(outcome.sent)
        self.received.extend(outcome.received)
        return task.outbox.drain()

    def _deliver(self, slot: int, row: bytes) -> None:
        header = read_header(row)
        edge = self.plan.edges[header.edge]
        chain = self.plan.chain_of(edge.target)
        assert self.plan.placement[chain.id, header.target] == slot, "a chunk went to the wrong slot"
        self.tasks[chain.id, header.target].inbox.put(header, row)


def _own_copy(function: Any) -> Any:
    return pickle.loads(cloud_dumps(function))
