"""The store of a job's checkpoints, and the checkpoint or savepoint that the job starts from."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from rekindle import config
from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.latest_checkpoint import LATEST, latest
from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.paths import url_of
from rekindle.checkpoint.rescale import stored_max_parallelism
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.open_store import check_usable
from rekindle.checkpoint.store.options import open_configured, options_for, store_options
from rekindle.checkpoint.store.port import Store
from rekindle.common.configuration import Configuration
from rekindle.coordinator.checkpoints.fallback import GoingBack, load_or_older
from rekindle.errors import CheckpointNotFoundError, ConfigurationError
from rekindle.graph.nodes import JobPlan
from rekindle.places import is_url

_LOG = logging.getLogger("rekindle.job")


@dataclass(frozen=True)
class JobStorage:
    """The store of a job, and the checkpoint or savepoint that `execution.state-recovery.path` names."""

    job_name: str
    store: Store
    in_memory: bool
    path: str | None
    going_back: GoingBack
    #: Settings of object stores by kind, with secrets.
    options: dict[str, dict[str, str]] = field(repr=False)

    @staticmethod
    def of(plan: JobPlan, configuration: Configuration) -> JobStorage:
        """The storage that a job's settings describe. Nothing is read or written yet."""
        directory = plan.settings.checkpoints.directory
        path, options = configuration.get(config.RECOVERY_PATH), store_options(configuration)
        if not directory and path == LATEST:
            raise ConfigurationError(
                f"Job '{plan.job_name}' is to go on from its latest checkpoint, but keeps none beyond its end: "
                f"set {config.CHECKPOINT_DIRECTORY.key} to the directory that they are in."
            )
        if not directory and plan.settings.checkpointed:
            _LOG.warning(
                "Job '%s' keeps its checkpoints in the driver's memory: they are lost with it. Set "
                "execution.checkpointing.dir to a directory that every executor and the driver reach.",
                plan.job_name,
            )
        return JobStorage(
            job_name=plan.job_name,
            store=open_configured(directory, options) if directory else MemoryStore(),
            in_memory=not directory,
            path=path,
            going_back=GoingBack.of(plan),
            options=options,
        )

    def check(self) -> None:
        """Check, before anything runs, that the store can be used; StoreError says what to do if not."""
        if not self.in_memory:
            check_usable(self.store)

    def recover(self) -> LoadedCheckpoint | None:
        """Load the checkpoint that the job starts from, an older one if it is damaged; None: the job starts anew."""
        if self.path is None:
            return None
        return self._latest() if self.path == LATEST else self._at(self.path)

    def _at(self, path: str) -> LoadedCheckpoint:
        location = load_checkpoint.locate(path, options_for(path, self.options))
        return load_or_older(location.store, location.path, self.going_back)

    def _latest(self) -> LoadedCheckpoint | None:
        """The newest checkpoint that counts, the savepoint that the job was stopped with, or what its last run began
        from (I21).
        """
        place = latest(self.store, self.job_name)
        if place is None:
            _LOG.info("Job '%s' has no checkpoint yet: it begins anew.", self.job_name)
            return None
        url = place if is_url(place) else url_of(self.store, place)
        _LOG.info("Job '%s' goes on from %s.", self.job_name, url)
        try:
            if is_url(place):
                return self._at(place)
            return load_or_older(self.store, place, self.going_back)
        except CheckpointNotFoundError as error:
            raise CheckpointNotFoundError(
                f"Job '{self.job_name}' was stopped with, or last began from, {url}, which is not there any more: set "
                f"{config.RECOVERY_PATH.key} to where it is now, or to an older checkpoint, knowing that output since "
                "then is written again; or start the job once without it to begin anew."
            ) from error

    def stored_max_parallelism(self) -> Mapping[str, int]:
        """The number of key groups of each operator, by uid, in the state that the job starts from.

        A recovery path without a checkpoint raises its error here.
        """
        found = self.recover()
        return stored_max_parallelism(found.manifest) if found is not None else {}
