"""`DataStreamUtils`: Flink's helper methods for streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.datastream.functions import KeySelector
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.vocabulary import Partitioning
from rekindle.errors import GraphError

__all__ = ["DataStreamUtils"]


class DataStreamUtils:
    """Flink's helper methods for streams, which PyFlink does not have."""

    @staticmethod
    def reinterpret_as_keyed_stream(
        stream: DataStream, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None
    ) -> KeyedStream:
        """Treat a stream as keyed without another exchange, so that the next operator runs in the same task.

        Every record must already be at the subtask to which `key_by()` with this selector would send it. That is so
        if the records come from an operator that was keyed in the same way and did not change their keys. A record
        at the wrong subtask fails the job.

        >>> from rekindle.datastream import KeyedProcessFunction, StreamExecutionEnvironment
        >>> class Pass(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> passed = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0]).process(Pass())
        >>> again = DataStreamUtils.reinterpret_as_keyed_stream(passed, lambda pair: pair[0])
        >>> again.sum(1).get_name()
        'Sum'
        """
        method = "reinterpret_as_keyed_stream()"
        if any(upstream.partitioning not in (None, Partitioning.FORWARD) for upstream in stream._upstreams):
            raise GraphError(
                f"{stream._where(method)}: the stream is about to be partitioned, so its records are not yet at the "
                "subtasks of their keys: call it on the output of an operator on a keyed stream, or use key_by()."
            )
        return stream._keyed(method, Partitioning.FORWARD, key_selector, key_type)
