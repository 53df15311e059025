"""The Spark session of a job: the active one, unchanged, or one of our own with settings that suit epochs."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.datastream.python_dependencies import PythonDependencies
from rekindle.errors import ClusterError
from rekindle.spark import internals
from rekindle.spark.authentication import authentication
from rekindle.spark.borrowed_session import warn_of_differences
from rekindle.spark.gateway import (
    JvmOutput,
    end_jvm,
    forget_jvm,
    launch_jvm,
    linked_spark_home,
    local_directories,
    patched_environment,
    remove_directory,
    temporary_directory,
)
from rekindle.spark.java import ensure_java
from rekindle.spark.jvm_options import archive_options, start_environment
from rekindle.spark.shuffle import package_path
from rekindle.spark.slots import is_local_master
from rekindle.spark.spark_failure import first_sentence
from rekindle.spark.worker_interpreter import refuse_unusable_interpreter

_LOG = logging.getLogger("rekindle.spark")
_LOOPBACK = "127.0.0.1"
_SPARK_CONF_PREFIX = "rekindle.spark.conf."
#: These loggers report every failed task with a Java stack; the user sees the failure as our own error.
_STACK_LOGGERS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.DAGScheduler",
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.api.python.BasePythonRunner",
    "org.apache.spark.util.Utils",
    "org.apache.spark.storage.ShuffleBlockFetcherIterator",
    # A host, an executor or a master that goes: the job says what that means for it.
    "org.apache.spark.network.client",
    "org.apache.spark.rpc.netty",
    "org.apache.spark.deploy.client",
    "org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend",
)
#: While Spark stops, these loggers report ending executors and late messages as errors, some with a stack.
_STOPPING_LOGGERS = ("org.apache.spark",)
#: Spark refuses a longer directory for unix sockets: some systems allow 104 bytes for a path, and the name needs 43.
_LONGEST_SOCKET_DIRECTORY = 60


@dataclass(frozen=True)
class SessionLease:
    """Spark for one job. `owned`: closing the lease stops Spark.

    `renewable`: Rekindle started Spark and can start it again when its JVM has ended.
    """

    context: SparkContext
    owned: bool
    renewable: bool = False

    @property
    def spark(self) -> SparkSession:
        """The session, made at the first use: epochs do not need it, and it takes as long to start as all the rest."""
        return SparkSession.getActiveSession() or SparkSession(self.context)

    def close(self) -> None:
        """Stop Spark if the lease owns it; a borrowed session stays as it is."""
        if self.owned:
            stop_context(self.context)


def obtain_session(configuration: Configuration) -> SessionLease:
    """The active session, which is never changed, or else a new one on the configured master."""
    refuse_spark_connect()
    context = active_context()
    if context is None:
        return SessionLease(start_context(configuration), owned=True)
    refuse_unusable_interpreter(context)
    warn_of_differences(context, configuration)
    return SessionLease(context, owned=False)


def active_context() -> SparkContext | None:
    """The Spark context of this process, of Rekindle's or the user's making; None when there is none."""
    context = SparkContext._active_spark_context
    if context is None or internals.is_stopped(context):
        return None
    try:
        internals.ask_jvm(context)
    except Exception as error:
        if (message := internals.java_message(error)) is None or not message.startswith(internals.JVM_GONE):
            raise
        raise ClusterError("Spark's driver process (a JVM) has ended: start the program again.") from None
    if internals.is_stopping(context):
        raise ClusterError(
            "The active Spark session was stopped by Spark itself, because its cluster removed the application or does "
            "not answer any more: stop the session and make another one, or start the program again."
        )
    return context


def refuse_spark_connect() -> None:
    """Refuse Spark Connect: it has no RDDs, and epochs are RDDs."""
    remote = os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_LOCAL_REMOTE")
    if remote or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        raise ClusterError(
            f"Rekindle cannot run over Spark Connect ({remote or 'this session'}), which has no RDDs:"
            " unset SPARK_REMOTE and use a classic session, for example with the master spark://host:port."
        )


def create_session(configuration: Configuration) -> SparkSession:
    """Make a session of our own, for callers that need more of Spark than epochs do; `stop_session` removes it."""
    return SparkSession(start_context(configuration))


def start_context(configuration: Configuration) -> SparkContext:
    """Start Spark on the configured master; `stop_context` stops it and leaves nothing behind."""
    refuse_spark_connect()
    if active_context() is not None:
        raise ClusterError("This process has an active Spark session: stop it before another one is made.")
    master = configured_master(configuration)
    output = _launch(configuration, master)
    _LOG.info("Spark's JVM runs.")
    settings = own_settings(master, configuration)
    with patched_environment(_python_environment(configuration)), _keep_interrupt_handler():
        try:
            context = SparkContext(conf=_conf(settings))
        except Exception as error:
            if (sockets := settings.get("spark.python.unix.domain.socket.dir")) is not None:
                remove_directory(sockets)
            if (ending := internals.ending_behind(error)) is not None:
                raise ClusterError(f"Spark's JVM ended while Spark started on {master!r}: {ending}.") from None
            raise ClusterError(f"Spark could not start on {master!r}: {_cause(error)}") from None
    context.setLogLevel(settings["spark.log.level"])
    if not configuration.get(config.JAVA_STACK):
        internals.set_logger_levels(context, _STACK_LOGGERS, "OFF")
    internals.set_logger_levels(context, _STOPPING_LOGGERS, settings["spark.log.level"])  # a stop sets it to OFF
    if output is not None:
        output.open()
    _LOG.info("Spark %s runs on %s.", context.version, master)
    return context


def stop_session(session: SparkSession) -> None:
    """Stop a session of ours and remove its directories."""
    stop_context(session.sparkContext)


def stop_context(context: SparkContext) -> None:
    """Stop Spark of our own, with the session that may have been made of it, and remove its directories."""
    sockets = context.getConf().get("spark.python.unix.domain.socket.dir")
    with suppress(Exception):  # a JVM that has ended logs nothing
        internals.set_logger_levels(context, _STOPPING_LOGGERS, "OFF")
    session = SparkSession._instantiatedSession
    if session is not None and session.sparkContext is context:
        session.stop()
    else:
        context.stop()
    if sockets:
        remove_directory(sockets)


def configured_master(configuration: Configuration) -> str:
    """The master to start on: the configuration's, else the one given to `spark-submit`, else this machine."""
    if (master := configuration.get(config.MASTER)) is not None:
        return master
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        return SparkConf().get("spark.master") or "local[*]"
    return "local[*]"


