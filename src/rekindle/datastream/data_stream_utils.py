"""`DataStreamUtils`: what Flink offers beside the methods of streams."""

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
    """Flink's class of this name; PyFlink has none."""

    @staticmethod
    def reinterpret_as_keyed_stream(
        stream: DataStream, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None
    ) -> KeyedStream:
        """A stream that is keyed already, without another exchange: what follows runs in the same task.

        The caller answers for it that every record is where `key_by()` with this selector would have brought it, as it
        is when the records come out of an operator that was keyed in the same way and left their keys alone. A record
        whose key belongs elsewhere fails the job.

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
                f"{stream._where(method)}: the stream is about to be partitioned, and is where its keys belong only "
                "after an operator: call it on what an operator on a keyed stream gives, or use key_by()."
            )
        return stream._keyed(method, Partitioning.FORWARD, key_selector, key_type)
