"""An HBase that the tests of this folder may kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.servers.hbase import HBaseServer
from tools.servers.server_error import ServerError

#: Regions split when they hold half a megabyte; HBase itself would refuse such small ones.
SMALL_REGIONS = {
    "hbase.hregion.memstore.flush.size": "262144",
    "hbase.hregion.max.filesize": "524288",
    "hbase.increasing.policy.initial.size": "262144",
    "hbase.table.sanity.checks": "false",
}


@pytest.fixture(scope="session")
def mortal(in_temporary_folder: None) -> Iterator[HBaseServer]:
    """An HBase with small regions: tests kill it, and leave it running."""
    server = HBaseServer(properties=SMALL_REGIONS)
    try:
        server.start()
    except ServerError as error:
        server.close()
        pytest.fail(str(error), pytrace=False)
    with server:
        yield server
