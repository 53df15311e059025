"""The settings of an HBase sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rekindle.datastream.connectors.hbase.cell_timestamps import TimestampMode
from rekindle.datastream.connectors.hbase.thrift_settings import ThriftSettings


@dataclass(frozen=True)
class HBaseSinkSettings:
    """The settings of an HBase sink, as its builder collects them."""

    thrift: ThriftSettings
    table: str
    converter: Any
    mode: TimestampMode = TimestampMode.FENCED
    #: A flush begins when so many mutations wait,
    max_mutations: int = 1000
    #: or so many bytes,
    max_bytes: int = 2 * 1024 * 1024
    #: or when the oldest one has waited so long; 0: only the other limits and checkpoints count.
    interval_ms: int = 1000
    #: Whether HBase writes its log ahead first; without it a crash of a region server loses rows.
    write_ahead_log: bool = True

    def __repr__(self) -> str:
        return f"HBaseSinkSettings({self.thrift.place}, table={self.table!r}, {self.mode.name})"
