"""`JobExecutionResult`: the result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rekindle.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The result of a finished job: its run time and its accumulators.

    >>> result = JobExecutionResult(JobID(), net_runtime_ms=1200, accumulators={"orders": 7})
    >>> result.get_net_runtime(), result.get_accumulator_result("orders")
    (1200, 7)
    """

    def __init__(self, job_id: JobID, net_runtime_ms: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime_ms = net_runtime_ms
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """How long the job ran, in milliseconds."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of one accumulator; None when the job has none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """The accumulators by name."""
        return dict(self._accumulators)

    def __str__(self) -> str:
        lines = [f"Job {self._job_id} ran for {self._net_runtime_ms} ms."]
        lines += [f"- {name}: {value}" for name, value in sorted(self._accumulators.items())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<JobExecutionResult of {self._job_id}: {self._net_runtime_ms} ms>"
