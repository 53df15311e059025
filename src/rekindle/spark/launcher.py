"""Launches a program as a job on Spark. `execute()` finds this module by its entry point."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rekindle import config
from rekindle.clock import SystemClock
from rekindle.common.completable_future import waited_for
from rekindle.common.configuration import Configuration
from rekindle.common.job_id import JobID
from rekindle.common.typeinfo import TypeInformation
from rekindle.coordinator.attempt_spec import PartitionedInput, SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.console import Progress
from rekindle.coordinator.job import JobMaster, JobSpec
from rekindle.coordinator.job_events import JobShown
from rekindle.coordinator.observer import JobObserver
from rekindle.coordinator.restart import restart_strategy
from rekindle.datastream.operator_details import DataFrameDetails
from rekindle.datastream.transformations import Program, Transformation, with_inputs
from rekindle.errors import ClusterError
from rekindle.graph.build import build_plan
from rekindle.graph.explain import explain as explain_plan
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.plan_json import plan_json as plan_as_json
from rekindle.graph.ship_dependencies import ShippedDependencies, ship_dependencies
from rekindle.graph.shipping import ship
from rekindle.monitor.job_history import HistoryWriter
from rekindle.monitor.job_recorder import JobRecorder
from rekindle.monitor.monitored_job import MonitoredJob, attach_all
from rekindle.monitor.restart_text import describe_restart
from rekindle.runtime.cached_chunks import CachedChunksSource
from rekindle.runtime.exchange.chunk import decode_chunk, read_header
from rekindle.serde import codec_for
from rekindle.spark import from_dataframe
from rekindle.spark.dataframe_chunks import DataFrameChunks
from rekindle.spark.java_error import error_for_program
from rekindle.spark.shared_session import lease_session
from rekindle.spark.spark_cluster import DataFrameFeed, SparkCluster
from rekindle.spark.storage import JobStorage
from rekindle.spark.table_queries import TableQueries
from rekindle.spark.to_dataframe import chunks_to_dataframe
from rekindle.tls import tls_files

__all__ = ["dataframe_type", "explain", "launch", "materialize", "plan_json", "query_engine", "to_dataframe"]

#: The records of a cached stream travel to every slot of the jobs that read it.
_LARGEST_CACHE_BYTES = 1 << 30


def launch(program: Program, observer: JobObserver | None = None) -> JobMaster:
    """Start a program; returns the handle behind `JobClient`."""
    return _launch(program, observer, keep_chunks=False)


def materialize(program: Program) -> CachedChunksSource:
    """Run a bounded program and return its collected records as a source for later programs."""
    job = _launch(program, None, keep_chunks=True)
    chunks: list[bytes] = []
    for batch in job.results():
        chunks.extend(sorted(batch, key=lambda chunk: read_header(chunk)[:4]))
        if sum(map(len, chunks)) > _LARGEST_CACHE_BYTES:
            job.cancel()
            raise ClusterError(
                f"cache() would keep more than {_LARGEST_CACHE_BYTES >> 20} MiB at the driver: write the stream to "
                "files and read those, or compute it anew in each job."
            )
    waited_for(job.result())
    return CachedChunksSource(chunks, _collect_of(program).output_type)


def _collect_of(program: Program) -> Transformation:
    return next(each for each in program.transformations if each.kind is OperatorKind.COLLECT)


def to_dataframe(program: Program, session: Any = None) -> Any:
    """Run a bounded program and return its collected records as a DataFrame of a session; by default, of the job's."""
    job = _launch(program, None, keep_chunks=True)
    chunks = [chunk for batch in job.results() for chunk in batch]
    waited_for(job.result())
    collect = _collect_of(program)
    session = session or lease_session(program.configuration).spark
    return chunks_to_dataframe(session, chunks, CollectedRows(collect.output_type), collect.output_type)


def query_engine(configuration: Configuration) -> TableQueries:
    """The engine of queries over tables."""
    return TableQueries(configuration, to_dataframe)


def dataframe_type(df: Any) -> TypeInformation:
    """The type of a DataFrame's rows."""
    return from_dataframe.dataframe_type(df)


def plan_json(program: Program) -> str:
    """The plan in Flink's JSON shape."""
    return plan_as_json(build_plan(program))


def explain(program: Program) -> str:
    """The plan as text for people."""
    return explain_plan(build_plan(program))


class CollectedRows:
    """Decodes the chunks that a collect operator sent; picklable, so that Spark can decode in parallel."""

    def __init__(self, type_info: TypeInformation | None) -> None:
        self._type_info = type_info

    def __call__(self, chunk: bytes) -> list[Any]:
        return decode_chunk(chunk, read_header(chunk), codec_for(self._type_info)).records


