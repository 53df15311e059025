"""The channels that each partitioning chooses, on the writer alone (no Spark, no slot)."""

from __future__ import annotations

import os
import stat
from collections import defaultdict

import pytest

from rekindle.datastream import MapFunction
from rekindle.errors import InvalidKeyError
from rekindle.runtime.directories import make_directory
from rekindle.runtime.exchange.chunk import END, IDLE, WATERMARK, decode_chunk, read_header
from rekindle.runtime.exchange.inbox import Inbox
from rekindle.runtime.exchange.outbox import Outbox
from rekindle.runtime.exchange.spill import SpillBuffer
from rekindle.runtime.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    EdgeTarget,
    KeyWriter,
    RoundRobinWriter,
    ShuffleWriter,
    SingleTargetWriter,
    rescale_sources,
    rescale_targets,
)
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.watermarks import WatermarkValve
from rekindle.serde import codec_for
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed


def target(channels: int, source: int = 0, sources: int = 1, chunk_records: int = 1000) -> EdgeTarget:
    return EdgeTarget(
        edge=3,
        label="a -> b",
        source=source,
        sources=sources,
        target_slots=tuple(10 + channel for channel in range(channels)),
        codec=codec_for(None),
        chunk_records=chunk_records,
    )


def delivered(outbox: Outbox) -> dict[int, list]:
    """Records per target subtask, checking the routing to slots on the way."""
    got = defaultdict(list)
    for slot, row in outbox.drain():
        header = read_header(row)
        assert slot == 10 + header.target
        got[header.target].extend(decode_chunk(row, header, codec_for(None)).records)
    return dict(got)


def run(writer, outbox: Outbox, *batches: list) -> dict[int, list]:
    for batch in batches:
        writer.emit(batch, None)
    writer.flush()
    return delivered(outbox)


def test_rebalance_increments_then_sends():
    """The trace of the buffering sink: the first word of subtask 0 goes to channel 1."""
    outbox = Outbox(1 << 20, None)
    writer = RoundRobinWriter(target(2), outbox, range(2), last=0)
    words = [f"a{number}" for number in range(1, 8)]
    assert run(writer, outbox, words[:3], words[3:]) == {1: ["a1", "a3", "a5", "a7"], 0: ["a2", "a4", "a6"]}


def test_rebalance_goes_on_from_a_snapshots_position():
    outbox = Outbox(1 << 20, None)
    first = RoundRobinWriter(target(3), outbox, range(3), last=0)
    run(first, outbox, list(range(4)))
    second = RoundRobinWriter(target(3), outbox, range(3), last=0)
    second.seek(first.position())
    assert run(second, outbox, [4, 5, 6]) == {2: [4], 0: [5], 1: [6]}


@pytest.mark.parametrize(("sources", "targets"), [(1, 4), (2, 4), (2, 3), (3, 2), (4, 2), (3, 7), (5, 5)])
def test_rescale_connects_every_target_and_only_neighbours(sources: int, targets: int):
    shares = [rescale_targets(source, sources, targets) for source in range(sources)]
    assert sorted({each for share in shares for each in share}) == list(range(targets))
    for each in range(targets):
        senders = rescale_sources(each, sources, targets)
        assert senders
        assert senders == list(range(senders[0], senders[-1] + 1))


def test_key_by_sends_a_key_to_one_channel_and_keeps_its_order():
    outbox = Outbox(1 << 20, None)
    writer = KeyWriter(target(4), outbox, lambda pair: pair[0], 128)
    records = [(f"k{number % 20}", number) for number in range(500)]
    got = run(writer, outbox, records[:100], records[100:])
    assert len(got) == 4
    owners: dict[str, int] = {}
    for channel, pairs in got.items():
        for key, _ in pairs:
            assert owners.setdefault(key, channel) == channel
        for key in {key for key, _ in pairs}:
            numbers = [number for k, number in pairs if k == key]
            assert numbers == sorted(numbers)
    assert sorted(pair for pairs in got.values() for pair in pairs) == sorted(records)


