"""The settings that travel with the plan.

| key | meaning |
|---|---|
| chunk_records | the most records in one payload between two tasks |
| memory_buffer_bytes | what an inbox or outbox holds in memory before it goes to disk |
| auto_watermark_interval_ms | how often periodic watermark generators are asked; 0: never |
| buffer_timeout_ms | the least time between the starts of two epochs; -1: epochs wait until there is much to do |
| global_job_parameters | the job's own parameters, dict[str, str] |
| cached_files | name and path of each, as they were registered |
| state_pickle | `allow` or `refuse`: elements and state of undeclared types |
| object_reuse | accepted, has no effect |
| state_backend | `hashmap` or `rocksdb` |
| epoch_max_records, epoch_initial_records, epoch_target_ms | the cap of an epoch: upper bound, start, target time |
| heartbeat_interval_ms, heartbeat_timeout_ms | between driver and slots |
| cancellation_timeout_ms | a task that does not end so long after a cancellation is ended with its process; 0: never |
| slot_start_timeout_ms | how long the driver waits for its slots |
| checkpoint_interval_ms | -1 without checkpoints, and always in batch mode |
| unaligned_checkpoints | whether records in front of a slow task go into checkpoints |
| checkpoint_mode, checkpoint_timeout_ms, checkpoint_min_pause_ms, checkpoint_max_concurrent, | |
| checkpoint_tolerable_failures, checkpoint_retention, checkpoint_num_retained, checkpoint_directory, | |
| savepoint_directory, allow_non_restored_state | as in Flink |
| resumes_latest | whether the job goes on from its latest checkpoint whenever it is started |
| allow_older_checkpoint | whether a damaged checkpoint may be left for an older one although a sink commits (I16) |
| commit_retries, commit_retry_delay_ms | of a sink's commits that can wait for no further checkpoint |
"""

from __future__ import annotations

from typing import Any

from rekindle import config
from rekindle.datastream.transformations import Program


def plan_settings(program: Program, batch: bool) -> dict[str, Any]:
    """The settings of a program under the keys above."""
    return _engine_settings(program) | _checkpoint_settings(program, batch)


def _engine_settings(program: Program) -> dict[str, Any]:
    settings = program.configuration
    buffer_timeout = settings.get_millis(config.BUFFER_TIMEOUT) if settings.get(config.BUFFER_TIMEOUT_ENABLED) else -1
    return {
        "chunk_records": settings.get(config.EPOCH_CHUNK_RECORDS),
        "memory_buffer_bytes": settings.get(config.SLOT_MEMORY_BUFFER),
        "auto_watermark_interval_ms": settings.get_millis(config.AUTO_WATERMARK_INTERVAL),
        "buffer_timeout_ms": buffer_timeout,
        "global_job_parameters": program.execution_config.get_global_job_parameters(),
        "cached_files": [(file.name, file.path) for file in program.cached_files],
        "state_pickle": settings.get(config.STATE_PICKLE),
        "object_reuse": settings.get(config.OBJECT_REUSE),
        "state_backend": settings.get(config.STATE_BACKEND),
        "epoch_max_records": settings.get(config.EPOCH_MAX_RECORDS),
        "epoch_initial_records": settings.get(config.EPOCH_INITIAL_RECORDS),
        "epoch_target_ms": settings.get_millis(config.EPOCH_TARGET_DURATION),
        "heartbeat_interval_ms": settings.get_millis(config.HEARTBEAT_INTERVAL),
        "heartbeat_timeout_ms": settings.get_millis(config.HEARTBEAT_TIMEOUT),
        "cancellation_timeout_ms": settings.get_millis(config.CANCELLATION_TIMEOUT),
        "slot_start_timeout_ms": settings.get_millis(config.SLOT_START_TIMEOUT),
    }


def _checkpoint_settings(program: Program, batch: bool) -> dict[str, Any]:
    checkpoints = program.checkpoint_config
    settings = program.configuration
    return {
        "unaligned_checkpoints": not batch and checkpoints.is_unaligned_checkpoints_enabled(),
        "checkpoint_interval_ms": -1 if batch else checkpoints.get_checkpoint_interval(),
        "checkpoint_mode": checkpoints.get_checkpointing_mode().name,
        "checkpoint_timeout_ms": checkpoints.get_checkpoint_timeout(),
        "checkpoint_min_pause_ms": checkpoints.get_min_pause_between_checkpoints(),
        "checkpoint_max_concurrent": checkpoints.get_max_concurrent_checkpoints(),
        "checkpoint_tolerable_failures": checkpoints.get_tolerable_checkpoint_failure_number(),
        "checkpoint_retention": checkpoints.get_externalized_checkpoint_retention().name,
        "checkpoint_num_retained": settings.get(config.CHECKPOINT_NUM_RETAINED),
        "allow_non_restored_state": settings.get(config.RECOVERY_IGNORE_UNCLAIMED),
        "allow_older_checkpoint": settings.get(config.RECOVERY_ALLOW_OLDER),
        "checkpoint_directory": settings.get(config.CHECKPOINT_DIRECTORY),
        "savepoint_directory": settings.get(config.SAVEPOINT_DIRECTORY),
        "resumes_latest": settings.get(config.RECOVERY_PATH) == "latest",
        "commit_retries": settings.get(config.SINK_COMMITTER_RETRIES),
        "commit_retry_delay_ms": settings.get_millis(config.SINK_COMMITTER_RETRY_DELAY),
    }
