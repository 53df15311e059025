"""The complete checkpoints that a store holds of a job: for tests that look at what was kept."""

from __future__ import annotations

from rekindle.checkpoint.latest_checkpoint import folders_with
from rekindle.checkpoint.paths import METADATA, job_folder
from rekindle.checkpoint.store.port import Store


def list_checkpoints(store: Store, job_name: str) -> list[str]:
    """The folders of a job's complete checkpoints, oldest first: by timeline, then by id."""
    return [str(found) for found in folders_with(METADATA, store.list(job_folder(job_name)))]
