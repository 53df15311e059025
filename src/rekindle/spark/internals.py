"""Every call into Spark outside its public Python API, each a small function with a test of its own.

The calls go through py4j to classes that pyspark's own `RDD.partitionBy` and `collect` use. A new Spark that moves one
of them breaks `tests/integration/test_spark_internals.py` first, and only this file needs a change.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext, StorageLevel, java_gateway
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.context import SQLContext
from pyspark.util import _create_local_socket

from rekindle.errors import ClusterError
from rekindle.system import how_it_ended, out_of_descriptors, refusal

#: The message of a call that the JVM did not answer starts with this.
JVM_GONE = "the driver's JVM does not answer"
#: A process that was killed closes its connections a moment before it has ended.
_ENDING_S = 10.0
#: How each session that was forgotten had ended.
_endings: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()
#: A `JavaRDD` of byte arrays, as py4j's proxy, which has no types.
ByteRdd: TypeAlias = Any
#: The function of a task over its partition: (index, rows in) -> rows out.
ByteTask: TypeAlias = Callable[[int, Iterable[bytes]], Iterable[bytes]]


@dataclass(frozen=True)
class PythonRuntime:
    """The environment of Python functions in Spark's workers, converted to Java objects once."""

    environment: Any
    includes: Any
    no_broadcasts: Any


def python_runtime(sc: SparkContext, python_path: str | None = None) -> PythonRuntime:
    """The session's own environment for Python workers, with `python_path` in front of the workers' PYTHONPATH.

    The session itself is not changed: Spark keeps workers of different environments apart.
    """
    environment = dict(sc.environment)
    if python_path:
        known = environment.get("PYTHONPATH", "")
        if not known.startswith(python_path):
            environment["PYTHONPATH"] = f"{python_path}:{known}".rstrip(":")
    java_util = _jvm(sc).java.util
    java_environment = java_util.HashMap()
    for name, value in environment.items():
        java_environment.put(name, value)
    java_includes = java_util.ArrayList()
    for include in sc._python_includes or ():
        java_includes.add(include)
    return PythonRuntime(java_environment, java_includes, java_util.ArrayList())


def empty_partitions(sc: SparkContext, partitions: int) -> ByteRdd:
    """An RDD of empty partitions."""
    return sc.parallelize([], partitions)._jrdd


def python_stage(sc: SparkContext, source: ByteRdd, task: ByteTask, runtime: PythonRuntime) -> ByteRdd:
    """The RDD of `task` over each partition of `source`. Rows are bytes on both sides: no row is pickled."""
    raw = NoOpSerializer()
    command = CloudPickleSerializer().dumps((task, None, raw, raw))  # type: ignore[no-untyped-call]
    classes = _classes(_jvm(sc))
    function = classes.SimplePythonFunction(
        bytearray(command),
        runtime.environment,
        runtime.includes,
        sc.pythonExec,
        sc.pythonVer,
        runtime.no_broadcasts,
        sc._javaAccumulator,
    )
    return classes.PythonRDD(source.rdd(), function, False, False).asJavaRDD()


def shuffle(sc: SparkContext, pairs: ByteRdd, partitions: int) -> tuple[ByteRdd, int]:
    """Send each row to the partition that the packed long before it names; returns the RDD and the shuffle's id."""
    classes = _classes(_jvm(sc))
    # The stage that writes the shuffle is named after the call site at which this RDD is made.
    keyed = classes.PairwiseRDD(pairs.rdd()).asJavaPairRDD()
    shuffled = keyed.partitionBy(classes.PythonPartitioner(partitions, 0))
    return classes.value_of_pair(shuffled), shuffle_id(shuffled)


def shuffle_id(shuffled: Any) -> int:
    """The id of the shuffle that an RDD reads directly."""
    return int(shuffled.rdd().dependencies().head().shuffleId())


def remove_shuffle(sc: SparkContext, identifier: int, blocking: bool = False) -> None:
    """Remove a shuffle's files on every executor; by itself Spark waits for the driver's garbage collection."""
    if is_stopped(sc):
        return
    cleaner = _jvm_context(sc).cleaner()
    if cleaner.isDefined():
        cleaner.get().doCleanupShuffle(identifier, blocking)


