"""The batch sink: full batches, and a partial one that survives a restart at any parallelism."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.orders.batches import BatchSink, BatchWriter
from examples.orders.ends import PrintSink, file_sink
from examples.orders.records import OrderEvent
from examples.orders.results import rows_of
from rekindle.datastream.connectors import WriterInitContext
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint
from rekindle.testing.sink_contract import SinkContract, SinkUnderTest
from tests.examples.orders.order_samples import CREATED, event
from tests.support.environments import checkpointed, environment

EVENTS = [event(f"order-{number:03d}", CREATED, number) for number in range(47)]


def job(directory: Path, parallelism: int, per_epoch: int, restore: InProcessCheckpoint | None = None) -> InProcessJob:
    env = checkpointed(parallelism)
    events = env.from_collection(EVENTS, OrderEvent).uid("events").rebalance()
    events.sink_to(BatchSink(file_sink(str(directory)), 10)).uid("batches")
    return InProcessJob(build_plan(env._program("batches")), max_records=per_epoch, restore=restore)


def batches(directory: Path) -> list[list[str]]:
    return [[each["order_id"] for each in batch["events"]] for batch in rows_of(directory)]


def test_batches_are_full_except_the_last_of_each_subtask(tmp_path):
    job(tmp_path, 2, per_epoch=100).run()
    found = batches(tmp_path)
    assert sorted(map(len, found)) == [3, 4, 10, 10, 10, 10]
    assert sorted(name for batch in found for name in batch) == [each.order_id for each in EVENTS]


@pytest.mark.parametrize("parallelisms", [(2, 2, 2), (2, 3, 1), (3, 1, 2)])
def test_a_partial_batch_is_continued_also_at_another_parallelism(tmp_path, parallelisms):
    """13 records, then 13 more, then the rest; each time one epoch more, which is lost with its process."""
    checkpoint = None
    for parallelism in parallelisms[:-1]:
        current = job(tmp_path, parallelism, 13, checkpoint)
        checkpoint = current.checkpoint()
        current.epoch()
        current.kill()
    job(tmp_path, parallelisms[-1], 13, checkpoint).run()
    found = batches(tmp_path)
    assert sorted(name for batch in found for name in batch) == [each.order_id for each in EVENTS]
    assert all(len(batch) <= 10 for batch in found)
    assert sum(len(batch) < 10 for batch in found) <= parallelisms[-1]
    # The partial batches of the checkpoints went on: a batch holds events from before and after one.
    numbers = [[int(name[-3:]) for name in batch] for batch in found]
    assert any(min(batch) < 13 <= max(batch) for batch in numbers)


def test_a_checkpoint_writes_no_partial_batch(tmp_path):
    current = job(tmp_path, 1, 13)
    current.checkpoint()
    assert [len(batch) for batch in batches(tmp_path)] == [10]
    current.kill()


def test_a_writer_that_got_more_than_a_batch_writes_several(tmp_path):
    sink = BatchSink(file_sink(str(tmp_path)), 10)
    writer = sink.restore_writer(WriterInitContext(directory=str(tmp_path)), EVENTS[:37])
    assert isinstance(writer, BatchWriter)
    assert writer.snapshot_state(1) == EVENTS[:37]
    writer.write(EVENTS[37], None)  # type: ignore[arg-type]
    assert writer.snapshot_state(2) == EVENTS[30:38]
    writer.close()


def test_batches_can_be_printed(capsys):
    env = environment(1)
    env.from_collection(EVENTS[:3], OrderEvent).sink_to(BatchSink(PrintSink("batches"), 2))
    InProcessJob(build_plan(env._program("printed"))).run()
    printed = capsys.readouterr().out.splitlines()
    assert [line.count("order_id=") for line in printed] == [2, 1]
    assert all(line.startswith("batches> OrderBatch(") for line in printed)


def test_a_batch_of_no_events_is_refused():
    with pytest.raises(ValueError, match="1 event or more, not 0"):
        BatchSink(PrintSink("batches"), 0)


class TestContract(SinkContract):
    """The batch sink keeps the promises of the sink inside it."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        def visible() -> list[str]:
            return [name for batch in batches(tmp_path) for name in batch]

        def made() -> BatchSink:
            return BatchSink(file_sink(str(tmp_path)), 1)

        return SinkUnderTest(made, lambda: [EVENTS[int(name[-3:])] for name in visible()], records=EVENTS[:24])
