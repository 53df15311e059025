"""Writes the recorded input of a task that failed beside the job's checkpoints, with its code if that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from rekindle.checkpoint.paths import recording_path, shipped_job_path, timeline_of, url_of
from rekindle.checkpoint.recordings import RecordedFailure, Recording, encode_recording
from rekindle.checkpoint.store.port import Store
from rekindle.graph.nodes import JobPlan
from rekindle.protocol import TaskFailed
from rekindle.runtime.context import JobIdentity
from rekindle.runtime.recording.recorded_task import RecordedTask
from rekindle.runtime.task_position import edge_names


@dataclass(frozen=True)
class RecordingPlace:
    """Where recordings of an attempt go. Without a store the checkpoints are in the driver's memory."""

    store: Store | None
    #: The folder of the job's timeline in the store.
    root: str
    plan: JobPlan
    job: JobIdentity
    restarts: int
    program: bytes

    def keep(self, task: RecordedTask, failed: TaskFailed, now_ms: int) -> TaskFailed:
        """Write the task's recording; returns the failure with its path, or with the reason why there is none."""
        if self.store is None:
            return _without(failed, "checkpoints are in the driver's memory: set execution.checkpointing.dir")
        recording = self.recording(task, failed, now_ms)
        if recording is None:
            limit = self.plan.settings.replay.max_bytes
            return _without(
                failed,
                f"there was more than rekindle.replay.max-bytes ({limit} bytes) since the last checkpoint: raise it, "
                "or take checkpoints more often",
            )
        path = recording_path(self.plan.job_name, now_ms, self.job.attempt, task.chain.id, task.subtask)
        try:
            if self.plan.settings.replay.keeps_code:
                self.store.put(shipped_job_path(path), self.program)
            self.store.put(path, encode_recording(recording))
        except Exception as error:  # whatever a store raises: the job's own failure is what people must see
            return _without(failed, f"it could not be written: {error}")
        return replace(failed, recording=url_of(self.store, path))

    def recording(self, task: RecordedTask, failed: TaskFailed, now_ms: int) -> Recording | None:
        """The recording of a task that failed; None: there was more input than is kept."""
        recorded = task.recorded()
        if recorded is None:
            return None
        start, segments = recorded
        plan, chain = self.plan, task.chain
        names = edge_names(plan)
        return Recording(
            job_name=plan.job_name,
            job_id=self.job.id,
            timeline=self.job.timeline or timeline_of(self.root),
            attempt=self.job.attempt,
            restarts=self.restarts,
            claimed_ms=self.job.claimed_ms,
            failed_ms=now_ms,
            task=task.name,
            subtask=task.subtask,
            parallelism=chain.parallelism,
            operators=[(plan.nodes[node].uid, plan.nodes[node].name) for node in chain.nodes],
            max_parallelism={node.uid: node.max_parallelism for node in plan.nodes},
            edges={edge.id: names[edge.id] for edge in plan.edges if edge.target == chain.head},
            store_url=self.store.url if self.store is not None else "",
            root=self.root,
            start=start,
            segments=segments,
            failure=RecordedFailure(failed.operator, failed.summary, failed.traceback, failed.record),
        )


def _without(failed: TaskFailed, why: str) -> TaskFailed:
    return replace(failed, not_recorded=why)
