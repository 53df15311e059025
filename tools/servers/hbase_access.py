"""What a program does with an HBase that runs, whoever started it: find it, make tables, read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.servers.fetch import JarList
from tools.servers.ports import LOOPBACK

FILES = Path(__file__).with_name("hbase_files")
JARS = JarList("HBase", FILES / "pom.xml", megabytes=71)
_TIMEOUT_MS = 60_000
_SCAN_BATCH = 1_000


@dataclass
class HBaseAccess:
    """The address of HBase's Thrift server."""

    port: int
    host: str = LOOPBACK

    @property
    def address(self) -> str:
        """Host and port of the Thrift server.

        >>> HBaseAccess(9090).address
        '127.0.0.1:9090'
        """
        return f"{self.host}:{self.port}"

    def connection(self, timeout_ms: int = _TIMEOUT_MS) -> Any:
        """A new connection: one that was made before a restart of a server fails after it."""
        import happybase

        return happybase.Connection(self.host, self.port, timeout=timeout_ms)

    def create_table(self, name: str, *families: str, **options: Any) -> str:
        """Make a table and return its name; `max_versions=3`, `time_to_live=10` and so on hold for every family."""
        connection = self.connection()
        try:
            connection.create_table(name, {family: dict(options) for family in families or ("f",)})
        finally:
            connection.close()
        return name

    def delete_table(self, name: str) -> None:
        """Remove a table with its data."""
        connection = self.connection()
        try:
            connection.delete_table(name, disable=True)
        finally:
            connection.close()

    def rows(self, table: str) -> dict[bytes, dict[bytes, bytes]]:
        """All rows of a table, as a reader sees them now."""
        connection = self.connection()
        try:
            return dict(connection.table(table).scan(batch_size=_SCAN_BATCH))
        finally:
            connection.close()
