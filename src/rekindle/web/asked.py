"""A checked request: the parts of its path, its parameters and its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from rekindle.common.checkpoint_statistics import CheckpointStatistics
from rekindle.monitor.job_view import JobView, SlotView, SubtaskView, VertexView
from rekindle.web.metric_answers import AGGREGATIONS
from rekindle.web.operations import StartedOperations
from rekindle.web.request_errors import RequestError, bad_path_value, bad_query_value
from rekindle.web.served_jobs import ServedJobs

_HEX_ID = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,18}")
B = TypeVar("B", bound="Body")


class Body(msgspec.Struct, frozen=True):
    """Base of the bodies of requests; unknown names are ignored, as Flink does."""


class SavepointTriggerRequestBody(Body, frozen=True):
    """Flink's request for a savepoint."""

    target_directory: str | None = msgspec.field(name="target-directory", default=None)
    cancel_job: bool = msgspec.field(name="cancel-job", default=False)
    formatType: Literal["CANONICAL", "NATIVE"] | None = None
    triggerId: str | None = None


class StopWithSavepointRequestBody(Body, frozen=True):
    """Flink's request for a stop."""

    targetDirectory: str | None = None
    drain: bool | None = None
    formatType: Literal["CANONICAL", "NATIVE"] | None = None
    triggerId: str | None = None


class CheckpointTriggerRequestBody(Body, frozen=True):
    """Flink's request for a checkpoint."""

    checkpointType: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = None
    triggerId: str | None = None


@dataclass(frozen=True)
class ServerOptions:
    """The options of the server that some answers show or obey."""

    address: str = ""
    refresh_ms: int = 3000
    may_cancel: bool = True


@dataclass(frozen=True)
class Asked:
    """A request, and what is there to answer it."""

    jobs: ServedJobs
    operations: StartedOperations
    options: ServerOptions = field(default_factory=ServerOptions)
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    # -- the path -----------------------------------------------------------------------------------------------------

    def hex_id(self, name: str) -> str:
        """A part of the path that is an id of 32 hexadecimal digits."""
        value = self.path[name]
        return value.lower() if _HEX_ID.fullmatch(value) else bad_path_value(name, value)

    def number(self, name: str) -> int:
        """A part of the path that is a number."""
        value = self.path[name]
        return int(value) if _NUMBER.fullmatch(value) else bad_path_value(name, value)

    def job(self, *, name: str = "jobid") -> JobView:
        """The job in the path."""
        job_id = self.hex_id(name)
        view = self.jobs.view(job_id)
        if view is None:
            raise RequestError(404, f"Job {job_id} not found")
        return view

    def vertex(self) -> tuple[JobView, VertexView]:
        """The job and the task in the path."""
        view, vertex_id = self.job(), self.hex_id("vertexid")
        vertex = view.vertex(vertex_id)
        if vertex is None:
            raise RequestError(404, f"JobVertex {vertex_id} not found")
        return view, vertex

    def subtask(self) -> tuple[JobView, VertexView, SubtaskView]:
        """The job, the task and the subtask in the path."""
        view, vertex = self.vertex()
        index = self.number("subtaskindex")
        if index >= len(vertex.subtasks):
            raise RequestError(404, f"Subtask {index} of JobVertex {vertex.id} not found")
        return view, vertex, vertex.subtasks[index]

    def checkpoint(self) -> CheckpointStatistics:
        """The checkpoint in the path."""
        checkpoint_id = self.number("checkpointid")
        checkpoint = self.job().checkpoints.find(checkpoint_id)
        if checkpoint is None:
            raise RequestError(404, f"Could not find checkpointing statistics for checkpoint {checkpoint_id}.")
        return checkpoint

    def slot(self, *, log_lines: int = 0) -> tuple[JobView, SlotView]:
        """The slot in the path, and the job that it belongs to."""
        slot_id = self.path["taskmanagerid"]
        for view in self.jobs.views(log_lines=log_lines):
            for slot in view.slots:
                if slot.id == slot_id:
                    return view, slot
        raise RequestError(404, f"Could not find TaskExecutor {slot_id}.")

    # -- the parameters -----------------------------------------------------------------------------------------------

    def wanted(self) -> list[str] | None:
        """The metrics that are asked for; None: their names are."""
        value = self.query.get("get")
        return None if value is None else [name for name in value.split(",") if name]

    def aggregations(self) -> list[str]:
        """How metrics are to be aggregated."""
        value = self.query.get("agg")
        if value is None:
            return list(AGGREGATIONS)
        asked = [each.strip().lower() for each in value.split(",") if each.strip()]
        return asked if set(asked) <= set(AGGREGATIONS) else bad_query_value("agg", value)

    def positive(self, name: str, default: int) -> int:
        """A parameter that is a number."""
        value = self.query.get(name)
        if value is None:
            return default
        return int(value) if _NUMBER.fullmatch(value) else bad_query_value(name, value)

    def indexes(self, name: str, most: int) -> list[int]:
        """A parameter that chooses subtasks: numbers and ranges (`0,2-4`); without it, all."""
        value = self.query.get(name)
        if value is None:
            return list(range(most))
        chosen: set[int] = set()
        for part in value.split(","):
            first, dash, last = part.strip().partition("-")
            if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
                bad_query_value(name, value)
            chosen.update(range(int(first), min(int(last) if dash else int(first), most) + 1))
        return sorted(index for index in chosen if index < most)

    # -- the body -----------------------------------------------------------------------------------------------------

    def decoded(self, form: type[B]) -> B:
        """The body; without one, its defaults."""
        try:
            body: B = msgspec.json.decode(self.body.strip() or b"{}", type=form)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise RequestError(400, f"Request did not match expected format {form.__name__}.") from None
        request_id: Any = getattr(body, "triggerId", None)
        if request_id is not None and not _HEX_ID.fullmatch(request_id):
            raise RequestError(400, f"Request did not match expected format {form.__name__}.")
        return body
