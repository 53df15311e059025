"""Finds the engine's launcher by entry point, so that the API does not import the engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast

from rekindle.common.job_client import JobHandle
from rekindle.common.typeinfo import TypeInformation

if TYPE_CHECKING:
    from rekindle.datastream.connectors.base import Source
    from rekindle.datastream.transformations import Program

#: The group and name of the entry point of the engine that runs programs.
GROUP, NAME = "rekindle.launcher", "spark"
#: The engine of a checkout that was never installed, and so has no entry points.
DEFAULT_MODULE = "rekindle.spark.launcher"


class CollectingJob(JobHandle, Protocol):
    """A running job whose collected records the program can read. `launch` returns one for every program."""

    def results(self) -> Iterator[list[Any]]:
        """Iterate over batches of the collected stream as they arrive. Raises the job's error if it fails."""
        ...


class Launcher(Protocol):
    """The interface of an engine: a module with these functions."""

    launch: Callable[[Program], CollectingJob]
    plan_json: Callable[[Program], str]
    explain: Callable[[Program], str]
    to_dataframe: Callable[[Program], Any]
    dataframe_type: Callable[[Any], TypeInformation]
    materialize: Callable[[Program], Source[Any]]


def load_launcher() -> Launcher:
    """Return the engine's launcher module."""
    found = entry_points(group=GROUP, name=NAME)
    module = next((entry.module for entry in found), DEFAULT_MODULE)
    return cast(Launcher, importlib.import_module(module))