def union(sc: SparkContext, rdds: Sequence[ByteRdd]) -> ByteRdd:
    """One RDD with the partitions of all these, in this order."""
    if len(rdds) == 1:
        return rdds[0]
    gateway = sc._gateway
    assert gateway is not None
    array = gateway.new_array(_jvm(sc).org.apache.spark.api.java.JavaRDD, len(rdds))
    for index, rdd in enumerate(rdds):
        array[index] = rdd
    return sc._jsc.union(array)


def select_partitions(sc: SparkContext, rdd: ByteRdd, partitions: Collection[int]) -> ByteRdd:
    """Only the chosen partitions, in ascending order; the others are not computed."""
    jvm = _jvm(sc)
    # A Scala set is a function from an element to a boolean, which is what PartitionPruningRDD takes.
    chosen = jvm.org.apache.spark.api.python.PythonUtils.toSeq(sorted(set(partitions))).toSet()
    return jvm.org.apache.spark.rdd.PartitionPruningRDD.create(rdd.rdd(), chosen).toJavaRDD()


def arrow_batches(df: DataFrame) -> ByteRdd:
    """A DataFrame's rows as Arrow record batches in bytes, partition by partition.

    An adaptive query plan runs its stages, and fills its cache, in this call.
    """
    return df._jdf.toArrowBatchRdd().toJavaRDD()


def persist(sc: SparkContext, rdd: ByteRdd) -> Callable[[], None]:
    """Keep the result of `rdd` in its executors' memory until the returned function is called."""
    level = sc._getJavaStorageLevel(StorageLevel.MEMORY_ONLY)
    rdd.persist(level)
    return lambda: _unpersist(rdd)


def _unpersist(rdd: ByteRdd) -> None:
    rdd.unpersist(False)


def collect_bytes(sc: SparkContext, rdd: ByteRdd) -> list[bytes]:
    """Run the job and collect its elements at the driver."""
    served = _classes(_jvm(sc)).collect_and_serve(rdd.rdd())
    with contextlib.ExitStack() as opened:
        stream, connection = _create_local_socket(served)
        opened.callback(connection.close)
        opened.callback(stream.close)
        elements: list[bytes] = list(NoOpSerializer().load_stream(stream))  # type: ignore[no-untyped-call]
    served[2].getResult()  # raises if the JVM died: its stream then ends early, as if it were complete
    return elements


@contextlib.contextmanager
def own_local_properties(sc: SparkContext) -> Iterator[None]:
    """Give this thread a copy of its local properties inside the block, and put back the same object afterwards."""
    context = _jvm_context(sc)
    before = context.getLocalProperties()
    context.setLocalProperties(before.clone())
    try:
        yield
    finally:
        # If the JVM has ended there is nothing to restore, and its error is being raised already.
        with contextlib.suppress(Py4JError, ConnectionError):
            context.setLocalProperties(before)


def cancel_jobs(sc: SparkContext, group: str) -> None:
    """Cancel the jobs of a group; a JVM that has ended runs none."""
    with contextlib.suppress(Py4JError, ConnectionError):
        sc.cancelJobGroup(group)


def set_call_site(sc: SparkContext, name: str) -> None:
    """Set the name that Spark's web page shows for the stages that this thread makes from now on."""
    sc._jsc.setCallSite(name)


def registered_executors(sc: SparkContext) -> int:
    """The number of registered executors, without the driver's own block manager."""
    return int(_jvm_context(sc).getExecutorMemoryStatus().size()) - 1


