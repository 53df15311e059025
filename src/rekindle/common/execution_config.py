"""`ExecutionConfig`: typed access to the settings of a program, which are kept in its `Configuration`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.secret_settings import resolved
from rekindle.config import ConfigOption
from rekindle.config_parsers import parse_bool, parse_duration, parse_string
from rekindle.errors import ConfigurationError

__all__ = ["ExecutionConfig"]

# Settings of Flink's without a meaning here; kept so that a program reads back the values that it set.
_CLOSURE_CLEANER = ConfigOption("pipeline.closure-cleaner-level", parse_string, "RECURSIVE")
_LATENCY_INTERVAL = ConfigOption("metrics.latency.interval", parse_duration, timedelta(0))
_FORCE_KRYO = ConfigOption("pipeline.force-kryo", parse_bool, False)
_FORCE_AVRO = ConfigOption("pipeline.force-avro", parse_bool, False)
_CANCELLATION_INTERVAL = ConfigOption("task.cancellation.interval", parse_duration, timedelta(seconds=30))
_AUTO_UIDS = ConfigOption("pipeline.auto-generate-uids", parse_bool, True)
_SNAPSHOT_COMPRESSION = ConfigOption("execution.checkpointing.snapshot-compression", parse_bool, False)


class ExecutionConfig(RefusesJavaNames):
    """The execution settings of a program.

    >>> ExecutionConfig().set_parallelism(4).get_parallelism()
    4
    """

    #: Stands for the default parallelism.
    PARALLELISM_DEFAULT = -1
    #: Stands for an unknown parallelism: setting it changes nothing.
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def get_configuration(self) -> Configuration:
        """The configuration behind this view."""
        return self._configuration

    # -- parallelism --------------------------------------------------------------------------------------------------

    def get_parallelism(self) -> int:
        """Parallelism of operators that set none; PARALLELISM_DEFAULT when it was not set."""
        return self._configuration.get(config.PARALLELISM)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Sets the parallelism of operators that set none."""
        if parallelism != self.PARALLELISM_UNKNOWN:
            self._configuration.set(config.PARALLELISM, parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Number of key groups, the limit of rescaling; -1 when it was not set."""
        return self._configuration.get(config.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Sets the number of key groups, the limit of rescaling."""
        self._configuration.set(config.MAX_PARALLELISM, max_parallelism)
        return self

    # -- time ---------------------------------------------------------------------------------------------------------

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Sets the interval of periodic watermarks in milliseconds; 0 turns them off.

        Where no interval is set, watermarks follow the records: after every few thousand and at the end of each
        epoch, so that their places do not depend on the clock.
        """
        return self._set_millis(config.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """The time between two calls of a periodic watermark generator, in milliseconds."""
        return self._configuration.get_millis(config.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Has no effect: latency is measured per epoch here."""
        return self._set_millis(_LATENCY_INTERVAL, interval, negative=True)

    def get_latency_tracking_interval(self) -> int:
        """The value that was set, in milliseconds."""
        return self._configuration.get_millis(_LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Has no effect: a task is cancelled once, and killed with its process after the cancellation timeout."""
        return self._set_millis(_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        """The value that was set, in milliseconds."""
        return self._configuration.get_millis(_CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Sets after how many milliseconds a cancelled task that has not ended is killed with its process; 0: never."""
        return self._set_millis(config.CANCELLATION_TIMEOUT, timeout)

    def get_task_cancellation_timeout(self) -> int:
        """After how many milliseconds a cancelled task that has not ended is killed with its process."""
        return self._configuration.get_millis(config.CANCELLATION_TIMEOUT)

    # -- the job's own parameters -------------------------------------------------------------------------------------

    def get_global_job_parameters(self) -> dict[str, str]:
        """The job's own parameters.

        >>> ExecutionConfig().set_global_job_parameters({"region": "eu"}).get_global_job_parameters()
        {'region': 'eu'}
        """
        prefix = f"{config.GLOBAL_JOB_PARAMETERS.key}."
        one_by_one = self._configuration.with_prefix(prefix)
        together = self._configuration.get(config.GLOBAL_JOB_PARAMETERS)
        return one_by_one | {name: resolved(prefix + name, value) for name, value in (together or {}).items()}

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, object]) -> ExecutionConfig:
        """Sets the job's own parameters, which functions find in their runtime context."""
        if not isinstance(global_job_parameters_dict, Mapping):
            raise ConfigurationError(
                f"set_global_job_parameters() takes a dict of names and values, not {global_job_parameters_dict!r}."
            )
        parameters = {str(key): parse_string(value) for key, value in global_job_parameters_dict.items()}
        self._configuration.set(config.GLOBAL_JOB_PARAMETERS, parameters)
        return self

    # -- switches -----------------------------------------------------------------------------------------------------

    def enable_object_reuse(self) -> ExecutionConfig:
        """Passes mutable records on without a copy: a function must not change a record that it has emitted.

        By default a mutable record is copied when it leaves a function, so that later changes to the object do not
        reach records that are already on their way.
        """
        return self._switch(config.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copies mutable records when they leave a function (the default)."""
        return self._switch(config.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether mutable records are passed on without a copy."""
        return self._configuration.get(config.OBJECT_REUSE)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Derives the uid of operators without one from the topology (the default)."""
        return self._switch(_AUTO_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuses a job with an operator without a uid."""
        return self._switch(_AUTO_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators without a uid get one from the topology."""
        return self._configuration.get(_AUTO_UIDS)

    def enable_generic_types(self) -> ExecutionConfig:
        """Allows elements and state of undeclared types to be pickled (the default)."""
        return self._switch(config.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Refuses elements and state of undeclared types when the job is built, as `state.pickle: refuse` does."""
        return self._switch(config.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Whether elements and state of undeclared types are refused."""
        return not self._configuration.get(config.GENERIC_TYPES)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        return self._switch(_SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        """The value that was set."""
        return self._configuration.get(_SNAPSHOT_COMPRESSION)

    # -- settings of Java's: accepted without effect, so that programs with them run ----------------------------------

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        self._configuration.set(_CLOSURE_CLEANER, "RECURSIVE")
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        self._configuration.set(_CLOSURE_CLEANER, "NONE")
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        """The value that was set."""
        return self._configuration.get(_CLOSURE_CLEANER) != "NONE"

    def enable_force_kryo(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        return self._switch(_FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        return self._switch(_FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """The value that was set."""
        return self._configuration.get(_FORCE_KRYO)

    def enable_force_avro(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        return self._switch(_FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Has no effect; a warning says so."""
        return self._switch(_FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """The value that was set."""
        return self._configuration.get(_FORCE_AVRO)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: there is no Kryo here."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Always empty: there is no Kryo here."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Always empty: there are no POJOs here."""
        return []

    def _switch(self, option: ConfigOption[bool], value: bool) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    def _set_millis(self, option: ConfigOption[timedelta], millis: int, negative: bool = False) -> ExecutionConfig:
        if isinstance(millis, bool) or not isinstance(millis, int) or (millis < 0 and not negative):
            amount = "whole milliseconds" if negative else "0 milliseconds or more"
            raise ConfigurationError(f"'{option.key}' takes {amount}, not {millis!r}.")
        self._configuration.set(option, timedelta(milliseconds=millis))
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
