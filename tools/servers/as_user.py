"""Becomes another user, then runs a command in its place: PostgreSQL refuses to run as root.

Run as a script, by path: ``as_user.py USER_ID GROUP_ID COMMAND...``. Root's right to open every file stays, so that the
clone and the data may lie in folders that only root can enter.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE = 1
_INIT = 1
_LIBC = ctypes.CDLL(None)


def main(user: int, group: int, command: list[str]) -> None:
    """Change the user and run the command; returns only if the parent is gone."""
    _LIBC.prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    _keep_access_to_files()
    # The kernel forgets the signal of the parent's death (see guard.py) when a process changes its user.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != _INIT:
        os.execv(command[0], command)


def _keep_access_to_files() -> None:
    bits = 1 << _CAP_DAC_OVERRIDE
    header = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0))
    effective_permitted_inheritable = ctypes.create_string_buffer(struct.pack("<6I", bits, bits, bits, 0, 0, 0))
    _LIBC.capset(header, effective_permitted_inheritable)
    _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
