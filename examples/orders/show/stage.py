"""Where the demo's job gets its orders, and where readers find its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from examples.orders.results import rows_of
from examples.orders.settings import Settings
from examples.orders.show.program import VisibleRows


class Stage(Protocol):
    """The surroundings of the job."""

    settings: Settings
    has_broker: bool
    #: How the job came back each time, for the last sentence.
    how: str

    def start_feed(self) -> None:
        """Let orders come."""

    def finish_feed(self) -> None:
        """Let the last orders come: no fault is left that they must outlast."""

    def kill_broker(self) -> int:
        """Send SIGKILL to the broker; returns its process id."""

    def restart_broker(self) -> None:
        """Start the broker again, with its data."""

    def count(self) -> dict[str, int]:
        """The rows that readers see now, by stream."""

    def rows_of(self, stream: str) -> Iterable[Any]:
        """All rows of a stream that readers see."""


class FileStage:
    """The job generates its orders and writes files."""

    has_broker = False
    how = "from its last checkpoint"

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, sink="files")
        self._output = Path(settings.directory) / "output"
        self._visible = VisibleRows(self._output)

    def start_feed(self) -> None:
        """Do nothing: the job generates orders while it runs."""

    def finish_feed(self) -> None:
        """Do nothing."""

    def kill_broker(self) -> int:
        """Refuse: there is none."""
        raise AssertionError("there is no broker")

    def restart_broker(self) -> None:
        """Refuse: there is none."""
        raise AssertionError("there is no broker")

    def count(self) -> dict[str, int]:
        """The rows in visible files."""
        return self._visible.count()

    def rows_of(self, stream: str) -> Iterable[Any]:
        """The rows of the stream's visible files."""
        return rows_of(self._output / stream)
