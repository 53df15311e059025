"""An archive of a server's loaded classes in the cache of its jars: with it the server starts in half of the time.

A JVM writes its archive when it ends, which takes seconds. So only the broker that a test run shares records one, and
only while there is none; every other start uses what it finds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from tools.servers.java_command import java_program

# The JVM says nothing about an archive that does not fit; it goes without.
_OPTIONAL = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


class ClassArchive:
    """The archive of one server for one Java."""

    def __init__(self, jars: Path) -> None:
        java = java_program()
        version = hashlib.sha256(f"{java} {os.stat(java).st_mtime_ns}".encode()).hexdigest()[:16]
        self._path = jars.parent / f"classes-{version}.jsa"
        self._recorded = jars.parent / f"classes-{version}.{os.getpid()}.partial"

    def use(self) -> tuple[str, ...]:
        """Java options with which the server starts from the archive, if there is one."""
        return (f"-XX:SharedArchiveFile={self._path}", *_OPTIONAL) if self._path.exists() else ()

    def record(self) -> tuple[str, ...]:
        """Java options with which the server writes the archive at its end, if there is none."""
        missing = not self._path.exists() and os.access(self._path.parent, os.W_OK)
        return (f"-XX:ArchiveClassesAtExit={self._recorded}", *_OPTIONAL) if missing else ()

    def keep(self) -> None:
        """Keep what the server has written; nothing, if it was killed or its Java cannot write archives."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._recorded, self._path)