def _launch(program: Program, observer: JobObserver | None, keep_chunks: bool) -> JobMaster:
    # A job that cannot be built, or whose checkpoint cannot be found, fails before Spark is started.
    tls = tls_files(program.configuration.get)
    storage = JobStorage.of(build_plan(program), program.configuration)
    storage.check()
    stored_max = storage.stored_max_parallelism()
    dependencies = ship_dependencies(program.configuration)
    lease = lease_session(program.configuration)
    cores = lease.context.defaultParallelism
    frames = {handle: from_dataframe.DataFrameInput(df) for handle, df in program.dataframes.items()}
    for transformation in with_inputs(program.transformations):
        if isinstance(details := transformation.details, DataFrameDetails):
            transformation.details = replace(details, partitions=frames[details.handle].partitions)
    plan = build_plan(program, cores, stored_max)
    inputs = {node.id: frames[node.details.handle] for node in plan.nodes if isinstance(node.details, DataFrameDetails)}
    feeds = {node: DataFrameFeed(source, DataFrameChunks.of(plan, node)) for node, source in inputs.items()}
    renew = partial(lease_session, program.configuration)
    cluster = SparkCluster(lease, program.configuration, SystemClock(), feeds, renew)
    partitions = {node: source.partitions for node, source in inputs.items()}
    environment = SlotEnvironment(cluster.is_on_this_machine, tuple(sys.path[1:]), tls)
    spec = job_spec(program, plan, storage, environment, partitions, keep_chunks=keep_chunks, dependencies=dependencies)
    return watched(spec, cluster, program.configuration, storage, observer, cluster.page_url).start()


def job_spec(
    program: Program,
    plan: JobPlan,
    storage: JobStorage,
    environment: SlotEnvironment,
    partitions: Mapping[int, int] | None = None,
    *,
    keep_chunks: bool = False,
    dependencies: ShippedDependencies | None = None,
) -> JobSpec:
    """Everything that a job master needs to run a plan, whatever its cluster. `partitions`: those of DataFrames."""
    job_id = JobID()
    return JobSpec(
        job_id=job_id,
        plan=plan,
        program=ship(plan, program, dependencies),
        environment=environment,
        checkpointing=_checkpointing(plan, storage, str(job_id)),
        restart=restart_strategy(program.restart_strategy, program.configuration, plan.settings.checkpointed),
        dataframes=lambda: [PartitionedInput(node, list(range(count))) for node, count in (partitions or {}).items()],
        decode_chunks=list if keep_chunks else _ChunkDecoder(plan),
        as_raised=error_for_program(),
    )


def watched(
    spec: JobSpec,
    cluster: Cluster,
    configuration: Configuration,
    storage: JobStorage,
    other: JobObserver | None = None,
    spark_url: str | None = None,
) -> JobMaster:
    """The job master with its observers: the progress line or another one, the read model, the history, the page."""
    plan, clock = spec.plan, spec.checkpointing.clock
    recorder = JobRecorder(
        str(spec.job_id),
        plan,
        clock,
        describe_restart(spec.restart),
        configuration.get(config.EXCEPTION_HISTORY),
        checkpoints=spec.checkpointing.tracker.overview,
        spark_url=spark_url,
    )
    master, events = JobMaster(spec, cluster), spec.checkpointing.events
    events.subscribe(other or Progress(plan.job_name, configuration.get(config.PROGRESS), clock), trusted=True)
    events.subscribe(recorder)
    if configuration.get(config.HISTORY_ENABLED) and not storage.in_memory:
        events.subscribe(HistoryWriter(recorder, storage.store, plan.job_name, configuration.get(config.HISTORY_RUNS)))
    for attached in attach_all(MonitoredJob(recorder, master, configuration, storage.options)):
        for observer in attached.observers:
            events.subscribe(observer)
        if attached.link is not None:
            events.emit(JobShown(attached.link))
    return master


def _checkpointing(plan: JobPlan, storage: JobStorage, job_id: str) -> CheckpointDriver:
    return CheckpointDriver(
        plan,
        job_id,
        storage.store,
        SystemClock(),
        in_memory=storage.in_memory,
        recover=storage.recover,
        store_options=storage.options,
    )


class _ChunkDecoder:
    """Decodes the driver's chunks to records, in the order in which each subtask sent them."""

    def __init__(self, plan: JobPlan) -> None:
        self._codecs = {
            node.id: codec_for(node.output_type) for node in plan.nodes if node.kind is OperatorKind.COLLECT
        }

    def __call__(self, chunks: list[bytes]) -> list[Any]:
        ordered = sorted(((read_header(chunk), chunk) for chunk in chunks), key=lambda each: each[0][:4])
        return [
            record
            for header, chunk in ordered
            for record in decode_chunk(chunk, header, self._codecs[header.edge]).records
        ]
