"""Finds the engine's launcher by entry point, so that the API does not import the engine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast

from rekindle.common.configuration import Configuration
from rekindle.common.job_client import JobHandle
from rekindle.common.typeinfo import TypeInformation

if TYPE_CHECKING:
    from rekindle.datastream.connectors.base import Source
    from rekindle.datastream.transformations import Program

#: The group and name of the entry point of the engine that runs programs.
GROUP, NAME = "rekindle.launcher", "spark"
#: The engine of a checkout that was never installed, and so has no entry points.
DEFAULT_MODULE = "rekindle.spark.launcher"
#: The launcher in front of the engine while the command line runs a program.
_in_front: Launcher | None = None


class CollectingJob(JobHandle, Protocol):
    """A running job whose collected records the program can read. `launch` returns one for every program."""

    def results(self) -> Iterator[list[Any]]:
        """Iterate over batches of the collected stream as they arrive. Raises the job's error if it fails."""
        ...


class Launcher(Protocol):
    """The interface of an engine: a module with these functions, or an object in front of it."""

    def launch(self, program: Program, /) -> CollectingJob:
        """Start a program."""
        ...

    def plan_json(self, program: Program, /) -> str:
        """The plan in Flink's JSON shape."""
        ...

    def explain(self, program: Program, /) -> str:
        """The plan as text for people."""
        ...

    def to_dataframe(self, program: Program, /) -> Any:
        """Run a bounded program and return its collected records as a DataFrame."""
        ...

    def dataframe_type(self, df: Any, /) -> TypeInformation:
        """The type of a DataFrame's rows."""
        ...

    def materialize(self, program: Program, /) -> Source[Any]:
        """Run a bounded program and return its collected records as a source."""
        ...

    def query_engine(self, configuration: Configuration, /) -> Any:
        """The engine of queries over tables."""
        ...


def load_launcher() -> Launcher:
    """Return what programs of this process are launched by: the engine, or what stands in front of it."""
    return _in_front or load_engine()


@contextmanager
def launching_with(launcher: Launcher) -> Iterator[None]:
    """Launch programs of this process by another launcher inside the block: one that looks on, or only plans."""
    global _in_front
    before, _in_front = _in_front, launcher
    try:
        yield
    finally:
        _in_front = before


def load_engine() -> Launcher:
    """Return the engine's launcher module."""
    found = entry_points(group=GROUP, name=NAME)
    module = next((entry.module for entry in found), DEFAULT_MODULE)
    return cast(Launcher, importlib.import_module(module))