def is_on_this_machine(master: str) -> bool:
    """Whether driver and executors can reach each other over loopback."""
    return is_local_master(master) or bool(re.match(r"local-cluster\[|spark://(localhost|127\.0\.0\.1):", master))


def own_settings(master: str, configuration: Configuration) -> dict[str, str]:
    """All settings of a session of ours; the user's `rekindle.spark.conf.*` win."""
    settings = {
        "spark.master": master,
        "spark.app.name": "Rekindle",
        # A restart from the last checkpoint repairs a failed epoch, not Spark: tasks fail at once.
        "spark.task.maxFailures": "1",
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.speculation": "false",
        "spark.dynamicAllocation.enabled": "false",
        # Halves the latency of an epoch.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.reuse": "true",
        # A pump may run on any executor: it need not wait for one near its data.
        "spark.locality.wait": "0s",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.port.maxRetries": "200",
        # Epochs are several Spark jobs a second: the history on Spark's web page must not fill the driver's memory.
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "400",
        "spark.ui.retainedTasks": "4000",
        "spark.ui.retainedDeadExecutors": "20",
        "spark.sql.ui.retainedExecutions": "50",
    }
    if python_path := _join_paths(package_path(), os.environ.get("PYTHONPATH")):
        settings["spark.executorEnv.PYTHONPATH"] = python_path
    if is_local_master(master):
        # Shuffled chunks stay in the page cache of this machine.
        settings["spark.shuffle.compress"] = "false"
    if is_on_this_machine(master):
        settings["spark.driver.host"] = _LOOPBACK
        settings["spark.driver.bindAddress"] = _LOOPBACK
        settings["spark.python.daemon.module"] = "rekindle.spark.worker_daemon"
        settings |= _socket_settings()
    settings |= authentication(is_local_master(master) or master.startswith("local-cluster["), configuration)
    return settings | configuration.with_prefix(_SPARK_CONF_PREFIX)


def _socket_settings() -> dict[str, str]:
    """Settings for pyspark's unix sockets; TCP instead when the temporary directory's path is too long for them."""
    directory = temporary_directory("sockets").path
    if len(os.fsencode(directory)) <= _LONGEST_SOCKET_DIRECTORY:
        return {"spark.python.unix.domain.socket.dir": directory}
    remove_directory(directory)
    _LOG.info("Epochs take longer than they need to: %s is too long for unix sockets; set a shorter TMPDIR.", directory)
    return {"spark.python.unix.domain.socket.enabled": "false"}


def _launch(configuration: Configuration, master: str) -> JvmOutput | None:
    needs_links = master.startswith("local-cluster[")
    if internals.gateway_ending() is not None:
        forget_jvm()
    if needs_links and internals.has_gateway():
        # The JVM of an earlier session has the installed package as its Spark home and would write into it.
        end_jvm()
    if internals.has_gateway() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    environ: Mapping[str, str] = os.environ
    if (java_home := configuration.get(config.JAVA_HOME)) is not None:
        environ = {**os.environ, "JAVA_HOME": java_home}
    java = ensure_java(environ)
    environment = {"JAVA_HOME": os.fspath(java.path), **start_environment(environ, archive_options(java, environ))}
    if is_on_this_machine(master):
        environment["SPARK_LOCAL_IP"] = _LOOPBACK
    local = local_directories(configuration.with_prefix(_SPARK_CONF_PREFIX).get("spark.local.dir"), os.environ)
    environment["SPARK_LOCAL_DIRS"] = ",".join(directory.path for directory in local)
    homes = [linked_spark_home()] if needs_links else []
    for home in homes:
        environment["SPARK_HOME"] = home.path
    return launch_jvm(environment | _python_environment(configuration), [*local, *homes])


def _python_environment(configuration: Configuration) -> dict[str, str]:
    """The interpreter of Spark's workers, and so of the slots: the one that runs this program."""
    executable = configuration.get(config.PYTHON_EXECUTABLE)
    if executable is None or PythonDependencies.of(configuration).archive_of_executable() is not None:
        executable = sys.executable  # an interpreter in an archive is that of the slots only
    return {"PYSPARK_PYTHON": executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    return conf


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Keep the handler of Ctrl-C: pyspark's would cancel every Spark job at once, ours cancels the job in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _join_paths(*paths: str | None) -> str:
    return os.pathsep.join(path for path in paths if path)


def _cause(error: Exception) -> str:
    return first_sentence(internals.java_message(error) or str(error))
