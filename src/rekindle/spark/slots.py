"""Places slots: a Spark job with one short task per slot, which starts the slot's process on its executor's host.

The first half of this module runs in the driver, the second (`SpawnTask` and below) in Spark's Python workers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from pyspark import SparkContext, SparkFiles

from rekindle.clock import WaitingClock
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.protocol import SlotLaunch, decode_launch, encode_launch
from rekindle.runtime.directories import make_directory, share_directory
from rekindle.runtime.guardian import SIGNALLED, ancestors, process_of, refuse_other_systems
from rekindle.runtime.slot_starter import Descriptors, SlotStart, StartedProcess, memory_limit, start_slot
from rekindle.spark import internals
from rekindle.spark.shuffle import package_path
from rekindle.spark.worker_daemon import superfluous_zips
from rekindle.system import how_it_ended, readable

_SETTLED_S = 1.0
_ASK_AGAIN_S = 0.05
_READY_DEADLINE_S = 60.0
_ENDING_DEADLINE_S = 10.0
_DIRECTORY_KIND = "rekindle-slot-"
#: A job's folder for local copies of state; slots of all its attempts use it.
_COPIES_KIND = "rekindle-copies-"
_LOG_FILE = "slot.log"
#: A unix socket's path has at most 107 bytes, the slot's own file names included.
_LONGEST_PARENT = 70
#: Variables of Spark's worker that a slot must not see, because it runs user code.
_WORKER_SECRETS = (
    "PYTHON_WORKER_FACTORY_SECRET",
    "PYTHON_WORKER_FACTORY_SOCK_PATH",
    "PYTHON_WORKER_FACTORY_SOCK_DIR",
    "_SPARK_AUTH_SECRET",
)


class SpawnedSlot(msgspec.Struct, frozen=True):
    """The process of a started slot."""

    slot: int
    pid: int
    host: str


class _Outcome(msgspec.Struct, frozen=True):
    """The result of a spawning task. An error is data, because Spark would run a task that raises again."""

    spawned: SpawnedSlot | None = None
    error: str | None = None


class Placement(msgspec.Struct, frozen=True):
    """The slots of an attempt. Until `release` is called, dynamic allocation keeps their executors."""

    slots: list[SpawnedSlot]
    release: Callable[[], None]


def spawn_slots(
    sc: SparkContext, launches: Sequence[SlotLaunch], clock: WaitingClock, stop: threading.Event | None = None
) -> Placement:
    """Start one slot process per launch, wherever Spark places its task; returns when all are up.

    Spark waits for executors without end: `stop` ends the wait for the first ones, and who sets it also cancels the
    jobs of the group that is named after the job's id.
    """
    first, stop = launches[0], stop or threading.Event()
    wait_for_executors(sc, len(launches), clock, stop)
    task = SpawnTask(tuple(map(encode_launch, launches)), package_path())
    with internals.own_local_properties(sc):
        if stop.is_set():
            raise JobCancelledError("The job was cancelled before its slots started.")
        sc.setJobGroup(first.job_id, f"{first.job_name} · starting {len(launches)} slots", interruptOnCancel=True)
        internals.set_call_site(sc, f"start slots of {first.job_name}")
        base = internals.empty_partitions(sc, len(launches))
        spawning = internals.python_stage(sc, base, task, internals.python_runtime(sc, package_path()))
        release: Callable[[], None] = _no_release
        if sc.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
            # Executors with a cached block are not idle; the RDD is never computed again.
            release = internals.persist(sc, spawning)
        outcomes = [msgspec.msgpack.decode(row, type=_Outcome) for row in internals.collect_bytes(sc, spawning)]
    if errors := [outcome.error for outcome in outcomes if outcome.error is not None]:
        raise ClusterError(errors[0])
    slots = [outcome.spawned for outcome in outcomes if outcome.spawned is not None]
    return Placement(sorted(slots, key=lambda each: each.slot), release)


def wait_for_executors(sc: SparkContext, slots: int, clock: WaitingClock, stop: threading.Event) -> None:
    """On a cluster, wait until enough executors have registered, or some have and no new one for a moment."""
    if is_local_master(master_of(sc)):
        return
    cores = int(sc.getConf().get("spark.executor.cores", "1") or 1)
    known, since = 0, clock.monotonic()
    while True:
        registered = internals.registered_executors(sc)
        if registered != known:
            known, since = registered, clock.monotonic()
        if known and (known * cores >= slots or clock.monotonic() - since > _SETTLED_S):
            return
        if clock.wait(stop, _ASK_AGAIN_S):
            raise JobCancelledError("The job was cancelled before its slots started.")


def master_of(sc: SparkContext) -> str:
    """The master URL of a session."""
    assert sc.master is not None
    return sc.master


def is_local_master(master: str) -> bool:
    """Whether the driver's JVM is also the executor."""
    return master == "local" or master.startswith("local[")


def _no_release() -> None:
    """The `release` of a placement that holds no executors."""


# -- in Spark's Python workers ----------------------------------------------------------------------------------------


