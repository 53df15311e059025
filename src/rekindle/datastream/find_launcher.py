"""The way from the API down to the engine: a module found by entry point, so that nothing here imports it."""

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

#: The entry point group and name that say which engine runs programs.
GROUP, NAME = "rekindle.launcher", "spark"
#: Where a checkout that was never installed, and so has no entry points, finds its engine.
DEFAULT_MODULE = "rekindle.spark.launcher"


class CollectingJob(JobHandle, Protocol):
    """A job whose records come back: what `launch` gives for every program."""

    def results(self) -> Iterator[list[Any]]:
        """The records of the collected stream, batch by batch, as they come; the job's error if it fails."""
        ...


class Launcher(Protocol):
    """What an engine offers; a module with these functions is one."""

    launch: Callable[[Program], CollectingJob]
    plan_json: Callable[[Program], str]
    explain: Callable[[Program], str]
    to_dataframe: Callable[[Program], Any]
    dataframe_type: Callable[[Any], TypeInformation]
    materialize: Callable[[Program], Source[Any]]


def load_launcher() -> Launcher:
    """The engine's module."""
    found = entry_points(group=GROUP, name=NAME)
    module = next((entry.module for entry in found), DEFAULT_MODULE)
    return cast(Launcher, importlib.import_module(module))
