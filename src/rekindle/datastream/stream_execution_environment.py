"""`StreamExecutionEnvironment`: creates streams from sources and runs the job."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from rekindle import config
from rekindle.common.completable_future import waited_for
from rekindle.common.configuration import Configuration
from rekindle.common.io import InputFormat
from rekindle.common.job_client import JobClient, JobHandle
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream import find_launcher as launcher
from rekindle.datastream.connectors.base import AddedSource, Source
from rekindle.datastream.connectors.collection import CollectionSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.environment_settings import StreamEnvironmentSettings
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.functions import ParallelSourceFunction, SourceFunction
from rekindle.datastream.operator_details import DataFrameDetails
from rekindle.datastream.streams.cached_stream import CachedDataStream, fill_caches
from rekindle.datastream.submitted_settings import with_submitted
from rekindle.datastream.termination import TerminableJob, Termination, TerminationSettings
from rekindle.datastream.transformations import Program, Transformation, Upstream, with_inputs
from rekindle.datastream.validation import (
    check_function,
    check_name,
    declared_type,
)
from rekindle.datastream.vocabulary import Boundedness, ChainingStrategy, OperatorKind
from rekindle.errors import GraphError, TypeMismatchError
from rekindle.serde import codec_for

if TYPE_CHECKING:
    from rekindle.common.typeinfo import TypeInformation

__all__ = ["StreamExecutionEnvironment"]

_LOG = logging.getLogger("rekindle")
_DEFAULT_JOB_NAME = "Rekindle Streaming Job"


class StreamExecutionEnvironment(StreamEnvironmentSettings):
    """Creates streams from sources, holds the settings of the job, and runs it.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> stream = env.set_parallelism(2).from_collection(["to", "be"]).map(str.upper)
    >>> env.get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__(configuration)
        self._transformations: list[Transformation] = []
        self._dataframes: dict[str, Any] = {}
        self._caches: list[CachedDataStream] = []

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Return a new environment with these settings, over those of the command line that runs the program.

        >>> StreamExecutionEnvironment.get_execution_environment().is_chaining_enabled()
        True
        """
        return StreamExecutionEnvironment(with_submitted(configuration))

    # -- sources ------------------------------------------------------------------------------------------------------

    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream:
        """Create a stream of these elements, in their order, from one subtask. Without a type they are pickled.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([("a", 1)], type_info=tuple[str, int]).get_type()
        Tuple<String, Long>
        """
        where = "from_collection()"
        if isinstance(collection, str | bytes) or not isinstance(collection, Iterable):
            raise GraphError(f"{where} takes a list of elements, not {collection!r}.")
        declared = declared_type(where, type_info)
        wrap_numbers = self._configuration.get(config.OUT_OF_RANGE) == "wrap"
        source: CollectionSource[Any] = CollectionSource(_as_declared(where, list(collection), declared, wrap_numbers))
        stream = self._from_reader(source, None, "Collection Source", declared)
        return stream.force_non_parallel()

    def from_elements(self, *elements: Any, type_info: Any = None) -> DataStream:
        """Create a stream of the arguments, as `from_collection` does.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_elements(1, 2, 3).get_name()
        'Collection Source'
        """
        return self.from_collection(elements, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """Create a stream of the numbers from `start` to `end`, both included, from all subtasks in parallel.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_sequence(1, 1_000_000).get_type()
        Long
        """
        return self._from_reader(NumberSequenceSource(start, end), None, "Sequence Source", declared_type("", int))

    def add_source(
        self, source_func: SourceFunction | AddedSource[Any], source_name: str = "Custom Source", type_info: Any = None
    ) -> DataStream:
        """Create a stream of the records of a `SourceFunction`. A `ParallelSourceFunction` runs on every subtask.

        Connectors that are source functions in Flink, such as `FlinkKafkaConsumer`, are polled (I7).

        >>> class Hello(SourceFunction):
        ...     def run(self, ctx): ctx.collect("hello")
        ...     def cancel(self): pass
        >>> StreamExecutionEnvironment.get_execution_environment().add_source(Hello(), "greeting").get_name()
        'greeting'
        """
        if isinstance(source_func, AddedSource):
            name = check_name("add_source(): source_name", source_name)
            produced = declared_type(f"add_source('{source_name}')", type_info) or source_func.get_produced_type()
            return self._from_reader(source_func, source_func.watermark_strategy, name, produced)
        check_function(f"add_source('{source_name}')", source_func, SourceFunction, {"run": 1, "cancel": 0})
        parallel = isinstance(source_func, ParallelSourceFunction)
        return self._source(
            Transformation(
                OperatorKind.SOURCE_FUNCTION,
                check_name("add_source(): source_name", source_name),
                source_func,
                output_type=declared_type(f"add_source('{source_name}')", type_info),
                boundedness=source_func.boundedness(),
                parallelism=None if parallel else 1,
                non_parallel=not parallel,
            )
        )

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """Create a stream of the lines of a file or of the files in a folder: Flink 1's name, gone since 2.0.

        >>> StreamExecutionEnvironment.get_execution_environment().read_text_file(__file__).get_type()
        String
        """
        from rekindle.datastream.connectors.file_system import FileSource, StreamFormat

        _LOG.warning("read_text_file() is gone since Flink 2.0: use from_source() with a FileSource.")
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self.from_source(lines, WatermarkStrategy.no_watermarks(), f"read_text_file({file_path})")

    def from_source(
        self, source: Source[Any], watermark_strategy: WatermarkStrategy, source_name: str, type_info: Any = None
    ) -> DataStream:
        """Create a stream of the records of a polled `Source`. The strategy assigns event times and watermarks.

        >>> from rekindle.datastream.connectors.number_seq import NumberSequenceSource
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), "numbers", int).get_type()
        Long
        """
        where = f"from_source('{source_name}')"
        if not isinstance(source, Source):
            raise GraphError(f"{where} takes a Source (rekindle.datastream.connectors.base), not {source!r}.")
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise GraphError(
                f"{where} takes a WatermarkStrategy, for example WatermarkStrategy.no_watermarks(), "
                f"not {watermark_strategy!r}."
            )
        check_name("from_source(): source_name", source_name)
        produced = declared_type(where, type_info) or source.get_produced_type()
        return self._from_reader(source, watermark_strategy, source_name, produced)

    def from_dataframe(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
        type_info: Any = None,
    ) -> DataStream:
        """Create a bounded stream of the rows of a batch Spark DataFrame, as `Row` unless a type is given (I10)."""
        declared = declared_type(f"from_dataframe('{source_name}')", type_info)
        handle = f"dataframe-{len(self._dataframes)}"
        self._dataframes[handle] = df
        return self._source(
            Transformation(
                OperatorKind.SOURCE_DATAFRAME,
                check_name("from_dataframe(): source_name", source_name),
                None,
                output_type=declared or launcher.load_launcher().dataframe_type(df),
                boundedness=Boundedness.BOUNDED,
                chaining=ChainingStrategy.NEVER,
                details=DataFrameDetails(handle),
                watermark_strategy=watermark_strategy,
            )
        )

    def create_input(self, input_format: Any, type_info: Any = None) -> DataStream:
        """Create a bounded stream of the records of an input format, such as `AvroInputFormat`."""
        if not isinstance(input_format, InputFormat):
            raise GraphError(
                f"create_input() takes an InputFormat, such as AvroInputFormat, not {input_format!r}: use "
                "from_source() or from_dataframe() for others."
            )
        produced = declared_type("create_input()", type_info) or input_format.get_produced_type()
        return self._from_reader(input_format.as_source(), None, "Custom Source", produced)

    def _from_reader(
        self,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy | None,
        name: str,
        output_type: TypeInformation | None,
    ) -> DataStream:
        return self._source(
            Transformation(
                OperatorKind.SOURCE_READER,
                name,
                source,
                output_type=output_type,
                boundedness=source.boundedness(),
                watermark_strategy=watermark_strategy,
            )
        )

    def _source(self, transformation: Transformation) -> DataStream:
        transformation.chaining = (
            ChainingStrategy.NEVER if transformation.kind is OperatorKind.SOURCE_DATAFRAME else ChainingStrategy.HEAD
        )
        self._add(transformation)
        return DataStream(self, (Upstream(transformation),), transformation.output_type, transformation)

    # -- running ------------------------------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait for its end. Ctrl-C cancels it; SIGTERM ends it as `rekindle.sigterm.action` says."""
        termination = TerminationSettings.of(self._configuration)
        job = self._launch(job_name)
        name = job_name or self._configuration.get(config.JOB_NAME) or _DEFAULT_JOB_NAME
        with Termination(lambda: [TerminableJob(name, job, termination)]):
            try:
                return waited_for(job.result())
            except KeyboardInterrupt:
                self._cancel(job)
                raise

    def execute_async(self, job_name: str = _DEFAULT_JOB_NAME) -> JobClient:
        """Start the job and return a client of it."""
        return JobClient(self._launch(job_name))

    def get_execution_plan(self) -> str:
        """Return the plan as JSON, in Flink's form.

        >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        >>> sink = env.from_sequence(1, 9).print()
        >>> print(env.get_execution_plan())
        {
          "nodes": [
            {
              "id": 0,
              "type": "Source: Sequence Source",
        ...
        """
        return launcher.load_launcher().plan_json(self._program(None))

    def explain(self) -> str:
        """Return the plan as text: tasks, operators, exchanges, types, and where each task runs.

        >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        >>> sink = env.from_sequence(1, 9).print()
        >>> print(env.explain())
        Job 'Rekindle Streaming Job': STREAMING, 1 task in 1 stage, 1 slot
        ...
        """
        return launcher.load_launcher().explain(self._program(None))

    def close(self) -> None:
        """Discard the program that was built so far, and its caches."""
        self._transformations.clear()
        self._dataframes.clear()
        for cached in self._caches:
            cached.invalidate()
        self._caches.clear()

    def _launch(self, job_name: str | None, collect: Transformation | None = None) -> launcher.CollectingJob:
        handle = launcher.load_launcher().launch(self._program_to_run(job_name, collect))
        self._transformations.clear()
        return handle

    def _to_dataframe(self, job_name: str | None, collect: Transformation) -> Any:
        program = self._program_to_run(job_name, collect)
        for transformation in with_inputs(program.transformations):
            if transformation.boundedness is Boundedness.CONTINUOUS_UNBOUNDED:
                raise GraphError(
                    f"to_dataframe() needs bounded sources, but '{transformation.name}' may never end: bound it, "
                    "or use execute_and_collect()."
                )
        frame = launcher.load_launcher().to_dataframe(program)
        self._transformations.clear()
        return frame

    def _cancel(self, job: JobHandle) -> None:
        timeout_ms = self._configuration.get_millis(config.CANCELLATION_TIMEOUT)
        _LOG.info("Interrupted: cancelling the job.")
        try:
            job.cancel().result(timeout_ms / 1000 if timeout_ms else None)
        except TimeoutError:
            _LOG.warning("The job did not end within %d ms after its cancellation.", timeout_ms)

    def _program_to_run(self, job_name: str | None, collect: Transformation | None) -> Program:
        """Fill the caches that the program reads, and return the program that is left to run."""
        program = self._program(job_name, collect)
        if not self._caches:
            return program
        without_restore = Configuration(program.configuration)
        without_restore.remove_config(config.RECOVERY_PATH.key)
        left = fill_caches(self._caches, replace(program, configuration=without_restore))
        return replace(program, transformations=left)

    def _program(self, job_name: str | None, collect: Transformation | None = None) -> Program:
        settings = self._configuration
        parallelism, max_parallelism = settings.get(config.PARALLELISM), settings.get(config.MAX_PARALLELISM)
        transformations = (*self._transformations, *(() if collect is None else (collect,)))
        described = [each.details for each in with_inputs(transformations)]
        handles = {details.handle for details in described if isinstance(details, DataFrameDetails)}
        return Program(
            job_name=job_name or settings.get(config.JOB_NAME) or _DEFAULT_JOB_NAME,
            transformations=transformations,
            configuration=Configuration(settings),
            execution_config=self._execution_config,
            checkpoint_config=self._checkpoint_config,
            runtime_mode=RuntimeExecutionMode[settings.get(config.RUNTIME_MODE)],
            parallelism=parallelism if parallelism > 0 else None,
            max_parallelism=max_parallelism if max_parallelism > 0 else None,
            default_local_parallelism=self._default_local_parallelism,
            restart_strategy=self._restart_strategy,
            state_backend=self._state_backend,
            cached_files=tuple(self._cached_files.values()),
            dataframes={handle: frame for handle, frame in self._dataframes.items() if handle in handles},
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a StreamExecutionEnvironment stays in the driver and cannot be used inside a function")

    def _add(self, transformation: Transformation) -> Transformation:
        self._transformations.append(transformation)
        return transformation

    def _operator_with_uid(self, uid: str) -> Transformation | None:
        return next((each for each in with_inputs(self._transformations) if each.uid == uid), None)


def _as_declared(where: str, elements: list[Any], declared: TypeInformation | None, wrap_numbers: bool) -> list[Any]:
    """Return the elements as an exchange would deliver them, so that an element of a wrong type fails here."""
    if declared is None:
        return elements
    codec = codec_for(declared)
    try:
        records = codec.decode(codec.encode(elements))
        for convert in (declared.shaper(), declared.fitter(wrap_numbers)):
            records = records if convert is None else list(map(convert, records))
        return records
    except TypeMismatchError as error:
        raise TypeMismatchError(f"{where}: {error}") from None