class SpawnTask:
    """The spawning task: partition i starts slot i."""

    def __init__(self, launches: tuple[bytes, ...], package: str | None) -> None:
        self.launches = launches
        self.package = package

    def __call__(self, partition: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        for _ in rows:
            pass
        launch = decode_launch(self.launches[partition])
        try:
            outcome = _Outcome(spawned=spawn(launch, self.package))
        except ClusterError as error:
            outcome = _Outcome(error=str(error))
        except OSError as error:
            outcome = _Outcome(error=f"Slot {launch.slot} could not be started on {socket.gethostname()}: {error}.")
        yield msgspec.msgpack.encode(outcome)


def spawn(launch: SlotLaunch, package: str | None) -> SpawnedSlot:
    """Start a slot on this machine, detached; returns once its guardian watches over it."""
    refuse_other_systems()
    own = make_directory(_DIRECTORY_KIND, str(launch.slot), _parent_directory())
    try:
        launch = msgspec.structs.replace(launch, executor_pid=executor_pid(), directory=own.path)
        with _copies_of(launch) as (launch, locks):
            spawned = _start(launch, (own.lock, *locks), package)
    except BaseException:
        own.remove()
        raise
    own.release_lock()
    return spawned


@contextlib.contextmanager
def _copies_of(launch: SlotLaunch) -> Iterator[tuple[SlotLaunch, tuple[int, ...]]]:
    """The launch with the job's folder for local copies on this host, and the lock that its slot inherits."""
    if launch.copies is None:
        yield launch, ()
        return
    parent = launch.copies.folder or tempfile.gettempdir()
    os.makedirs(parent, exist_ok=True)
    shared = share_directory(_COPIES_KIND, launch.job_id, parent)
    try:
        copies = msgspec.structs.replace(launch.copies, folder=shared.path)
        yield msgspec.structs.replace(launch, copies=copies), (shared.lock,)
    finally:
        shared.release_lock()


def _start(launch: SlotLaunch, locks: tuple[int, ...], package: str | None) -> SpawnedSlot:
    directory = launch.directory
    words = (launch.job_name, str(launch.slot))
    start = SlotStart(_interpreter(launch), words, directory, slot_environment(package), memory_limit())
    stdin_read, stdin_write = os.pipe()
    ready_read, ready_write = os.pipe()
    try:
        with open(os.path.join(directory, _LOG_FILE), "wb") as log:
            process = start_slot(start, Descriptors(stdin_read, log.fileno(), ready_write, locks))
    finally:
        os.close(stdin_read)
        os.close(ready_write)
    with contextlib.suppress(BrokenPipeError), open(stdin_write, "wb") as stdin:
        stdin.write(encode_launch(launch))
    with open(ready_read, "rb") as ready:
        has_answered = bool(readable([ready], _READY_DEADLINE_S))
        pid = ready.read() if has_answered else b""
    if not pid:
        raise ClusterError(_start_error(launch.slot, directory, _end(process, has_answered)))
    # Without a wait the ended guardian would stay in the process table, as a zombie, until this worker ends.
    threading.Thread(target=process.wait, name="rekindle-reap", daemon=True).start()
    return SpawnedSlot(launch.slot, int(pid), socket.gethostname())


def _interpreter(launch: SlotLaunch) -> str:
    """The interpreter of the slot on this host."""
    if launch.python is None:
        return sys.executable
    path: str | None = launch.python
    if os.sep not in launch.python:
        path = shutil.which(launch.python)
    elif not os.path.isabs(launch.python):  # it is in an archive, which Spark has unpacked
        path = os.path.join(SparkFiles.getRootDirectory(), launch.python)
    if path is None or not os.access(path, os.X_OK):
        raise ClusterError(
            f"Slot {launch.slot} could not be started on {socket.gethostname()}: there is no interpreter "
            f"{launch.python} (python.executable)."
        )
    return path


def _end(process: StartedProcess, is_ending: bool) -> int | None:
    """Kill a process that did not become a slot; returns its exit status, None if it had not ended by itself.

    The guardian, if there is one already, exits with its slot's status.
    """
    status: int | None = None
    if is_ending:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(_ENDING_DEADLINE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return SIGNALLED - status if status is not None and status > SIGNALLED else status


def _start_error(slot: int, directory: str, status: int | None) -> str:
    what = "ended while it started" if status is not None else f"was not up after {_READY_DEADLINE_S:.0f} s"
    log = Path(directory, _LOG_FILE).read_text(encoding="utf-8", errors="replace").strip()
    if status is not None and (status < 0 or not log):
        why = f"{how_it_ended(status)}."
    else:
        why = (
            log.splitlines()[-1].strip().removeprefix("rekindle.errors.ClusterError: ") if log else "it wrote nothing."
        )
    return f"Slot {slot} on {socket.gethostname()} {what}: {why}"


def slot_environment(package: str | None) -> dict[str, str]:
    """This worker's environment without Spark's secrets, with the path on which rekindle imports as in the driver."""
    environment = {name: value for name, value in os.environ.items() if name not in _WORKER_SECRETS}
    known = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # With Spark's zip files on the path, each import would search them first.
    superfluous = superfluous_zips([*known, *sys.path])
    environment["PYTHONPATH"] = os.pathsep.join(
        entry for entry in (package, *known) if entry is not None and entry not in superfluous
    )
    return environment


def executor_pid() -> int:
    """The process id of the JVM that this Python worker belongs to."""
    for pid in ancestors(os.getpid()):
        entry = process_of(pid)
        if entry is None or entry.command != "java":
            continue
        descriptor = os.pidfd_open(pid)
        os.close(descriptor)
        # The JVM is still an ancestor after the pidfd was opened: its process id was not reused.
        if pid in ancestors(os.getpid()):
            return pid
    raise ClusterError(f"No Java process stands above the Python worker {os.getpid()}: is this a Spark executor?")


def _parent_directory() -> str:
    parent = tempfile.gettempdir()
    return parent if len(parent) <= _LONGEST_PARENT else "/tmp"
