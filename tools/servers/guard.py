"""Runs a server's command and ends it when the process that asked for the server is gone, even by SIGKILL.

Run as a script, by path, so that it starts fast: ``guard.py STARTER_PID COMMAND...``. It writes the server's process id
to standard output; the server writes to the guard's standard error. The guard ends with the server, with its status.

The kernel's own signal for this (PR_SET_PDEATHSIG) is tied to the *thread* that started a process. So the server has it
tied to the guard, which has one thread, and the guard looks whether its parent is still the starter.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_S = 0.25
_LIBC = ctypes.CDLL(None)


def main(starter: int, command: list[str]) -> int:
    """Start the command, report its process id, and wait for its end or for the starter's."""
    # Blocked, the signal of a child's end waits for sigtimedwait even if it comes first.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with_guard,  # noqa: PLW1509 - the guard has one thread
    )
    _report(server.pid)
    while server.poll() is None:
        if os.getppid() != starter:
            server.kill()
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_EVERY_S)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _die_with_guard() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _report(pid: int) -> None:
    try:
        os.write(1, f"{pid}\n".encode())
        os.close(1)
    except BrokenPipeError:
        pass  # the starter died already; the loop notices


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
