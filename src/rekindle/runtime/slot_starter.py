"""Starts slot processes: by a fork of a process that has imported everything already, else by a new interpreter.

A slot imports for a third of a second before it does anything, and every restart of a job waits for it. So Spark's
Python daemon, where it is ours, forks a starter before anything else (`fork_starter`). The starter imports what slots
need and then forks one slot per request. Spark's workers, the daemon's other forks, inherit the socket that leads to
it (`start_slot`). The starter has one thread and has never seen pyspark, so what it forks is as clean as a new
interpreter; it ends with the daemon.

Where there is no starter, as in sessions that Rekindle did not make, a slot is a new interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn, Protocol

import msgspec

from rekindle.system import show_as

SLOT_MODULE = "rekindle.runtime.slot"
#: The environment variable with the pipe on which a new slot reports that it is ready.
READY_DESCRIPTOR = "REKINDLE_READY_DESCRIPTOR"
_LARGEST_REQUEST = 180_000  # below the kernel's default for one message, 212,992
_MOST_DESCRIPTORS = 16
_PR_SET_PDEATHSIG = 1
_FORK_DEADLINE_S = 60.0

_to_starter: socket.socket | None = None


class SlotStart(msgspec.Struct, frozen=True):
    """How a slot's process starts: its interpreter, its words on the command line, its folder and its environment."""

    interpreter: str
    arguments: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    memory_limit: tuple[int, int]


class Descriptors(msgspec.Struct, frozen=True):
    """The descriptors that a slot gets: its input, its log, the pipe that says it is ready, and locks to hold."""

    stdin: int
    log: int
    ready: int
    locks: tuple[int, ...]


class StartedProcess(Protocol):
    """The process that was started: the guardian of the slot, once it runs."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns its exit status, and raises `subprocess.TimeoutExpired` when the time is over."""
        ...


def start_slot(start: SlotStart, descriptors: Descriptors) -> StartedProcess:
    """Start the process of a slot in a session of its own; it finds its launch in its standard input."""
    return _ask_starter(start, descriptors) or _start_interpreter(start, descriptors)


def memory_limit() -> tuple[int, int]:
    """This process's limit of memory, which Spark has set (`spark.executor.pyspark.memory`) and its slots share."""
    return resource.getrlimit(resource.RLIMIT_AS)


def _start_interpreter(start: SlotStart, descriptors: Descriptors) -> StartedProcess:
    return subprocess.Popen(
        [start.interpreter, "-m", SLOT_MODULE, *start.arguments],
        stdin=descriptors.stdin,
        stdout=descriptors.log,
        stderr=descriptors.log,
        cwd=start.directory,
        env=start.environment | {READY_DESCRIPTOR: str(descriptors.ready)},
        pass_fds=(descriptors.ready, *descriptors.locks),
        start_new_session=True,
    )


# -- in Spark's workers -----------------------------------------------------------------------------------------------


