"""All kinds of streams, under PyFlink's import path."""

from __future__ import annotations

from rekindle.datastream.streams.broadcast import BroadcastConnectedStream, BroadcastStream
from rekindle.datastream.streams.collect import CloseableIterator
from rekindle.datastream.streams.connected_streams import ConnectedStreams
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.streams.sink import DataStreamSink

__all__ = [
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
]
