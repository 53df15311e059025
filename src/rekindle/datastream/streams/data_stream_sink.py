"""The end of a stream."""

from __future__ import annotations

from rekindle.datastream.streams.operator_settings import OperatorSettings


class DataStreamSink(OperatorSettings):
    """A sink that was added to a stream.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection([1]).print().name("console").set_parallelism(1)
    """
