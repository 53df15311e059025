"""The PostgreSQL server of the tests: real, fast to start, killable, and never left behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support.running_program import RunningProgram, seconds_until_gone
from tools.servers.ports import LOOPBACK
from tools.servers.postgres import PostgresServer
from tools.servers.waiting import accepts_connections

pytestmark = pytest.mark.integration
GONE_DEADLINE_S = 20.0


def test_a_killed_server_comes_back_on_its_port_with_what_was_committed(own_postgres: PostgresServer) -> None:
    with psycopg.connect(own_postgres.conninfo, autocommit=True) as client:
        client.execute("CREATE TABLE kept (n int)")
        client.execute("INSERT INTO kept VALUES (7)")
        processes = [psutil.Process(own_postgres.pid), *psutil.Process(own_postgres.pid).children()]
        port = own_postgres.port

        own_postgres.kill()

    assert len(processes) > 3
    assert not own_postgres.is_running()
    assert not accepts_connections(LOOPBACK, port)
    seconds_until_gone(processes, time.monotonic(), GONE_DEADLINE_S)
    own_postgres.restart()
    assert own_postgres.port == port
    with psycopg.connect(own_postgres.conninfo) as client:
        assert client.execute("SELECT n FROM kept").fetchall() == [(7,)]


def test_it_asks_for_the_password(postgres: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.conninfo.replace(postgres.password, "open barley"))


def test_a_stop_does_not_wait_for_clients(own_postgres: PostgresServer) -> None:
    with psycopg.connect(own_postgres.conninfo) as client:
        client.execute("SELECT 1")
        own_postgres.stop()
        assert not own_postgres.is_running()
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")


STARTER = """
from tools.servers.postgres import PostgresServer
from pathlib import Path
import sys, time
server = PostgresServer(Path(sys.argv[1])).start()
print("pid", server.pid, flush=True)
time.sleep(300)
"""


def test_it_ends_with_its_starter(tmp_path: Path) -> None:
    """Also in a folder that only its user may enter, as pytest's are."""
    script = tmp_path / "starter.py"
    script.write_text(STARTER)
    repository = str(Path(__file__).resolve().parents[2])
    with RunningProgram(str(script), str(tmp_path / "folder"), environment={"PYTHONPATH": repository}) as starter:
        postmaster = psutil.Process(int(starter.wait_for_line("pid ").split()[1]))
        processes = [postmaster, *postmaster.children()]
        starter.send_signal(signal.SIGKILL)
        seconds_until_gone(processes, time.monotonic(), GONE_DEADLINE_S)
    PostgresServer(tmp_path / "folder").close()  # frees the shared memory that a killed server leaves
