"""A standalone Spark cluster from the installed pyspark: one master and some workers on loopback, for a test."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyspark

from rekindle.spark.java import ensure_java

LOOPBACK = "127.0.0.1"
START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 15.0
_PR_SET_PDEATHSIG = 1
EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass
class StandaloneCluster:
    """A running cluster: `master` is the address for sessions; a test can kill processes of `workers`."""

    master: str
    page: str
    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    master_arguments: list[str] = field(default_factory=list)

    @property
    def workers(self) -> list[subprocess.Popen[bytes]]:
        """The workers' processes."""
        return self.processes[1:]

    def executors(self) -> list[psutil.Process]:
        """The processes of all executors."""
        found = [each for worker in self.workers for each in psutil.Process(worker.pid).children(recursive=True)]
        return [each for each in found if EXECUTOR_CLASS in " ".join(each.cmdline())]

    def restart_master(self) -> None:
        """Kill the master and start another one at its address, which knows nothing of the first one's life."""
        self.processes[0].kill()
        self.processes[0].wait()
        self.processes[0] = _started(self, "master.Master", "other-master", self.master_arguments)

    def state(self) -> dict[str, Any]:
        """The master's JSON page about workers and applications."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def alive_workers(self) -> int:
        """The number of registered workers."""
        try:
            return int(self.state()["aliveworkers"])
        except (OSError, json.JSONDecodeError):  # at first the master has its page, but not yet the one in JSON
            return 0


@contextlib.contextmanager
def standalone_cluster(
    workers: int = 2, cores: int = 1, memory: str = "1g", secret: str | None = None, more: str = ""
) -> Iterator[StandaloneCluster]:
    """Run the cluster inside the block, from the registration of every worker; all its processes end with the block.

    With a secret, only workers and applications that know it are accepted. `more` are lines of Spark's settings.
    """
    directory = Path(tempfile.mkdtemp(prefix="rekindle-standalone-"))
    settings = directory / "settings"
    settings.touch(0o600)
    settings.write_text(more)
    if secret is not None:
        settings.write_text(f"spark.authenticate true\nspark.authenticate.secret {secret}\n")
    properties = ["--properties-file", os.fspath(settings)]
    port, page_port = free_ports(2)
    cluster = StandaloneCluster(f"spark://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{page_port}", directory)
    try:
        address = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(page_port), *properties]
        cluster.master_arguments = address
        cluster.processes.append(_started(cluster, "master.Master", "master", address))
        for index in range(workers):
            work = directory / f"worker-{index}"
            limits = ["--cores", str(cores), "--memory", memory, "--work-dir", os.fspath(work), *properties]
            place = ["--host", LOOPBACK, "--webui-port", "0", cluster.master]
            cluster.processes.append(_started(cluster, "worker.Worker", f"worker-{index}", [*limits, *place]))
        _wait_for_workers(cluster, workers)
        yield cluster
    finally:
        _stop(cluster)
        shutil.rmtree(directory, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that are free at this moment."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _started(cluster: StandaloneCluster, daemon: str, name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    local = cluster.directory / f"{name}-local"
    local.mkdir()
    environment = os.environ | {
        "SPARK_HOME": os.fspath(home),
        "JAVA_HOME": os.fspath(ensure_java().path),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": os.fspath(local),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with open(cluster.directory / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{daemon}", *arguments],
            env=environment,
            cwd=cluster.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_die_with_the_tests,  # noqa: PLW1509 - what it calls is one system call
        )


def _die_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_for_workers(cluster: StandaloneCluster, workers: int) -> None:
    deadline, pause = time.monotonic() + START_DEADLINE_S, threading.Event()
    while cluster.alive_workers() < workers:
        ended = [process for process in cluster.processes if process.poll() is not None]
        assert not ended, f"A Spark daemon did not start:\n{_logs(cluster)}"
        assert time.monotonic() < deadline, f"The workers did not register:\n{_logs(cluster)}"
        pause.wait(0.1)


def _logs(cluster: StandaloneCluster) -> str:
    tails = (path.read_text(errors="replace")[-2000:] for path in sorted(cluster.directory.glob("*.log")))
    return "\n".join(tails)


def _stop(cluster: StandaloneCluster) -> None:
    # Workers first: they end their executors when they are terminated, not when they are killed.
    for process in reversed(cluster.processes):
        process.terminate()
    for process in reversed(cluster.processes):
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


__all__ = ["StandaloneCluster", "free_ports", "standalone_cluster"]
