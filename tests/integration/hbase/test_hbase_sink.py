"""The HBase sink on a real HBase: what readers see in each mode, after restarts, and beside other writers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import TimestampAssigner
from rekindle.datastream.connectors.hbase import Delete, HBaseMutationConverter, Mutation, Put, TimestampMode
from rekindle.datastream.connectors.sink_api import WriterInitContext
from tests.integration.hbase.sink_jobs import OPERATIONS, as_mutation, builder, job_of
from tests.support.hbase_histories import expected_rows
from tests.support.waiting import wait_until
from tools.servers.hbase_access import HBaseAccess

Table = Callable[..., str]
EXPECTED = expected_rows([as_mutation(each) for each in OPERATIONS])


class _Timestamps(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 1_000 + int(value[2])


def written(sink: Any, mutations: list[Any], context: Any = None, **init: Any) -> None:
    """Write the mutations as one flush of a writer."""
    writer = sink.create_writer(WriterInitContext(**init))
    try:
        for mutation in mutations:
            writer.write(mutation, context)
        writer.flush(False)
    finally:
        writer.close()


def same(mutation: Any) -> Any:
    return mutation


@pytest.mark.parametrize("mode", TimestampMode)
def test_each_mode_writes_what_the_records_say(hbase: HBaseAccess, table: Table, mode: TimestampMode) -> None:
    name = table("f", "g")
    job_of(builder(hbase, name).set_timestamp_mode(mode).build(), timestamps=_Timestamps()).run()
    assert hbase.rows(name) == EXPECTED


def test_everything_before_a_barrier_is_in_hbase_when_the_checkpoint_is_taken(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "g")
    job = job_of(builder(hbase, name).set_buffer_flush_max_mutations(1_000).build(), 2, max_records=3)
    for barrier in range(1, 6):
        job.checkpoint(complete=False)
        assert hbase.rows(name) == expected_rows([as_mutation(each) for each in OPERATIONS[: 3 * barrier]])
    job.kill()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_replay_overwrites_what_a_dead_attempt_wrote(hbase: HBaseAccess, table: Table, parallelism: int) -> None:
    """Also what it wrote after the checkpoint, with other flushes."""
    name = table("f", "g")
    job = job_of(builder(hbase, name).build(), 2)
    checkpoint = job.checkpoint()
    for _ in range(3):
        job.checkpoint(complete=False)
    job.kill()
    restored = job_of(builder(hbase, name).set_buffer_flush_max_mutations(7).build(), parallelism, checkpoint)
    restored.epoch()
    restored.kill()
    job_of(builder(hbase, name).build(), parallelism, checkpoint).run()
    assert hbase.rows(name) == EXPECTED


def test_a_run_with_another_checkpoint_directory_overwrites_an_earlier_run(hbase: HBaseAccess, table: Table) -> None:
    """Its attempts are counted from 1 again, and it makes fewer flushes."""
    name = table("f", "g")
    job_of(builder(hbase, name).set_buffer_flush_max_mutations(1).build()).run()
    later = [(row, kind, 100 + value) for row, kind, value in OPERATIONS[:20]]
    job_of(builder(hbase, name).set_buffer_flush_max_mutations(1_000).build(), operations=later).run()
    everything = [as_mutation(each) for each in [*OPERATIONS, *later]]
    assert hbase.rows(name) == expected_rows(everything)


def test_mutations_of_one_flush_count_in_their_order(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "g")
    sink = builder(hbase, name, same).set_buffer_flush_max_mutations(100).build()
    a, b = {b"f:a": b"1"}, {b"f:b": b"1"}
    written(
        sink,
        [
            *(Put(b"put-delete", a), Delete(b"put-delete")),
            *(Put(b"again", a | b), Delete(b"again"), Put(b"again", {b"f:a": b"2"})),
            *(Put(b"column", a | b), Delete(b"column", [b"f:a"])),
            *(Put(b"family", a | {b"g:c": b"1"}), Delete(b"family", [b"f"])),
            [Put(b"list", a), Put(b"list", b)],
            None,
        ],
    )
    assert hbase.rows(name) == {
        b"again": {b"f:a": b"2"},
        b"column": b,
        b"family": {b"g:c": b"1"},
        b"list": a | b,
    }


def test_a_late_call_of_an_earlier_attempt_has_no_effect(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "g")
    sink = builder(hbase, name, same).build()
    now_ms = 1_790_000_000_000
    newer: list[Mutation] = [Put(b"1", {b"f:a": b"new"}), Delete(b"2")]
    written(sink, newer, claimed_ms=now_ms + 1)
    written(sink, [Put(b"1", {b"f:a": b"old"}), Put(b"2", {b"f:a": b"old"}), Delete(b"1")], claimed_ms=now_ms)
    assert hbase.rows(name) == {b"1": {b"f:a": b"new"}}


class _Routed(HBaseMutationConverter):
    def __init__(self, other: str) -> None:
        self.other = other
        self.opened = False

    def open(self) -> None:
        self.opened = True

    def convert(self, value: Any) -> Mutation | list[Mutation] | None:
        assert self.opened
        put = Put(b"%d" % value[2], {b"f:a": b"x"}, table=self.other if value[2] % 2 else None)
        return None if value[2] % 10 == 0 else put


def test_a_converter_chooses_the_table_of_each_mutation(hbase: HBaseAccess, table: Table) -> None:
    even, odd = table("f"), table("f")
    job_of(builder(hbase, even, _Routed(odd)).build(), 2).run()
    numbers = [value for _, _, value in OPERATIONS if value % 10]
    assert [len(hbase.rows(name)) for name in (even, odd)] == [
        sum(n % 2 == parity for n in numbers) for parity in (0, 1)
    ]


# -- what TTL, VERSIONS and other writers see --------------------------------------------------------------------------


def versions(hbase: HBaseAccess, table: str, row: bytes) -> list[tuple[bytes, int]]:
    found: list[tuple[bytes, int]] = hbase.connection().table(table).cells(row, b"f:a", 10, include_timestamp=True)
    return found


def test_event_time_is_in_the_cells_and_an_older_record_does_not_hide_a_newer_one(
    hbase: HBaseAccess, table: Table
) -> None:
    name = table("f", max_versions=5)
    sink = builder(hbase, name, same).set_timestamp_mode(TimestampMode.EVENT_TIME).build()

    class At:
        def __init__(self, timestamp: int | None) -> None:
            self._timestamp = timestamp

        def timestamp(self) -> int | None:
            return self._timestamp

    for timestamp, value in ((2_000, b"newer"), (1_000, b"older"), (2_000, b"newer")):
        written(sink, [Put(b"1", {b"f:a": value})], At(timestamp))
    assert versions(hbase, name, b"1") == [(b"newer", 2_000), (b"older", 1_000)]
    written(sink, [Delete(b"1")], At(1_500))
    assert hbase.rows(name) == {b"1": {b"f:a": b"newer"}}
    with pytest.raises(Exception, match="has no timestamp, but the sink writes cells with event time"):
        written(sink, [Delete(b"1")], At(None))


def test_fenced_cells_outlive_a_time_to_live_and_those_of_server_time_do_not(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", time_to_live=1)
    modes = (TimestampMode.FENCED, TimestampMode.SERVER_TIME)
    for mode in modes:
        sink = builder(hbase, name, same).set_timestamp_mode(mode).build()
        written(sink, [Put(mode.name.encode(), {b"f:a": b"1"})])
    wait_until(lambda: list(hbase.rows(name)) == [b"FENCED"], "the cell of server time has expired", 30)


def test_writers_without_timestamps_cannot_change_fenced_cells_but_can_change_those_of_server_time(
    hbase: HBaseAccess, table: Table
) -> None:
    name = table("f")
    for mode in (TimestampMode.FENCED, TimestampMode.SERVER_TIME):
        sink = builder(hbase, name, same).set_timestamp_mode(mode).build()
        written(sink, [Put(mode.name.encode(), {b"f:a": b"ours"})])
    other = hbase.connection().table(name)
    for mode in (TimestampMode.FENCED, TimestampMode.SERVER_TIME):
        other.put(mode.name.encode(), {b"f:a": b"theirs", b"f:b": b"theirs"})
    assert hbase.rows(name) == {
        b"FENCED": {b"f:a": b"ours", b"f:b": b"theirs"},
        b"SERVER_TIME": {b"f:a": b"theirs", b"f:b": b"theirs"},
    }


def test_each_flush_makes_a_version_and_a_replay_makes_another(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", max_versions=10)
    sink = builder(hbase, name, same).set_buffer_flush_max_mutations(2).build()
    for claimed_ms in (1_790_000_000_000, 1_790_000_000_001):
        written(sink, [Put(b"1", {b"f:a": b"%d" % number}) for number in range(4)], claimed_ms=claimed_ms)
    assert [value for value, _ in versions(hbase, name, b"1")] == [b"3", b"1", b"3", b"1"]


def test_in_server_time_a_put_after_a_delete_is_seen_although_the_servers_clock_is_coarse(
    hbase: HBaseAccess, table: Table
) -> None:
    name = table("f")
    made = builder(hbase, name, same).set_timestamp_mode(TimestampMode.SERVER_TIME).set_buffer_flush_max_mutations(1)
    rounds: list[Mutation] = []
    for number in range(50):
        rounds += [Delete(b"1"), Put(b"1", {b"f:a": b"%d" % number})]
    written(made.build(), rounds)
    assert hbase.rows(name) == {b"1": {b"f:a": b"49"}}
