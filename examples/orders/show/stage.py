"""Where the demo's job gets its orders, and where readers find its results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from examples.orders.ends import STREAMS
from examples.orders.results import rows_of
from examples.orders.settings import Settings
from examples.orders.show.program import VisibleRows


class Server(Protocol):
    """A server that the demo kills."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""

    def restart(self) -> object:
        """Start it again, with its data."""


class Stage(Protocol):
    """The surroundings of the job."""

    settings: Settings
    #: The servers of the job that are killed, by the name that the audience reads.
    servers: Mapping[str, Server]
    #: The streams whose rows are counted while the job runs.
    counted: Collection[str]
    #: How the job came back each time, for the last sentence.
    how: str

    def start_feed(self) -> None:
        """Let orders come."""

    def finish_feed(self) -> None:
        """Let the last orders come: no fault is left that they must outlast."""

    def count(self) -> dict[str, int]:
        """The rows that readers see now, by stream."""

    def rows_of(self, stream: str) -> Iterable[Any]:
        """All rows of a stream that readers see."""


class FileStage:
    """The job generates its orders and writes files."""

    servers: Mapping[str, Server] = {}
    counted: Collection[str] = STREAMS
    how = "from its last checkpoint"

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, sink="files")
        self._output = Path(settings.directory) / "output"
        self._visible = VisibleRows(self._output)

    def start_feed(self) -> None:
        """Do nothing: the job generates orders while it runs."""

    def finish_feed(self) -> None:
        """Do nothing."""

    def count(self) -> dict[str, int]:
        """The rows in visible files."""
        return self._visible.count()

    def rows_of(self, stream: str) -> Iterable[Any]:
        """The rows of the stream's visible files."""
        return rows_of(self._output / stream)
