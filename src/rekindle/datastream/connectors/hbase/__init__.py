"""A sink, a source and a lookup for HBase, through its Thrift server."""

from __future__ import annotations

from rekindle.datastream.connectors.hbase.cell_timestamps import TimestampMode
from rekindle.datastream.connectors.hbase.lookup import HBaseLookup, HBaseLookupBuilder
from rekindle.datastream.connectors.hbase.mutations import Delete, HBaseMutationConverter, Mutation, Put
from rekindle.datastream.connectors.hbase.sink import HBaseSink, HBaseSinkBuilder
from rekindle.datastream.connectors.hbase.source import HBaseSource, HBaseSourceBuilder

__all__ = [
    "Delete",
    "HBaseLookup",
    "HBaseLookupBuilder",
    "HBaseMutationConverter",
    "HBaseSink",
    "HBaseSinkBuilder",
    "HBaseSource",
    "HBaseSourceBuilder",
    "Mutation",
    "Put",
    "TimestampMode",
]
