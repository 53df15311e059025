"""The operating system: how a process ended, why a call was refused; what can be read; memory, time, a name."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import select
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar


class _File(Protocol):
    def fileno(self) -> int: ...


_FileT = TypeVar("_FileT", bound=int | _File)
#: From glibc's malloc.h.
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_LARGE_BYTES = 128 << 10


def how_it_ended(status: int) -> str:
    """An exit status, as `subprocess` and `os.waitstatus_to_exitcode` give it (negative for a signal), as text.

    >>> how_it_ended(3)
    'it exited with code 3'
    >>> how_it_ended(-11)
    'it was killed by signal 11 (SIGSEGV): a native library may have crashed'
    """
    if status >= 0:
        return f"it exited with code {status}"
    number = -status
    return f"it was killed by signal {number} ({_signal_name(number)}){_likely_cause(number)}"


def readable(files: Iterable[_FileT], timeout_s: float | None = None) -> list[_FileT]:
    """The files that can be read, or have ended, as soon as there is one; none if the time is over.

    `select.select` refuses a descriptor from 1024 on: a process may have more files than that.

    >>> read, write = os.pipe()
    >>> readable([read], timeout_s=0)
    []
    >>> os.close(write)
    >>> readable([read]) == [read]
    True
    >>> os.close(read)
    """
    by_descriptor = {each if isinstance(each, int) else each.fileno(): each for each in files}
    poll = select.poll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)
    return [by_descriptor[descriptor] for descriptor, _ in ready]


def resident_bytes() -> int:
    """The memory of this process that is not swapped out; 0 where the system does not tell.

    >>> resident_bytes() >= 0
    True
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def processor_s() -> float:
    """The processor time that all threads of this process have used, in seconds.

    >>> processor_s() > 0
    True
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def keep_heap_small() -> None:
    """Let the C library give freed memory back to the system, for a slot whose state has a budget.

    Its threads allocate from two heaps, where each would get one of its own, which keeps its largest size; and large
    buffers do not lie between small objects. Of a slot with RocksDB these were 40 and 30 MB for nothing. Large buffers
    may cost more then (pickled records were about a tenth slower, in a noisy measurement): a slot with state in memory
    does without.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, 2)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def return_free_memory() -> None:
    """Give the pages that the C library holds free back to the system; other threads run meanwhile."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


def show_as(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Let `ps` and `/proc` show this command line and environment for this process, which another process forked.

    They replace those of the command that this memory was made for, secrets included. Call it after `os.environ` was
    set anew: no pointer may lead into the old environment.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        begin, end, environment_begin, environment_end = map(int, fields[45:49])
        entries = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
        room = environment_end - environment_begin
        ctypes.memmove(environment_begin, entries[: room - 1].ljust(room, b"\0"), room)
        ctypes.memmove(begin, fitted_command_line(words, end - begin), end - begin)


def fitted_command_line(words: Sequence[str], room: int) -> bytes:
    """A command line of exactly `room` bytes, each word ended with a zero byte.

    The path of the program is cut or filled up with slashes; if that is not enough, the last word but one is cut.

    >>> fitted_command_line(["/bin/python", "-m", "slot", "orders", "3"], 31)
    b'///bin/python\\x00-m\\x00slot\\x00orders\\x003\\x00'
    >>> fitted_command_line(["/bin/python", "-m", "slot", "orders", "3"], 21)
    b'python\\x00-m\\x00slot\\x00ord\\x003\\x00'
    """
    program, *others = map(os.fsencode, words)
    program_room = room - sum(len(word) + 1 for word in others) - 1
    if (missing := len(os.path.basename(program)) - program_room) > 0:
        others[-2] = others[-2][: max(0, len(others[-2]) - missing)]
        program_room += missing
    program = program.rjust(program_room, b"/")[-program_room:]
    return b"".join(word + b"\0" for word in (program, *others))[:room].ljust(room, b"\0")


def refusal(error: BaseException) -> str:
    """Why a system call was refused, with what to do where that is known.

    >>> refusal(OSError(errno.EMFILE, "Too many open files"))[:47]
    'this process has no file descriptor left: raise'
    """
    if out_of_descriptors(error):
        return (
            "this process has no file descriptor left: raise its limit (ulimit -n), or close files and connections "
            "that the program leaves open"
        )
    return str(error)


def out_of_descriptors(error: BaseException) -> bool:
    """Whether this error, or one that it was raised from, means that no file descriptor is left."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.EMFILE, errno.ENFILE):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of no name"


def _likely_cause(number: int) -> str:
    if number == signal.SIGKILL:
        return ": by somebody, or by the kernel for lack of memory (look into dmesg)"
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE):
        return ": a native library may have crashed"
    return ""
