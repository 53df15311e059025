"""Servers that several processes share, and those of `make servers`: none is left behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.running_program import RunningProgram, seconds_until_gone
from tools.servers.hbase_access import HBaseAccess
from tools.servers.kafka_access import KafkaAccess
from tools.servers.ports import free_ports

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
GONE_DEADLINE_S = 40.0
# The first shared broker in a clone writes the archive of its classes at its end.
SHARED_GONE_DEADLINE_S = 90.0


@pytest.mark.long
def test_make_servers_leaves_no_process_after_sigkill_nor_after_ctrl_c(tmp_path: Path) -> None:
    kafka_port, hbase_port, postgres_port = map(str, free_ports(3))
    ports = ["--kafka-port", kafka_port, "--hbase-port", hbase_port, "--postgres-port", postgres_port]
    with RunningProgram("tools.servers", "--folder", str(tmp_path), *ports) as killed:
        address = killed.wait_for_line("Kafka  ").split()[1]
        KafkaAccess({"PLAINTEXT": address}, {"PLAINTEXT": {}}).create_topic("kept")
        hbase_of(killed).create_table("kept")
        killed.wait_for_line("Ctrl-C")
        started = killed.processes()
        killed.send_signal(signal.SIGKILL)
        assert len(started) >= 9, "the program, and a guard and a server for Kafka, HBase, Thrift and PostgreSQL"
        seconds_until_gone(started, time.monotonic(), GONE_DEADLINE_S)

    with RunningProgram("tools.servers", "--folder", str(tmp_path), *ports) as program:
        address = program.wait_for_line("Kafka  ").split()[1]
        assert "kept" in AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics
        assert hbase_of(program).rows("kept") == {}
        program.wait_for_line("Ctrl-C")
        program.interrupt()
        assert program.wait(GONE_DEADLINE_S) == 0
        assert program.processes() == []
        assert program.errors == []


def hbase_of(program: RunningProgram) -> HBaseAccess:
    return HBaseAccess(int(program.wait_for_line("HBase  ").split()[1].split(":")[1]))


@pytest.mark.parametrize(("name", "processes"), [("kafka", 3), pytest.param("hbase", 5, marks=pytest.mark.long)])
def test_a_shared_server_outlives_its_first_user_and_ends_with_the_last(
    tmp_path: Path, name: str, processes: int
) -> None:
    user = "tests.servers.shared_user"
    with RunningProgram(user, name, str(tmp_path)) as first, RunningProgram(user, name, str(tmp_path)) as second:
        seen = {program.wait_for_line("uses ") for program in (first, second)}
        servers = [each for program in (first, second) for each in program.processes() if each.pid != program.pid]
        first.send_signal(signal.SIGKILL)
        first.wait()

        assert len(seen) == 1, "both use one server"
        assert len(servers) == processes, "the supervisor, and a guard for each process of the server"
        assert [path.name for path in tmp_path.iterdir()] == [name], "no other server was started"
        assert all(each.is_running() for each in servers)

        second.send_signal(signal.SIGKILL)
        seconds_until_gone(servers, time.monotonic(), SHARED_GONE_DEADLINE_S)