def active_tasks(sc: SparkContext, group: str) -> int:
    """The number of tasks of a group's jobs that run at this moment."""
    tracker = sc.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def applications_of_master(sc: SparkContext, address: str) -> list[str] | None:
    """The ids of the applications that a standalone master at `host:port` has; None: it is not the active master."""
    jvm = _jvm(sc)
    host, _, port = address.rpartition(":")
    rpc = _jvm_context(sc).schedulerBackend().rpcEnv()
    master = rpc.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, int(port)), "Master")
    messages = "org.apache.spark.deploy.DeployMessages"
    question = jvm.java.lang.Class.forName(f"{messages}$RequestMasterState$").getField("MODULE$").get(None)
    answered = jvm.java.lang.Class.forName(f"{messages}$MasterStateResponse")
    state = master.askSync(question, jvm.scala.reflect.ClassTag.apply(answered))
    if str(state.status()) != "ALIVE":
        return None
    return [str(application.id()) for application in state.activeApps()]


def is_stopped(sc: SparkContext) -> bool:
    """Whether the session was stopped."""
    return sc._jsc is None


def ask_jvm(sc: SparkContext) -> None:
    """Call the session's JVM; when it does not answer, raise an error that `java_message` explains."""
    sc._jsc.sc().isStopped()


def jvm_ending(sc: SparkContext) -> str | None:
    """How the JVM of a session has ended, as text; None when it answers, or when the session was stopped normally."""
    if is_stopped(sc):
        return None
    try:
        ask_jvm(sc)
    except (Py4JError, ConnectionError) as error:
        if _jvm_process() is None:
            return "it does not answer any more"
        if (ending := ending_behind(error)) is None:
            raise ClusterError(f"Spark's driver process (a JVM) does not answer: {refusal(error)}.") from None
        return ending
    return None


def ending_of(sc: SparkContext) -> str | None:
    """How a session that was forgotten had ended."""
    return _endings.get(sc)


def note_ending(sc: SparkContext, ending: str) -> None:
    """Note how a session has ended whose JVM runs, for all jobs that use it."""
    _endings[sc] = ending


def gateway_ending() -> str | None:
    """How the JVM of this process has ended, as text; None while it runs, and when there is none."""
    process = _jvm_process()
    status = process.poll() if process is not None else None
    return None if status is None else how_it_ended(status)


def _jvm_process() -> subprocess.Popen[bytes] | None:
    """The process of the JVM; None when this process did not start it, as under `spark-submit`."""
    return getattr(SparkContext._gateway, "proc", None)


def is_stopping(sc: SparkContext) -> bool:
    """Whether the session is stopped or being stopped, by a call to the JVM."""
    context = sc._jsc
    try:
        return context is None or bool(context.sc().isStopped())
    except (Py4JError, ConnectionError):
        return False  # the JVM has ended: `jvm_ending` reports that


def java_message(error: Exception) -> str | None:
    """The JVM's message about a failed call, without its stack; None when the error is not the JVM's."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getMessage() or error.java_exception.toString())
    if isinstance(error, CapturedException):
        return str(error)
    if isinstance(error, Py4JError | ConnectionError):
        return refusal(error) if out_of_descriptors(error) else f"{JVM_GONE} ({error})"
    return None


def java_stack(error: Exception) -> str | None:
    """The whole Java stack of a failed call."""
    if isinstance(error, Py4JJavaError):
        return str(error)
    return getattr(error, "stackTrace", None) or getattr(error, "_stackTrace", None)


def set_logger_levels(sc: SparkContext, names: Iterable[str], level: str) -> None:
    """Set the level of these Java loggers, and of loggers below them without a level of their own."""
    log4j = _jvm(sc).org.apache.logging.log4j
    for name in names:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.toLevel(level))


def has_gateway() -> bool:
    """Whether this process has a JVM, with or without a session."""
    return SparkContext._gateway is not None


def launch_gateway(error_output: int, inherited: Sequence[int] = ()) -> None:
    """Start the JVM, with `error_output` as its standard error; sessions made afterwards run in it.

    Raises ClusterError when the JVM ended before it was up.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **options))
        return started[-1]

    pyspark: Any = java_gateway
    before, pyspark.Popen = pyspark.Popen, start  # pyspark does not report how a process that failed to start ended
    try:
        gateway = pyspark.launch_gateway(None, {"stderr": error_output, "pass_fds": tuple(inherited)})
    except Exception as error:
        for process in started:
            process.stdin.close()  # type: ignore[union-attr]
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise ClusterError(how_it_ended(process.wait(_ENDING_S))) from error
            process.kill()
            process.wait()
        raise
    except BaseException:  # Ctrl-C: this JVM cannot tell its port, and would wait for a connection for ever
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        pyspark.Popen = before
    SparkContext._ensure_initialized(gateway=gateway)


