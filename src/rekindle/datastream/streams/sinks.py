"""Sinks: the methods with which a stream ends, and `DataStreamSink`, the sink that they return."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, cast, overload

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import SupportsPreprocessing
from rekindle.datastream.connectors.sink_api import Sink
from rekindle.datastream.functions import PrintSinkFunction, SinkFunction
from rekindle.datastream.operator_details import CollectDetails
from rekindle.datastream.streams.collect import CloseableIterator
from rekindle.datastream.streams.operator_settings import OperatorSettings
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, check_sink
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings):
    """A sink that was added to a stream.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection([1]).print().name("console").set_parallelism(1)
    """


class SinkableStream(OperatorSettings):
    """The part of `DataStream` that ends a stream: sinks, printing, and collecting the records in the driver."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        upstreams: tuple[Upstream, ...],
        type_info: TypeInformation | None,
        operator: Transformation | None = None,
    ) -> None:
        super().__init__(environment, operator)
        self._upstreams = upstreams
        self._type_info = type_info

    def add_sink(self, sink_func: SinkFunction | Callable[[Any], Any]) -> DataStreamSink:
        """Hand every record to a sink function, or to a callable of one argument.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1]).add_sink(print).name("console")
        """
        as_sink = getattr(sink_func, "as_sink", None)
        if isinstance(sink_func, SinkFunction) and callable(as_sink):  # an older spelling of a Sink
            return self.sink_to(as_sink())
        where = self._where("add_sink()")
        arity = 3 if hasattr(sink_func, "invoke_current") else 2  # a two-phase sink gets the transaction first
        check_function(where, sink_func, SinkFunction, {"invoke": arity}, callable_arity=1, single_valued=True)
        return self._sink("Unnamed", sink_func)

    def sink_to(self, sink: Sink[Any]) -> DataStreamSink:
        """Write every record with the sink's writer. The writer's committables are committed with the checkpoints.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.connectors import Sink, SinkWriter
        >>> class Discarding(Sink, SinkWriter):
        ...     def create_writer(self, context): return self
        ...     def write(self, element, context): pass
        ...     def flush(self, end_of_input): pass
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1]).sink_to(Discarding()).name("nowhere").uid("nowhere")
        """
        check_sink(self._where("sink_to()"), sink)
        if isinstance(sink, SupportsPreprocessing) and (transformer := sink.get_transformer()) is not None:
            return cast(SinkableStream, transformer.apply(self))._write_to(sink)
        return self._write_to(sink)

    def _write_to(self, sink: Sink[Any]) -> DataStreamSink:
        typed = sink.for_stream_type(self._type_info) if isinstance(sink, Sink) else sink
        operator = Transformation(OperatorKind.SINK, "Writer", typed, inputs=(self._upstreams,))
        return DataStreamSink(self._env, self._env._add(operator))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print every record as `identifier:subtask> record`.

        The identifier appears if one is given, the subtask if the parallelism is above 1. A record of a declared type
        looks as PyFlink prints it: `(a,1)`, `true`.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1]).print("numbers")
        """
        return self._sink("Print to Std. Out", PrintSinkFunction(sink_identifier, self._type_info))

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, limit: None = None) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and iterate over this stream's records. With a limit, return a list of at most `limit` records.

        Closing the iterator before its end cancels the job: use it in a `with` statement.
        """
        if limit is not None and (not isinstance(limit, int) or limit <= 0):
            raise GraphError(f"execute_and_collect() takes a limit of 1 or more records, not {limit!r}.")
        results = CloseableIterator(self._env._launch(job_execution_name, self._collect()))
        if limit is None:
            return results
        with results:
            return list(islice(results, limit))

    def to_dataframe(self, job_name: str | None = None) -> Any:
        """Run the job and return this stream's records as a Spark DataFrame. All sources must be bounded."""
        return self._env._to_dataframe(job_name, self._collect())

    def _sink(self, name: str, function: SinkFunction | Callable[[Any], Any]) -> DataStreamSink:
        operator = Transformation(OperatorKind.SINK_FUNCTION, name, function, inputs=(self._upstreams,))
        return DataStreamSink(self._env, self._env._add(operator))

    def _collect(self) -> Transformation:
        """Build the sink that sends records to the driver. Its `output_type` is the type that the driver decodes."""
        return Transformation(
            OperatorKind.COLLECT,
            "Collect Stream Sink",
            None,
            inputs=(self._upstreams,),
            output_type=self._type_info,
            details=CollectDetails(),
        )

    def _where(self, method: str) -> str:
        names = ", ".join(f"'{upstream.transformation.name}'" for upstream in self._upstreams)
        return f"{type(self).__name__}.{method} after {names}"
