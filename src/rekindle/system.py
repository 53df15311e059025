"""The operating system's answers: how a process ended and why a call was refused, as text; memory in use."""

from __future__ import annotations

import errno
import os
import signal


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
