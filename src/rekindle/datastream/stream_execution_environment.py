"""Where a program begins and from where it is run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.job_client import JobClient, JobHandle
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.restart_strategy import RestartStrategyConfiguration
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream import launcher
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.connectors.base import Source
from rekindle.datastream.connectors.collection import CollectionSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.functions import ParallelSourceFunction, SourceFunction
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.state_backend import StateBackend
from rekindle.datastream.transformations import Program, Transformation, Upstream, with_inputs
from rekindle.datastream.validation import (
    check_function,
    check_max_parallelism,
    check_name,
    check_parallelism,
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


class StreamExecutionEnvironment:
    """Makes streams from sources, holds the settings of the job, and runs it.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> stream = env.set_parallelism(2).from_collection(["to", "be"]).map(str.upper)
    >>> env.get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else Configuration(configuration)
        self._execution_config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._transformations: list[Transformation] = []
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._default_local_parallelism = _cores()
        self._restart_strategy: RestartStrategyConfiguration | None = None
        self._state_backend: StateBackend | None = None
        self._changelog: bool | None = None
        self._dataframes: dict[str, Any] = {}

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment with these settings.

        >>> StreamExecutionEnvironment.get_execution_environment().is_chaining_enabled()
        True
        """
        return StreamExecutionEnvironment(configuration)

    # -- settings -----------------------------------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        """The execution configuration."""
        return self._execution_config

    def get_configuration(self) -> Configuration:
        """All settings by key."""
        return self._configuration

    def configure(self, configuration: Configuration) -> None:
        """Take over these settings; those that are not in it stay as they are.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.configure(Configuration.from_dict({"parallelism.default": "3"}))
        >>> env.get_parallelism()
        3
        """
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """How many subtasks an operator has that says nothing itself; -1: as many as Spark has cores."""
        if parallelism != ExecutionConfig.PARALLELISM_DEFAULT:
            check_parallelism("The environment", parallelism)
        self._configuration.set(config.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """How many subtasks an operator has that says nothing itself."""
        parallelism = self._configuration.get(config.PARALLELISM)
        return parallelism if parallelism > 0 else self._default_local_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups of operators that say nothing themselves, and so the limit of rescaling."""
        check_max_parallelism("The environment", max_parallelism)
        self._configuration.set(config.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, -1 if it follows from the parallelism."""
        return self._configuration.get(config.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """What counts when nobody sets a parallelism: this machine's cores."""
        return self._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """What counts when nobody sets a parallelism."""
        self._default_local_parallelism = check_parallelism("The environment", parallelism)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Make a group known by its name."""
        known = self._slot_sharing_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise GraphError(f"Slot sharing group '{known.get_name()}' is registered twice with different resources.")
        return self

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Streaming (the default), batch, or batch when every source is bounded."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise GraphError(f"set_runtime_mode() takes a RuntimeExecutionMode, not {execution_mode!r}.")
        self._configuration.set(config.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """The longest time that records wait before they are sent on; -1: until there are many."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise GraphError(f"A buffer timeout is -1, 0 or more ms, not {timeout_millis!r}.")
        self._configuration.set(config.BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(config.BUFFER_TIMEOUT, timedelta(milliseconds=timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        """The longest time that records wait before they are sent on, in milliseconds; -1: until there are many."""
        enabled = self._configuration.get(config.BUFFER_TIMEOUT_ENABLED)
        return self._configuration.get_millis(config.BUFFER_TIMEOUT) if enabled else -1

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Let every operator be a task of its own."""
        self._configuration.set(config.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators that need no exchange between them run in one task."""
        return self._configuration.get(config.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators with different numbers of key groups may share a task."""
        return self._configuration.get(config.CHAIN_DIFFERENT_MAX_PARALLELISM)

    # -- checkpoints and restarts -------------------------------------------------------------------------------------

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints."""
        return self._checkpoint_config

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Make a checkpoint every `interval` milliseconds.

        >>> env = StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(30_000)
        >>> env.get_checkpoint_interval()
        30000
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between the starts of two checkpoints; -1 without checkpoints."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were asked for."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints were asked for by force."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Where keyed state lives while the job runs."""
        if not isinstance(state_backend, StateBackend):
            raise GraphError(f"set_state_backend() takes a StateBackend, not {state_backend!r}.")
        self._state_backend = state_backend
        self._configuration.set(config.STATE_BACKEND, state_backend.name())
        return self

    def get_state_backend(self) -> StateBackend | None:
        """The state backend that was set, if any."""
        return self._state_backend

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted: checkpoints hold what has changed in any case."""
        self._changelog = enabled
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set, None if nothing was."""
        return self._changelog

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go that name no directory."""
        check_name("set_default_savepoint_directory()", directory)
        self._configuration.set(config.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go that name no directory."""
        return self._configuration.get(config.SAVEPOINT_DIRECTORY)

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        """What happens when the job fails."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise GraphError(
                f"set_restart_strategy() takes what RestartStrategies makes, not {restart_strategy_configuration!r}."
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration | None:
        """The restart strategy that was set, if any."""
        return self._restart_strategy

    # -- what the program needs ---------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Ship a Python file, a package directory or a zip archive, so that functions can import from it."""
        check_name("add_python_file()", file_path)
        if not os.path.exists(file_path):
            raise GraphError(f"add_python_file(): there is no '{file_path}'.")
        files = self._configuration.get(config.PYTHON_FILES) or []
        self._configuration.set(config.PYTHON_FILES, [*files, os.path.abspath(file_path)])

    def set_python_executable(self, python_exec: str) -> None:
        """The interpreter of the slots and of Spark's Python workers."""
        self._configuration.set(config.PYTHON_EXECUTABLE, check_name("set_python_executable()", python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Has no effect: packages are installed where Spark's executors run, not by a job."""
        _no_effect("set_python_requirements()", "install the packages in the executors' Python environment")

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Has no effect: archives are shipped by Spark itself."""
        _no_effect("add_python_archive()", "ship archives with Spark's own `spark.archives`")

    def add_jars(self, *jars_path: str) -> None:
        """Has no effect: there is no Java code in a Rekindle job."""
        _no_effect("add_jars()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def add_classpaths(self, *classpaths: str) -> None:
        """Has no effect: there is no Java code in a Rekindle job."""
        _no_effect("add_classpaths()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Has no effect: PyFlink's functions cannot read cached files either."""
        _no_effect("register_cached_file()", "ship the file with Spark's own `spark.files`")

    # -- sources ------------------------------------------------------------------------------------------------------

    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream:
        """The elements in their order, from one subtask. Without a type they are pickled.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([("a", 1)], type_info=tuple[str, int]).get_type()
        Tuple<String, Long>
        """
        where = "from_collection()"
        if isinstance(collection, str | bytes) or not isinstance(collection, Iterable):
            raise GraphError(f"{where} takes a list of elements, not {collection!r}.")
        declared = declared_type(where, type_info)
        source: CollectionSource[Any] = CollectionSource(_fitting(where, list(collection), declared))
        stream = self._from_reader(source, None, "Collection Source", declared)
        return stream.force_non_parallel()

    def from_elements(self, *elements: Any, type_info: Any = None) -> DataStream:
        """The same as `from_collection` for elements that are written out.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_elements(1, 2, 3).get_name()
        'Collection Source'
        """
        return self.from_collection(elements, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers from `start` to `end`, both included, from all subtasks in parallel.

        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_sequence(1, 1_000_000).get_type()
        Long
        """
        return self._from_reader(NumberSequenceSource(start, end), None, "Sequence Source", declared_type("", int))

    def add_source(
        self, source_func: SourceFunction, source_name: str = "Custom Source", type_info: Any = None
    ) -> DataStream:
        """Records that a `SourceFunction` collects; a `ParallelSourceFunction` runs on every subtask.

        >>> class Hello(SourceFunction):
        ...     def run(self, ctx): ctx.collect("hello")
        ...     def cancel(self): pass
        >>> StreamExecutionEnvironment.get_execution_environment().add_source(Hello(), "greeting").get_name()
        'greeting'
        """
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

    def from_source(
        self, source: Source[Any], watermark_strategy: WatermarkStrategy, source_name: str, type_info: Any = None
    ) -> DataStream:
        """Records of a `Source` that is polled, with event times and watermarks by the strategy.

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
        return self._from_reader(source, watermark_strategy, source_name, declared_type(where, type_info))

    def from_dataframe(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
        type_info: Any = None,
    ) -> DataStream:
        """The rows of a batch Spark DataFrame, as `Row` unless another type is given: a bounded source (I10)."""
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
                options={"dataframe": handle, **_strategy_option(watermark_strategy)},
            )
        )

    def create_input(self, input_format: Any, type_info: Any = None) -> DataStream:
        """Refused: input formats are Java; use `from_source` or `from_dataframe`."""
        raise GraphError("create_input() takes a Java InputFormat: use from_source() or from_dataframe() instead.")

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
                options=_strategy_option(watermark_strategy),
            )
        )

    def _source(self, transformation: Transformation) -> DataStream:
        transformation.chaining = (
            ChainingStrategy.NEVER
            if transformation.kind is OperatorKind.SOURCE_DATAFRAME
            else ChainingStrategy.HEAD
        )
        self._add(transformation)
        return DataStream(self, (Upstream(transformation),), transformation.output_type, transformation)

    # -- running ------------------------------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait for its end. Ctrl-C cancels it."""
        job = self._launch(job_name)
        try:
            return job.result().result()
        except KeyboardInterrupt:
            self._cancel(job)
            raise

    def execute_async(self, job_name: str = _DEFAULT_JOB_NAME) -> JobClient:
        """Start the job and give back a handle to it."""
        return JobClient(self._launch(job_name))

    def get_execution_plan(self) -> str:
        """The plan in Flink's JSON shape."""
        return launcher.load_launcher().plan_json(self._program(None))

    def explain(self) -> str:
        """The plan for people: tasks, operators, exchanges, types, and where each task runs."""
        return launcher.load_launcher().explain(self._program(None))

    def close(self) -> None:
        """Forget the program that was built so far."""
        self._transformations.clear()
        self._dataframes.clear()

    def _launch(self, job_name: str | None, collect: Transformation | None = None) -> launcher.CollectingJob:
        handle = launcher.load_launcher().launch(self._program(job_name, collect))
        self._transformations.clear()
        return handle

    def _to_dataframe(self, job_name: str | None, collect: Transformation) -> Any:
        program = self._program(job_name, collect)
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

    def _program(self, job_name: str | None, collect: Transformation | None = None) -> Program:
        settings = self._configuration
        parallelism, max_parallelism = settings.get(config.PARALLELISM), settings.get(config.MAX_PARALLELISM)
        transformations = (*self._transformations, *(() if collect is None else (collect,)))
        handles = {each.options.get("dataframe") for each in with_inputs(transformations)}
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
            dataframes={handle: frame for handle, frame in self._dataframes.items() if handle in handles},
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a StreamExecutionEnvironment stays in the driver and cannot be used inside a function")

    def _add(self, transformation: Transformation) -> Transformation:
        self._transformations.append(transformation)
        return transformation

    def _operator_with_uid(self, uid: str) -> Transformation | None:
        return next((each for each in with_inputs(self._transformations) if each.uid == uid), None)


def _strategy_option(watermark_strategy: WatermarkStrategy | None) -> dict[str, Any]:
    return {} if watermark_strategy is None else {"watermark_strategy": watermark_strategy}


def _fitting(where: str, elements: list[Any], declared: TypeInformation | None) -> list[Any]:
    """The elements as they would come out of an exchange, so that a wrong one fails here and now."""
    if declared is None:
        return elements
    codec = codec_for(declared)
    try:
        return codec.decode(codec.encode(elements))
    except TypeMismatchError as error:
        raise TypeMismatchError(f"{where}: {error}") from None


def _cores() -> int:
    """The cores that this process may use; not every system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _no_effect(method: str, instead: str) -> None:
    _LOG.warning("%s has no effect in Rekindle: %s.", method, instead)
