"""The guardian: a small process above each slot that ends the slot and its children when executor or driver are gone.

It is a process of its own because a thread of the slot would need the interpreter's lock, which user code may hold for
long. It waits for three things at once: the executor's JVM (pidfd), the slot (pidfd) and a connection to the driver
(the lifeline). When one of them ends, the guardian tells the driver, kills every process below it, removes the slot's
directory and exits. As the slot's parent it knows how the slot ended. It inherits orphaned children of the slot
(`PR_SET_CHILD_SUBREAPER`), in whatever session they are.

It has a session of its own, so that killing the slot's session does not kill it before it has cleaned up.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from rekindle.errors import ClusterError
from rekindle.protocol import Lifeline, SlotEnded, SlotLaunch, encode
from rekindle.runtime.copies_keeper import keep_until_job_ends
from rekindle.runtime.scratch_folders import remove_scratch_folders
from rekindle.runtime.slot_starter import READY_DESCRIPTOR
from rekindle.system import how_it_ended, readable
from rekindle.wire import Connection, connect_tcp

_ARMED = b"armed"
_START_DEADLINE_S = 20.0
_KILL_ROUNDS = 50
_KILL_PAUSE_S = 0.02
_TELL_DRIVER_S = 5.0
_REAP_EVERY_MS = 5_000
_PR_SET_CHILD_SUBREAPER = 36
#: The guardian exits with this plus the number of the signal that killed the slot, as shells do.
SIGNALLED = 128


class Guardian:
    """The guardian, as its slot sees it."""

    def __init__(self, pid: int, pidfd: int, directory: str) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.directory = directory

    def watch(self, callback: Callable[[], None] | None = None) -> threading.Thread:
        """Call back on a thread of its own when the guardian has died; by default the slot then ends at once.

        A slot without its guardian could outlive its driver.
        """
        ended = callback or self.end_slot
        thread = threading.Thread(target=self._wait_for_end, args=(ended,), name="rekindle-guardian", daemon=True)
        thread.start()
        return thread

    def wait(self) -> None:
        """Block until the guardian has died."""
        wait_for_any(self.pidfd)

    def _wait_for_end(self, ended: Callable[[], None]) -> None:
        self.wait()
        ended()

    def end_slot(self) -> None:
        """End this process and its children, as the guardian would have done."""
        _kill(_family(os.getpid()))
        remove_scratch_folders(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGKILL)


def start_guardian(launch: SlotLaunch, directory: str) -> Guardian:
    """Fork: this process becomes the guardian and never returns; its child, the slot, returns once it is guarded.

    Call it before any thread is started, in a process that leads its session.
    """
    refuse_other_systems()
    assert threading.active_count() == 1, "a guardian is forked before any thread is started"
    assert os.getsid(0) == os.getpid(), "a guardian leads its own session"
    guardian = os.getpid()
    report_read, report_write = os.pipe()
    slot = os.fork()
    if slot != 0:
        with contextlib.suppress(BaseException):
            os.close(report_read)
            _guard(launch, slot, directory, report_write)
        os._exit(1)
    os.setsid()  # the guardian finds the slot's children by their session, too
    os.close(report_write)
    with open(report_read, "rb") as report:
        report_bytes = report.read() if readable([report], _START_DEADLINE_S) else b""
    if report_bytes != _ARMED:
        raise ClusterError(report_bytes.decode() or f"The guardian of slot {launch.slot} did not start.")
    pidfd = os.pidfd_open(guardian)
    if os.getppid() != guardian:
        raise ClusterError(f"The guardian of slot {launch.slot} ended while its slot started.")
    _report_ready()
    return Guardian(guardian, pidfd, directory)


def _report_ready() -> None:
    """Tell the waiting Spark task that started this slot the slot's process id: the slot is guarded now."""
    if (ready := os.environ.pop(READY_DESCRIPTOR, None)) is not None:
        os.write(int(ready), str(os.getpid()).encode())
        os.close(int(ready))


def refuse_other_systems() -> None:
    """Refuse systems other than Linux: elsewhere the guardian could not end slots reliably."""
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        raise ClusterError(f"Slots run on Linux only (they need pidfd and /proc), and this is {sys.platform}.")


def ancestors(pid: int) -> Iterator[int]:
    """Yield the ancestors of a process, nearest first."""
    while (above := process_of(pid)) is not None and above.parent > 0:
        pid = above.parent
        yield pid


class ProcessEntry(NamedTuple):
    """An entry of the process table."""

    pid: int
    command: str
    state: str
    parent: int
    session: int


def process_of(pid: int) -> ProcessEntry | None:
    """Return the entry of a process in `/proc`; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            line = file.read()
    except OSError:
        return None
    # The command stands in parentheses and may itself contain spaces and parentheses.
    command_end = line.rindex(")")
    fields = line[command_end + 2 :].split()
    return ProcessEntry(pid, line[line.index("(") + 1 : command_end], fields[0], int(fields[1]), int(fields[3]))


def process_table() -> list[ProcessEntry]:
    """Return the entries of all visible processes."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [entry for pid in pids if (entry := process_of(pid)) is not None]


