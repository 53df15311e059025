"""The HBase of the tests: real, killable in both of its parts, and with all rows after a kill."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools.servers.hbase import HBaseServer
from tools.servers.ports import LOOPBACK
from tools.servers.waiting import accepts_connections

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.mark.long
def test_killed_servers_come_back_on_their_ports_with_all_rows(own_hbase: Callable[..., HBaseServer]) -> None:
    server = own_hbase()
    address, pids = server.address, (server.pid, server.thrift_pid)
    table = server.create_table("survives", "f", "g")
    written = {b"%03d" % number: {b"f:n": b"%d" % number} for number in range(300)}
    with server.connection().table(table).batch(batch_size=100) as batch:
        for row, cells in written.items():
            batch.put(row, cells)

    server.kill_thrift()
    assert not accepts_connections(LOOPBACK, server.port)
    server.restart_thrift()
    assert (server.pid, server.is_running()) == (pids[0], True)
    assert server.rows(table) == written

    server.kill()
    assert not server.is_running()
    server.restart()
    assert (server.address, server.rows(table)) == (address, written)
    assert {server.pid, server.thrift_pid}.isdisjoint(pids)
    server.delete_table(table)
    folder = server.folder
    server.close()
    assert not folder.exists()