class _ForkedProcess:
    """A slot's process as the starter tells of it, over a socket of its own."""

    def __init__(self, pid: int, news: socket.socket) -> None:
        self.pid = pid
        self._news = news

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the status that the starter sends when the process has ended."""
        self._news.settimeout(timeout)
        try:
            word = self._news.recv(64)
        except TimeoutError:
            raise subprocess.TimeoutExpired(SLOT_MODULE, timeout or 0) from None
        return int(word) if word else -signal.SIGKILL  # the starter died


def _ask_starter(start: SlotStart, descriptors: Descriptors) -> StartedProcess | None:
    """Let the starter fork the slot; None where there is no starter, it has ended, or is another interpreter."""
    request = msgspec.msgpack.encode(start)
    if _to_starter is None or start.interpreter != sys.executable or len(request) > _LARGEST_REQUEST:
        return None
    news, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    passed = [other_end.fileno(), descriptors.stdin, descriptors.log, descriptors.ready, *descriptors.locks]
    try:
        with other_end:
            socket.send_fds(_to_starter, [request], passed)
        news.settimeout(_FORK_DEADLINE_S)
        word = news.recv(64)
    except OSError:
        word = b""
    if not word:
        news.close()
        return None
    return _ForkedProcess(int(word), news)


# -- in Spark's Python daemon -----------------------------------------------------------------------------------------


def fork_starter() -> None:
    """Fork the starter off this process, which has no thread yet; its other forks can then call `start_slot`."""
    global _to_starter
    daemon = os.getpid()
    ours, starters = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            ours.close()
            _end_with(daemon)
            _serve(starters)
        finally:
            os._exit(1)
    starters.close()
    _to_starter = ours


def _end_with(daemon: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != daemon:
        os._exit(0)


# -- in the starter ---------------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> NoReturn:
    """Fork a slot for every request until the daemon and its workers are gone."""
    os.setsid()  # what is sent to the daemon's group, Ctrl-C or its end, is not meant for slots
    _leave_daemons_descriptors(requests.fileno())
    import rekindle.runtime.slot  # noqa: F401

    gc.collect()
    gc.freeze()  # what slots share with this process stays shared
    children: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in children:
                poll.unregister(descriptor)
                _tell_end(descriptor, *children.pop(descriptor))
            else:
                pidfd, pid, news = _fork_slot(requests)
                children[pidfd] = pid, news
                poll.register(pidfd, select.POLLIN)


def _leave_daemons_descriptors(requests: int) -> None:
    """Close what the daemon has open: Spark waits for the end of its standard output."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # errors stay visible
        os.dup2(null, standard)
    _close_all_but({0, 1, 2, requests})


def _close_all_but(kept: set[int]) -> None:
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _fork_slot(requests: socket.socket) -> tuple[int, int, socket.socket]:
    data, received, _, _ = socket.recv_fds(requests, _LARGEST_REQUEST, _MOST_DESCRIPTORS)
    if not data:
        os._exit(0)
    start = msgspec.msgpack.decode(data, type=SlotStart)
    news, stdin, log, ready, *locks = received
    child = os.fork()
    if child == 0:
        with _nothing_but_exit():
            _become_slot(start, Descriptors(stdin, log, ready, tuple(locks)))
    for descriptor in received[1:]:
        os.close(descriptor)
    requester = socket.socket(fileno=news)
    with contextlib.suppress(OSError):
        requester.send(str(child).encode())
    return os.pidfd_open(child), child, requester


def _tell_end(pidfd: int, pid: int, requester: socket.socket) -> None:
    """Reap an ended child and tell the worker that asked for it, if the worker still listens."""
    os.close(pidfd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with requester, contextlib.suppress(OSError):
        requester.send(str(status).encode(), socket.MSG_DONTWAIT)


@contextlib.contextmanager
def _nothing_but_exit() -> Iterator[None]:
    """End this process after the block, whatever happens in it, with the traceback of an error in its log."""
    try:
        yield
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(1)


def _become_slot(start: SlotStart, descriptors: Descriptors) -> None:
    """Make this fork of the starter what a new interpreter would be, then run the slot."""
    os.setsid()
    for standard, descriptor in enumerate((descriptors.stdin, descriptors.log, descriptors.log)):
        os.dup2(descriptor, standard)
    _close_all_but({0, 1, 2, descriptors.ready, *descriptors.locks})
    resource.setrlimit(resource.RLIMIT_AS, start.memory_limit)
    os.chdir(start.directory)
    sys.path[:] = _search_path(start, sys.path, os.environ.get("PYTHONPATH", ""))
    os.environ.clear()
    os.environ.update(start.environment | {READY_DESCRIPTOR: str(descriptors.ready)})
    sys.argv = [SLOT_MODULE, *start.arguments]
    show_as([sys.executable, "-m", SLOT_MODULE, *start.arguments], start.environment)
    from rekindle.runtime.slot import main

    main()


def _search_path(start: SlotStart, starters: Sequence[str], python_path: str) -> list[str]:
    """The path that a new interpreter would search: its folder, its PYTHONPATH, then what the interpreter adds."""
    own = [entry for entry in start.environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    replaced = {*python_path.split(os.pathsep), *own}
    return [start.directory, *own, *(entry for entry in starters[1:] if entry not in replaced)]