def wait_for_any(*descriptors: int, timeout_ms: int | None = None) -> set[int]:
    """Block until a descriptor is readable or has hung up, and return all such; none if the time is over."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN | select.POLLHUP | select.POLLERR)
    return {descriptor for descriptor, _ in poll.poll(timeout_ms)}


def _guard(launch: SlotLaunch, slot_pid: int, directory: str, report: int) -> NoReturn:
    _become_guardian(report)
    slot = os.pidfd_open(slot_pid)
    try:
        executor = _open_executor(launch.executor_pid) if launch.executor_pid is not None else None
        lifeline = _connect_lifeline(launch)
        job = _connect_job(launch)
    except Exception as error:
        os.write(report, str(error).encode())
        os.close(report)
        wait_for_any(slot)  # the slot reports the error and ends
        _exit_as(_end_family(slot, slot_pid))
    os.write(report, _ARMED)
    os.close(report)
    gc.freeze()
    ended = _wait_for_first_end(slot, slot_pid, executor, lifeline)
    if executor in ended:
        _tell_driver(lifeline, f"its Spark executor (process {launch.executor_pid}) has ended")
    elif slot in ended:
        _tell_driver(lifeline, how_it_ended(_status_of(slot_pid)))
    status = _end_family(slot, slot_pid)
    remove_scratch_folders(directory)
    shutil.rmtree(directory, ignore_errors=True)
    if job is not None and launch.copies is not None:
        lifeline.close()
        keep_until_job_ends(launch.copies.folder, job)
    _exit_as(status)


def _become_guardian(report: int) -> None:
    # Orphaned children of the slot become children of this process, in whatever session they are.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.chdir("/")
    # systemd sends SIGTERM to every process of a service: the slot may end by it, its guardian cleans up after it.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # Descriptors of the slot (its ready pipe, its log) must not stay open in the guardian.
    os.closerange(3, report)
    os.closerange(report + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write("rekindle-guard")


def _open_executor(executor_pid: int) -> int:
    executor = os.pidfd_open(executor_pid)
    # The ancestry proves that the number still means the same process only after the descriptor is open.
    if executor_pid not in ancestors(os.getpid()):
        raise ClusterError(f"The Spark executor {executor_pid} ended while its slot started.")
    return executor


def _connect_lifeline(launch: SlotLaunch) -> Connection:
    lifeline = _connect(launch, launch.driver_port, launch.secret)
    lifeline.send(encode(Lifeline(launch.job_id, launch.attempt, launch.slot)))
    return lifeline


def _connect_job(launch: SlotLaunch) -> Connection | None:
    """The connection that ends with the job; None without local copies of state."""
    return _connect(launch, launch.copies.port, launch.copies.secret) if launch.copies is not None else None


def _connect(launch: SlotLaunch, port: int, secret: bytes) -> Connection:
    try:
        connection = connect_tcp(launch.driver_host, port, secret, launch.tls)
    except OSError as error:
        where = f"{launch.driver_host}:{port}"
        raise ClusterError(f"Slot {launch.slot} cannot reach the driver at {where} ({error}).") from None
    _detect_broken_network(connection, launch.heartbeat.timeout_ms)
    return connection


def _detect_broken_network(connection: Connection, timeout_ms: int) -> None:
    """Let the kernel probe the idle connection, so that a broken network is noticed within the heartbeat timeout."""
    probe_s = max(1, timeout_ms // 4000)
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, probe_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, probe_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1000, timeout_ms * 3 // 4))


def _wait_for_first_end(slot: int, slot_pid: int, executor: int | None, lifeline: Connection) -> set[int]:
    """Wait until slot, executor or lifeline has ended and return those that have; reap orphans meanwhile."""
    watched = [slot, lifeline.fileno(), *([executor] if executor is not None else [])]
    while not (ended := wait_for_any(*watched, timeout_ms=_REAP_EVERY_MS)) or ended == {lifeline.fileno()}:
        _reap_orphans(slot_pid)
        try:
            # The driver sends nothing on this connection: a readable connection has ended.
            if ended:
                lifeline.receive()
        except OSError:
            break
    return ended


def _reap_orphans(slot_pid: int) -> None:
    """Reap ended orphans of the slot, which would otherwise stay in the process table."""
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and child.si_pid != slot_pid:
            os.waitpid(child.si_pid, 0)


def _tell_driver(lifeline: Connection, how: str) -> None:
    """Tell the driver how the slot ended, if the driver is still there."""
    with contextlib.suppress(OSError):
        lifeline.set_timeout(_TELL_DRIVER_S)
        lifeline.send(encode(SlotEnded(how)))


def _status_of(slot_pid: int) -> int:
    """Return the exit status of the ended slot; its process entry stays, so that this can be called again."""
    child = os.waitid(os.P_PID, slot_pid, os.WEXITED | os.WNOWAIT)
    assert child is not None
    return child.si_status if child.si_code == os.CLD_EXITED else -child.si_status


def _exit_as(status: int) -> NoReturn:
    os._exit(status if status >= 0 else SIGNALLED - status)


def _end_family(slot: int, slot_pid: int) -> int:
    """Kill the slot and every process below this one until none is left; return how the slot ended."""
    victims = _family(slot_pid)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(slot, signal.SIGKILL)
    for _ in range(_KILL_ROUNDS):
        _kill(victims)
        victims = _family(slot_pid)
        if readable([slot], _KILL_PAUSE_S) and not victims:
            break
    return _status_of(slot_pid)


def _kill(victims: set[int]) -> None:
    for pid in victims:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _family(slot_pid: int) -> set[int]:
    """Return the processes of the slot's session and all descendants of slot and guardian, without these two."""
    living = [entry for entry in process_table() if entry.state != "Z"]
    these = {slot_pid, os.getpid()}
    family = {entry.pid for entry in living if entry.session == slot_pid} | these
    while below := {entry.pid for entry in living if entry.parent in family} - family:
        family |= below
    return family - these
