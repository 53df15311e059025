"""Runs a program up to the launch of its job, so that the job's plan and functions are at hand; no Spark is started.

The job is used inside that launch, while the program's `__main__` is there; then the program ends.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar, cast

from rekindle.datastream.find_launcher import Launcher, launching_with
from rekindle.datastream.main_program import MainProgram
from rekindle.datastream.transformations import Program
from rekindle.errors import ReplayError

T = TypeVar("T")


class _Launched(BaseException):
    """Ends the program after its job was taken."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


def with_job_of(call: MainProgram, take: Callable[[Program], T]) -> T:
    """Run a program until it launches its job, and return what `take` makes of the job."""

    def launch(program: Program) -> NoReturn:
        raise _Launched(take(program))

    if call.is_missing:
        raise ReplayError(f"There is no program {call}.")
    launcher = SimpleNamespace(
        launch=launch,
        to_dataframe=launch,
        materialize=_refuse,
        dataframe_type=_refuse,
        plan_json=_refuse,
        explain=_refuse,
        query_engine=_refuse,
    )
    try:
        with launching_with(cast(Launcher, launcher)):
            call.run()
    except _Launched as launched:
        return launched.result  # type: ignore[return-value]
    except SystemExit as ended:
        raise ReplayError(f"The program {call} ended with {ended.code!r} before it started its job.") from ended
    raise ReplayError(f"The program {call} ended without starting its job: name the program that failed.")


def _refuse(*_: Any) -> NoReturn:
    raise ReplayError(
        "The program uses Spark before its job starts (a DataFrame, a cache or a plan): replay the job's own code with "
        "--shipped."
    )
