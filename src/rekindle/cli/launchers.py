"""Launchers in front of the engine while a command runs a program: they note the jobs that start, or plan them only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekindle.coordinator.driver_log import driver_log
from rekindle.datastream.find_launcher import CollectingJob, load_engine
from rekindle.datastream.termination import TerminableJob, TerminationSettings

if TYPE_CHECKING:
    from rekindle.common.configuration import Configuration
    from rekindle.common.typeinfo import TypeInformation
    from rekindle.datastream.connectors.base import Source
    from rekindle.datastream.transformations import Program


@dataclass(frozen=True)
class StartedJob:
    """A job that the program has started."""

    name: str
    handle: CollectingJob
    #: How it ends after SIGTERM.
    termination: TerminationSettings

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return str(self.handle.job_id)

    def document(self) -> dict[str, Any]:
        """The job for machines."""
        return {
            "job-id": self.job_id,
            "name": self.name,
            "state": self.handle.status().name,
            "address": self.handle.web_url(),
        }


class _InFrontOfTheEngine:
    """Passes everything on to the engine, which is imported when it is needed."""

    def launch(self, program: Program) -> CollectingJob:
        return load_engine().launch(program)

    def plan_json(self, program: Program) -> str:
        return load_engine().plan_json(program)

    def explain(self, program: Program) -> str:
        return load_engine().explain(program)

    def to_dataframe(self, program: Program) -> Any:
        return load_engine().to_dataframe(program)

    def dataframe_type(self, df: Any) -> TypeInformation:
        return load_engine().dataframe_type(df)

    def materialize(self, program: Program) -> Source[Any]:
        return load_engine().materialize(program)

    def query_engine(self, configuration: Configuration, /) -> Any:
        """The engine of queries over tables."""
        return load_engine().query_engine(configuration)


class NotingLauncher(_InFrontOfTheEngine):
    """Notes every job that the program starts, and tells who wants to know."""

    def __init__(self, on_start: Callable[[StartedJob], None] | None = None) -> None:
        self.jobs: list[StartedJob] = []
        #: Called before a job starts; what it raises ends the program.
        self.before_start: Callable[[], None] = lambda: None
        self._on_start = on_start

    def launch(self, program: Program) -> CollectingJob:
        """Start a job."""
        self.before_start()
        termination = TerminationSettings.of(program.configuration)
        if (log := driver_log()) is not None:
            log.jobs.append(program.job_name)
        job = StartedJob(program.job_name, load_engine().launch(program), termination)
        self.jobs.append(job)
        if self._on_start is not None:
            self._on_start(job)
        return job.handle

    def terminable(self) -> list[TerminableJob]:
        """The jobs, for the end of the program by SIGTERM."""
        return [TerminableJob(job.name, job.handle, job.termination) for job in self.jobs]


class ProgramPlannedError(BaseException):
    """Ends a program at its first `execute()`; as Flink does it, nothing that a program catches on purpose."""

    def __init__(self, program: Program) -> None:
        super().__init__("the plan is known")
        self.program = program


class PlanningLauncher(_InFrontOfTheEngine):
    """Starts nothing: the first program that would run ends the user's program."""

    def launch(self, program: Program) -> CollectingJob:
        """End the program."""
        raise ProgramPlannedError(program)

    def to_dataframe(self, program: Program) -> Any:
        """End the program."""
        raise ProgramPlannedError(program)

    def materialize(self, program: Program) -> Source[Any]:
        """End the program."""
        raise ProgramPlannedError(program)
