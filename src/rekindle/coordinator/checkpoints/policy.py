"""Checkpoint policy, from the plan's settings: interval, timeout, pause, retention, tolerable failures. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle import config
from rekindle.common.job_status import JobStatus
from rekindle.config_parsers import in_millis
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.graph.settings import JobSettings

#: The job's end states after which its checkpoints stay whatever the user configured: the job is not done, and the next
#: run must not commit its output a second time (I21).
_NOT_DONE = frozenset({JobStatus.FAILED, JobStatus.SUSPENDED})
#: The job's end states after which its checkpoints stay, by the user's setting.
RETAINED_AT_END: dict[ExternalizedCheckpointRetention, frozenset[JobStatus]] = {
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: _NOT_DONE | {JobStatus.CANCELED},
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: _NOT_DONE,
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: _NOT_DONE,
}


@dataclass(frozen=True)
class CheckpointPolicy:
    """The settings of checkpoints. With an interval of -1 only requested checkpoints are made."""

    interval_ms: int = -1
    timeout_ms: int = in_millis(config.CHECKPOINT_TIMEOUT.default)
    min_pause_ms: int = in_millis(config.CHECKPOINT_MIN_PAUSE.default)
    max_concurrent: int = config.CHECKPOINT_MAX_CONCURRENT.default
    tolerable_failures: int = config.CHECKPOINT_TOLERABLE_FAILURES.default
    num_retained: int = config.CHECKPOINT_NUM_RETAINED.default
    retention: ExternalizedCheckpointRetention = ExternalizedCheckpointRetention[config.CHECKPOINT_RETENTION.default]
    #: Keep the final checkpoint: a program started with `latest` each time must find that the job had ended.
    keep_final: bool = False
    final_retry_ms: int = 1000  # the pause after a failed final checkpoint: a failing store is not asked in a busy loop

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made periodically."""
        return self.interval_ms > 0

    @staticmethod
    def from_settings(settings: JobSettings) -> CheckpointPolicy:
        """The policy in a plan's settings."""
        return CheckpointPolicy(
            interval_ms=settings.checkpoint_interval_ms,
            timeout_ms=settings.checkpoint_timeout_ms,
            min_pause_ms=settings.checkpoint_min_pause_ms,
            max_concurrent=settings.checkpoint_max_concurrent,
            tolerable_failures=settings.checkpoint_tolerable_failures,
            num_retained=settings.checkpoint_num_retained,
            keep_final=settings.resumes_latest,
            retention=settings.checkpoint_retention,
        )