def test_equal_keys_of_different_types_share_a_channel():
    outbox = Outbox(1 << 20, None)
    got = run(KeyWriter(target(8), outbox, lambda key: key, 128), outbox, [7, 7.0, 7], [True, 1, 1.0])
    assert all(len({float(key) for key in keys}) == len(keys) // 3 for keys in got.values())


def test_broadcast_reaches_each_channel_once():
    outbox = Outbox(1 << 20, None)
    writer = BroadcastWriter(target(3, chunk_records=2), outbox)
    assert run(writer, outbox, [1, 2, 3], [4]) == {0: [1, 2, 3, 4], 1: [1, 2, 3, 4], 2: [1, 2, 3, 4]}


def test_global_and_forward_use_one_channel():
    outbox = Outbox(1 << 20, None)
    assert run(SingleTargetWriter(target(3), outbox, 0, marks_to_all=True), outbox, [1, 2]) == {0: [1, 2]}
    assert run(SingleTargetWriter(target(3), outbox, 2, marks_to_all=False), outbox, [1, 2]) == {2: [1, 2]}


def test_shuffle_uses_all_channels_and_is_repeatable():
    outbox = Outbox(1 << 20, None)
    once = run(ShuffleWriter(target(4), outbox), outbox, list(range(400)))
    again = run(ShuffleWriter(target(4), outbox), outbox, list(range(400)))
    assert once == again
    assert all(60 < len(records) < 140 for records in once.values())


def test_custom_partitioner_sees_key_and_number_of_channels():
    outbox = Outbox(1 << 20, None)
    seen = set()

    def partition(key: int, channels: int) -> int:
        seen.add(channels)
        return key % channels

    assert run(CustomWriter(target(3), outbox, lambda r: r["id"], partition), outbox, [{"id": 4}, {"id": 2}]) == {
        1: [{"id": 4}],
        2: [{"id": 2}],
    }
    assert seen == {3}


def test_custom_partitioner_out_of_range_names_the_record():
    writer = CustomWriter(target(2), Outbox(1 << 20, None), lambda record: record, lambda key, channels: 2)
    with pytest.raises(OperatorFailure) as caught:
        writer.emit([5, 6], None)
    assert caught.value.record == 5
    assert "channel 2; there are 2" in str(caught.value.__cause__)


@pytest.mark.parametrize("answer", [-1, 1.0, None, "a"])
def test_what_a_custom_partitioner_must_not_answer(answer):
    writer = CustomWriter(target(2), Outbox(1 << 20, None), lambda record: record, lambda key, channels: answer)
    with pytest.raises(OperatorFailure) as caught:
        writer.emit([5], None)
    assert f"the partitioner chose channel {answer!r}; there are 2" in str(caught.value.__cause__)


def test_a_failing_key_selector_names_the_record():
    writer = KeyWriter(target(2), Outbox(1 << 20, None), lambda record: record["id"], 128)
    with pytest.raises(OperatorFailure) as caught:
        writer.emit([{"id": 1}, {"name": "x"}], None)
    assert caught.value.record == {"name": "x"}
    assert isinstance(caught.value.__cause__, KeyError)


def test_timestamps_and_marks_keep_their_places():
    outbox = Outbox(1 << 20, None)
    writer = SingleTargetWriter(target(1), outbox, 0, marks_to_all=False)
    writer.emit(["no time"], None)
    writer.emit(["a", "b"], [10, 20])
    writer.emit_watermark(15)
    writer.emit_watermark(19)
    writer.emit(["c"], [30])
    writer.emit_idle()
    writer.emit_end()
    writer.flush()
    [(_, row)] = outbox.drain()
    chunk = decode_chunk(row, read_header(row), codec_for(None))
    assert chunk.records == ["no time", "a", "b", "c"]
    assert chunk.timestamps == [-(2**63), 10, 20, 30]
    assert [tuple(mark) for mark in chunk.marks] == [(3, WATERMARK, 19), (4, IDLE, 0), (4, END, 0)]


def test_counts_are_told_per_channel_and_start_again():
    outbox = Outbox(1 << 20, None)
    writer = RoundRobinWriter(target(2, chunk_records=2), outbox, range(2), last=0)
    run(writer, outbox, list(range(5)))
    assert [(count.target, count.records) for count in writer.end_epoch()] == [(0, 2), (1, 3)]
    assert writer.end_epoch() == []


def test_what_spills_and_where_a_slot_works_is_its_owners_alone(tmp_path):
    buffer = SpillBuffer(limit_bytes=0, directory=str(tmp_path))
    buffer.append(b"row")
    assert stat.S_IMODE(os.fstat(buffer._file.fileno()).st_mode) == 0o600
    buffer.clear()
    directory = make_directory("slot-", "0", str(tmp_path))
    try:
        assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o700
    finally:
        directory.remove()


def test_outbox_spills_above_its_limit_and_gives_everything_back(tmp_path):
    outbox = Outbox(100, str(tmp_path))
    rows = [bytes([number]) * 60 for number in range(5)]
    for number, row in enumerate(rows):
        outbox.put(number, row)
    assert list(outbox.drain()) == list(enumerate(rows))
    assert list(outbox.drain()) == []
    assert list(tmp_path.iterdir()) == []


def chunk_rows(writer_source: int, batches: list[list]) -> list[bytes]:
    outbox = Outbox(1 << 20, None)
    writer = SingleTargetWriter(target(1, source=writer_source, chunk_records=1), outbox, 0, marks_to_all=False)
    for batch in batches:
        writer.emit(batch, None)
    return [row for _, row in outbox.drain()]


def test_inbox_orders_by_source_and_sequence_whatever_the_arrival():
    rows = chunk_rows(1, [["c"], ["d"]]) + chunk_rows(0, [["a"], ["b"]])
    inbox = Inbox(40, None)
    for row in reversed(rows):
        inbox.put(read_header(row), row)
    waiting = list(inbox.take(WatermarkValve([])))
    got = [decode_chunk(inbox.read(each), each.header, codec_for(None)).records for each in waiting]
    assert got == [["a"], ["b"], ["c"], ["d"]]


def test_what_an_inbox_keeps_comes_before_what_the_next_epoch_brings():
    inbox, valve = Inbox(40, None), WatermarkValve([])
    for row in chunk_rows(0, [["a"], ["b"], ["c"]]):
        inbox.put(read_header(row), row)
    inbox.keep(list(inbox.take(valve))[1:])
    assert inbox.records_waiting() == 2
    assert inbox.counts() == [], "they were counted in the epoch that brought them"
    for row in chunk_rows(0, [["d"]]):
        inbox.put(read_header(row), row)
    got = [decode_chunk(inbox.read(each), each.header, codec_for(None)).records for each in inbox.take(valve)]
    assert got == [["b"], ["c"], ["d"]]


@pytest.mark.parametrize("delivered_rows", [[0, 0], [1], [0, 2]])
def test_inbox_refuses_gaps_and_repetitions(delivered_rows: list[int]):
    """I3: sequences are contiguous."""
    rows = chunk_rows(0, [["a"], ["b"], ["c"]])
    inbox = Inbox(1 << 20, None)
    for place in delivered_rows:
        inbox.put(read_header(rows[place]), rows[place])
    with pytest.raises(Exception, match="twice or lost"):
        list(inbox.take(WatermarkValve([])))


def test_a_key_that_cannot_be_one_is_named():
    for key, word in (({1: 1}, "hashable"), (float("nan"), "nan")):
        writer = KeyWriter(target(2), Outbox(1 << 20, None), lambda record, key=key: key, 128)
        with pytest.raises(OperatorFailure) as caught:
            writer.emit(["record"], None)
        assert isinstance(caught.value.__cause__, InvalidKeyError)
        assert word in str(caught.value.__cause__)


def test_no_chunk_is_larger_than_it_may_be():
    outbox = Outbox(1 << 20, None)
    writer = SingleTargetWriter(target(1, chunk_records=4), outbox, 0, marks_to_all=False)
    writer.emit([0], [0])
    writer.emit(list(range(1, 11)), list(range(1, 11)))
    writer.flush()
    chunks = [decode_chunk(row, read_header(row), codec_for(None)) for _, row in outbox.drain()]
    assert [chunk.records for chunk in chunks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert [chunk.timestamps for chunk in chunks] == [chunk.records for chunk in chunks]


class Where(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


def test_the_first_record_of_a_subtask_goes_to_the_next_channel():
    """I1: round robin begins at channel (i + 1) mod n for subtask i."""
    stream = checkpointed(3).from_sequence(0, 2).rebalance().map(Where())
    assert sorted(InProcessJob.of(stream).run()) == [(0, 2), (1, 0), (2, 1)]
