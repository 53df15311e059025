"""All stream classes, under PyFlink's import path."""

from __future__ import annotations

from rekindle.datastream.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from rekindle.datastream.streams.cached_stream import CachedDataStream
from rekindle.datastream.streams.collect import CloseableIterator
from rekindle.datastream.streams.connected_streams import ConnectedStreams
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.interval_join import IntervalJoin, IntervalJoined
from rekindle.datastream.streams.joined_streams import CoGroupedStreams, JoinedStreams
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.streams.sinks import DataStreamSink
from rekindle.datastream.streams.tagged_union import TaggedUnion, TaggedUnionTypeInfo
from rekindle.datastream.streams.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IntervalJoin",
    "IntervalJoined",
    "JoinedStreams",
    "KeyedStream",
    "TaggedUnion",
    "TaggedUnionTypeInfo",
    "WindowedStream",
]
