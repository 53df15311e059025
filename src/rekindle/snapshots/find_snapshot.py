"""Find the checkpoint or savepoint that a user names: by its own path, or by the folder of its job and an id."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rekindle.checkpoint.latest_checkpoint import folders_with
from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint, Location, load, locate
from rekindle.checkpoint.manifest import Manifest, OperatorState
from rekindle.checkpoint.paths import METADATA, url_of
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.checkpoint.stored_places import open_stored
from rekindle.errors import CheckpointNotFoundError, IncompatibleStateError
from rekindle.graph.uid import operator_id


@dataclass(frozen=True)
class Snapshot(LoadedCheckpoint):
    """A checkpoint or savepoint that is read outside a job; a copy in another process can read files, no more."""

    options: Mapping[str, str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        # The manifest may be large, and who reads a split has the references that it needs.
        manifest = msgspec.structs.replace(self.manifest, operators=[])
        return _reopened, (self.store.url, dict(self.options), manifest, self.path, self.root)


def _reopened(url: str, options: Mapping[str, str], manifest: Manifest, path: str, root: str) -> Snapshot:
    return Snapshot(open_store(url, options), manifest, path, root, options)


def find_snapshot(path: str, checkpoint_id: int | None = None, options: StoreOptions | None = None) -> Snapshot:
    """Load the checkpoint or savepoint at `path`, or with an id the one of that id anywhere below `path`.

    Without an id, a folder with several checkpoints below it stands for the newest of them.
    """
    own = options_for(path, options or {})
    if checkpoint_id is None:
        location = locate(path, own)
        with contextlib.suppress(CheckpointNotFoundError):
            return _loaded(location, own)
    return _below(path, checkpoint_id, own)


def _below(path: str, checkpoint_id: int | None, options: Mapping[str, str]) -> Snapshot:
    store = open_stored(path, options)
    found = folders_with(METADATA, store.list())
    fitting = [each for each in found if checkpoint_id in (None, each.checkpoint_id)]
    if not fitting:
        wanted = "" if checkpoint_id is None else f" {checkpoint_id}"
        there = ", ".join(str(each.checkpoint_id) for each in found[-20:]) or "none"
        raise CheckpointNotFoundError(f"There is no checkpoint{wanted} below {path}: there are {there}.")
    jobs = {each.job for each in fitting}
    if len(jobs) > 1:
        raise CheckpointNotFoundError(
            f"Checkpoints of several jobs are below {path} ({', '.join(sorted(jobs))}): name the folder of one."
        )
    return _loaded(locate(url_of(store, str(fitting[-1])), options), options)


def _loaded(location: Location, options: Mapping[str, str]) -> Snapshot:
    found = load(location.store, location.path)
    return Snapshot(found.store, found.manifest, found.path, found.root, options)


def operator_of(manifest: Manifest, operator: str) -> OperatorState:
    """The state of an operator: by the uid that the program gives it, by its id, or by its name if only one has it."""
    for state in manifest.operators:
        if state.uid in (operator, operator_id(operator)):
            return state
    named = [state for state in manifest.operators if state.name == operator]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(state.uid for state in named)
        raise IncompatibleStateError(f"Several operators are named '{operator}': use the uid or the id of one ({ids}).")
    there = ", ".join(sorted({f"'{state.name}'" for state in manifest.operators}))
    raise IncompatibleStateError(
        f"The {manifest.kind} has no operator with the uid, id or name '{operator}': the names are {there}."
    )
