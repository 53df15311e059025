"""The HBase sink when something is wrong or dies: one sentence, or it waits and goes on; nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.datastream.connectors.hbase import Put
from rekindle.datastream.connectors.sink_api import WriterInitContext
from rekindle.errors import ConnectorError
from tests.integration.hbase.sink_jobs import OPERATIONS, as_mutation, builder, job_of
from tests.support.hbase_histories import expected_rows
from tools.servers.hbase import HBaseServer
from tools.servers.hbase_access import HBaseAccess
from tools.servers.ports import LOOPBACK, free_ports

Table = Callable[..., str]
AWAY_S = 30.0


def cause_of(run: Callable[[], Any]) -> str:
    """The sentence with which a job fails: one line, without a Java stack."""
    with pytest.raises(Exception) as caught:
        run()
    cause: BaseException | None = caught.value
    while cause is not None and not isinstance(cause, ConnectorError):
        cause = cause.__cause__
    told = str(cause)
    assert "\n" not in told
    assert ".java:" not in told
    assert len(told) < 500
    return told


# -- what is wrong is told ---------------------------------------------------------------------------------------------


def test_a_missing_table_is_told_at_the_start(hbase: HBaseAccess) -> None:
    told = cause_of(lambda: job_of(builder(hbase, "no-such-table").build()))
    assert told == (
        f"HBase at {hbase.address} failed to find table 'no-such-table': there is no table 'no-such-table': create it "
        "with its column families, or correct its name."
    )


def test_a_missing_column_family_is_told_with_its_column(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "h")
    told = cause_of(job_of(builder(hbase, name).build()).run)
    assert f"table '{name}' at {hbase.address} has the column families 'f', 'h'; add the family" in told
    assert "Column b'g:0' of row b'row-0'" in told


def test_a_value_that_is_not_bytes_is_told_with_its_column(hbase: HBaseAccess, table: Table) -> None:
    name = table("f")
    told = cause_of(job_of(builder(hbase, name, lambda each: Put(b"r", {b"f:a": each[2]})).build()).run)
    assert f"Column b'f:a' of row b'r' of HBase table '{name}' has the value 0 (int): HBase stores bytes" in told


def test_a_cell_that_is_too_large_is_told_and_not_tried_again(hbase: HBaseAccess, table: Table) -> None:
    sink = builder(hbase, table("f"), lambda each: Put(b"r", {b"f:a": b"x" * (11 << 20)})).build()
    began = time.monotonic()
    assert "larger than hbase.client.keyvalue.maxsize" in cause_of(job_of(sink, operations=[(1, "put", 1)]).run)
    assert time.monotonic() - began < 30


def test_a_table_that_is_removed_while_the_job_runs_is_told(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "g")
    job = job_of(builder(hbase, name).build())
    job.checkpoint()
    hbase.delete_table(name)
    assert f"there is no table '{name}'" in cause_of(job.run)


def test_a_server_that_is_not_there_is_told_within_the_configured_time() -> None:
    nowhere = HBaseAccess(free_ports(1)[0])
    for address in (nowhere.address, "no-such-host.invalid:9090"):
        sink = builder(nowhere, "any").set_thrift_servers(address).set_start_timeout_ms(1_000)
        began = time.monotonic()
        told = cause_of(lambda sink=sink: job_of(sink.build()))  # type: ignore[misc]
        assert told.startswith(f"HBase at {address} failed to find table 'any': Could not connect to")
        assert told.endswith("see that HBase and its Thrift servers run and that set_thrift_servers() names them.")
        assert time.monotonic() - began < 10


def test_a_server_that_is_not_there_is_passed_over_if_another_one_is(hbase: HBaseAccess, table: Table) -> None:
    name = table("f", "g")
    addresses = f"{LOOPBACK}:{free_ports(1)[0]}, {hbase.address}"
    job_of(builder(hbase, name).set_thrift_servers(addresses).build(), 2).run()
    assert hbase.rows(name) == expected_rows([as_mutation(each) for each in OPERATIONS])


# -- what dies is waited for -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_killed_servers_are_waited_for_and_nothing_is_lost(mortal: HBaseServer) -> None:
    """The Thrift server, then HBase behind a living Thrift server for half a minute, each while a writer writes."""
    server, name = mortal, mortal.create_table("survives-kills", "f")
    sink = builder(server, name, lambda mutation: mutation).set_buffer_flush_max_mutations(50)
    writer = sink.set_call_timeout_ms(4_000).set_retry_timeout_ms(240_000).build().create_writer(WriterInitContext())
    wanted: dict[bytes, dict[bytes, bytes]] = {}

    def write(round_number: int) -> None:
        for number in range(1_000):
            row, cells = b"%05d" % (number % 700), {b"f:%d" % (number % 3): b"%d-%d" % (round_number, number)}
            wanted.setdefault(row, {}).update(cells)
            writer.write(Put(row, cells), None)  # type: ignore[arg-type]

    try:
        for round_number, (kill, away_s) in enumerate(((server.kill_thrift, 0.0), (server.kill_hbase, AWAY_S))):
            write(2 * round_number)  # in flight when the server dies
            kill()
            back = threading.Timer(away_s, server.start)
            back.start()
            write(2 * round_number + 1)
            writer.flush(False)
            back.join()
            assert server.rows(name) == wanted
    finally:
        writer.close()


def test_a_sink_gives_up_after_the_configured_time_with_one_sentence_and_a_restart_goes_on(mortal: HBaseServer) -> None:
    server, name = mortal, mortal.create_table("survives-a-restart", "f", "g")

    def sink() -> Any:
        return builder(server, name).set_call_timeout_ms(1_000).set_retry_timeout_ms(2_000).build()

    job = job_of(sink())
    checkpoint = job.checkpoint()
    server.kill_thrift()
    told = cause_of(job.run)
    assert f"HBase at {server.address} failed to" in told
    assert "for 2 s; see that HBase and its Thrift servers run" in told
    job.kill()
    server.start()
    job_of(sink(), 2, checkpoint).run()
    assert server.rows(name) == expected_rows([as_mutation(each) for each in OPERATIONS])