def ending_behind(error: Exception) -> str | None:
    """How the JVM ended, for the error of a call that it did not answer; None when the error has another cause."""
    process = _jvm_process()
    if process is None or isinstance(error, Py4JJavaError) or not isinstance(error, Py4JError | ConnectionError):
        return None
    try:
        return how_it_ended(process.wait(_ENDING_S))
    except subprocess.TimeoutExpired:
        return None


def end_gateway(within_s: float | None = None) -> None:
    """End the JVM of this process, which has no active session; the next session starts another one.

    It is killed if it has not ended within the time: it may tell a cluster of its end that does not answer. Without a
    limit it may take its time, to write an archive of its classes.
    """
    assert SparkContext._active_spark_context is None, "an active session needs its JVM"
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    if (process := getattr(gateway, "proc", None)) is not None:
        process.stdin.close()
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


def forget_gateway() -> None:
    """Forget a JVM that has ended, with its session; the next session starts another one."""
    ending = gateway_ending()
    assert ending is not None, "only a JVM that has ended is forgotten"
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None:
        _endings[context] = f"its driver's JVM has ended, {ending}"
        context._jsc = None  # stop() must not call the JVM
        context.stop()
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    assert gateway is not None
    with contextlib.suppress(Exception):
        gateway.shutdown()  # closes its connections and ends the threads that wait on them
    with contextlib.suppress(OSError):
        gateway.proc.stdin.close()
    SparkContext._gateway = None
    SparkContext._jvm = None


class _Classes:
    """Cache of Java classes and static methods: py4j asks the JVM each time one is named."""

    def __init__(self, jvm: Any) -> None:
        self.SimplePythonFunction = jvm.SimplePythonFunction
        self.PythonRDD = jvm.PythonRDD
        self.PairwiseRDD = jvm.PairwiseRDD
        self.PythonPartitioner = jvm.PythonPartitioner
        self.value_of_pair = self.PythonRDD.valueOfPair
        self.collect_and_serve = self.PythonRDD.collectAndServe


@functools.lru_cache(maxsize=1)
def _classes(jvm: Any) -> _Classes:
    return _Classes(jvm)


def _jvm(sc: SparkContext) -> Any:
    jvm = sc._jvm
    assert jvm is not None, "the Spark session has no JVM"
    return jvm


def _jvm_context(sc: SparkContext) -> Any:
    return sc._jsc.sc()


# -- plans of queries -------------------------------------------------------------------------------------------------


def parsed_plan(spark: SparkSession, sql: str) -> Any:
    """The plan of a query as its text says it: names are not resolved."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def analysed_plan(df: DataFrame) -> Any:
    """The plan of a query in which all names and types are known."""
    return df._jdf.queryExecution().analyzed()


def plan_expressions(plan: Any) -> Iterator[Any]:
    """Each expression of a plan and of its subqueries, before those that it is made of. Views are left out."""
    if plan.nodeName() == "View":
        return
    for expression in _elements(plan.expressions()):
        yield from _with_parts(expression)
    for part in (*_elements(plan.children()), *_elements(plan.innerChildren())):
        yield from plan_expressions(part)


def expression_parts(expression: Any) -> list[Any]:
    """The parts of an expression."""
    return _elements(expression.children())


def range_in_text(expression: Any) -> tuple[int, int, int] | None:
    """The beginning and end of an expression in the text of its query, and a number of that text; None if unknown."""
    origin = expression.origin()
    text = origin.sqlText()
    if not text.isDefined() or not origin.startIndex().isDefined():
        return None
    context = origin.context()
    # The text itself is long, and this is asked for each expression.
    return context.startIndex(), context.stopIndex() + 1, text.hashCode()


def _with_parts(expression: Any) -> Iterator[Any]:
    yield expression
    for part in expression_parts(expression):
        yield from _with_parts(part)


def _elements(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
