"""`cache`: a stream that one job computes and later jobs of the program read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from rekindle.common.restart_strategy import RestartStrategies
from rekindle.datastream import find_launcher as launcher
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.operator_details import CollectDetails
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.transformations import Program, Transformation, Upstream, with_inputs
from rekindle.datastream.vocabulary import Boundedness, ChainingStrategy, OperatorKind
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.connectors.base import Source


def _identity(value: Any) -> Any:
    return value


class CachedDataStream(DataStream):
    """A stream whose records the driver keeps after the first job that reads it. Later jobs read the kept records.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> squares = env.from_sequence(1, 9).map(lambda n: n * n, output_type=int).cache()
    >>> squares.filter(lambda n: n > 9).get_type()
    Long
    """

    def __init__(self, origin: DataStream) -> None:
        upstreams = origin._upstreams
        _check_bounded(origin, upstreams)
        transformation = Transformation(
            OperatorKind.MAP,
            "Cache",
            _identity,
            inputs=(upstreams,),
            output_type=origin._type_info,
            parallelism=upstreams[0].transformation.parallelism if len(upstreams) == 1 else None,
        )
        super().__init__(origin._env, (Upstream(transformation),), origin._type_info)
        self._origin = origin
        self._transformation = transformation
        self._computed = replace(transformation)
        self._source: Source[Any] | None = None
        self._env._caches.append(self)

    @property
    def _is_filled(self) -> bool:
        return self._source is not None

    def invalidate(self) -> None:
        """Drop the kept records. The next job that reads the stream computes it again."""
        self._source = None
        self._replace_transformation(self._computed)

    def _fill(self, program: Program) -> None:
        """Compute the records in a separate job, with the settings of the first program that reads them."""
        collect = self._origin._collect()
        collect.details = CollectDetails(with_timestamps=True)
        checkpointed = (
            program.checkpoint_config.is_checkpointing_enabled()
            and program.runtime_mode is RuntimeExecutionMode.STREAMING
        )
        own = replace(
            program,
            job_name=f"{program.job_name}: cache of {self._origin_names()}",
            transformations=(collect,),
            # Without checkpoints, a restart would collect the records before the failure a second time.
            restart_strategy=program.restart_strategy if checkpointed else RestartStrategies.no_restart(),
        )
        self._source = launcher.load_launcher().materialize(own)
        self._replace_transformation(
            replace(
                self._computed,
                kind=OperatorKind.SOURCE_READER,
                name=f"Cache of {self._origin_names()}",
                function=self._source,
                inputs=(),
                boundedness=Boundedness.BOUNDED,
                chaining=ChainingStrategy.HEAD,
            )
        )

    def _replace_transformation(self, other: Transformation) -> None:
        """Change the transformation in place, because the streams built on this one hold a reference to it."""
        vars(self._transformation).update(vars(other))

    def _origin_names(self) -> str:
        return ", ".join(f"'{upstream.transformation.name}'" for upstream in self._origin._upstreams)

    def cache(self) -> CachedDataStream:
        """Return the stream itself."""
        return self

    # -- refused: settings of operators -------------------------------------------------------------------------------

    def get_name(self) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("get_name()")

    def name(self, name: str) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("name()")

    def uid(self, uid: str) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("uid()")

    def set_uid_hash(self, uid_hash: str) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("set_uid_hash()")

    def set_parallelism(self, parallelism: int) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("set_parallelism()")

    def set_max_parallelism(self, max_parallelism: int) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("set_max_parallelism()")

    def force_non_parallel(self) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("force_non_parallel()")

    def set_buffer_timeout(self, timeout_millis: int) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("set_buffer_timeout()")

    def start_new_chain(self) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("start_new_chain()")

    def disable_chaining(self) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("disable_chaining()")

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> NoReturn:
        """Refused: a cached stream is not an operator."""
        raise self._no_operator("slot_sharing_group()")

    def _no_operator(self, method: str) -> GraphError:
        return GraphError(f"{method} is not for a CachedDataStream: call it on {self._origin_names()}, before cache().")


def _check_bounded(origin: DataStream, upstreams: tuple[Upstream, ...]) -> None:
    for each in with_inputs(upstream.transformation for upstream in upstreams):
        if each.boundedness is Boundedness.CONTINUOUS_UNBOUNDED:
            raise GraphError(
                f"{origin._where('cache()')} needs bounded sources, but '{each.name}' may never end: only a stream "
                "that ends can be kept."
            )


def fill_caches(caches: list[CachedDataStream], program: Program) -> tuple[Transformation, ...]:
    """Fill the empty caches that a program reads, inputs first, so that a cache may read another cache.

    Returns the transformations that are still to run: without operators that only the filled caches needed.
    """
    by_number = {cached._transformation.number: cached for cached in caches}
    done: set[int] = set()
    for transformation in with_inputs(program.transformations):
        cached = by_number.get(transformation.number)
        if cached is not None and not cached._is_filled:
            done.update(each.number for each in with_inputs(up.transformation for up in cached._origin._upstreams))
            cached._fill(program)
    left = with_inputs(each for each in program.transformations if each.number not in done)
    needed = {each.number for each in left}
    return tuple(each for each in program.transformations if each.number in needed)
