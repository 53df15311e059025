"""Take a sink's committables out of a checkpoint: the way out when the outside world will never take them."""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec

from rekindle.checkpoint.checkpoint_copy import empty_on_failure, new_place
from rekindle.checkpoint.committables import read_committable
from rekindle.checkpoint.copy_parts import FolderCopy
from rekindle.checkpoint.load_checkpoint import load, locate
from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.paths import url_of
from rekindle.checkpoint.publish import put_metadata
from rekindle.checkpoint.statefile import read_pieces
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.errors import CheckpointError
from rekindle.graph.uid import operator_id
from rekindle.serde import tagged_loads

#: The file that says what the others are.
INDEX = "committables.json"


def take_out_committables(
    path: str,
    target: str,
    into: str,
    *,
    operator: str,
    subtask: int | None = None,
    options: StoreOptions | None = None,
) -> str:
    """Copy a checkpoint into a new savepoint without a sink's committables; returns the savepoint's URL.

    The committables are written into the new local folder `into`: a file each, and `committables.json` about them.
    `operator` is the sink's uid, ID or name, `subtask` (from 0) the one whose committables are taken; None: all.
    """
    known = options or {}
    place = locate(path, options_for(path, known))
    source = load(place.store, place.path)
    manifest = source.manifest
    sink = _operator(manifest, operator, path)
    taken = [each for each in sink.subtasks if each.committables and subtask in (None, each.subtask)]
    if not taken:
        of = "" if subtask is None else f" in subtask {subtask + 1}"
        raise CheckpointError(f"Operator '{operator}' has no committables{of} in {path}.")
    copy = new_place(target, known)
    folder = FolderCopy(source.store, source.root, copy.store, copy.path, manifest.checkpoint_id, manifest.attempt)
    with empty_on_failure(copy):
        _make_folder(into)
        written = [row for each in taken for row in _written(source.store, source.root, each, into)]
        with open(os.path.join(into, INDEX), "w", encoding="utf-8") as file:
            json.dump({"checkpoint": path, "operator": sink.uid, "committables": written}, file, indent=2, default=repr)
        without = {id(each): msgspec.structs.replace(each, committables=[]) for each in taken}
        rest = msgspec.structs.replace(sink, subtasks=[without.get(id(each), each) for each in sink.subtasks])
        operators = [folder.operator(rest if each is sink else each) for each in manifest.operators]
        savepoint = msgspec.structs.replace(manifest, kind=ManifestKind.SAVEPOINT, operators=operators)
        put_metadata(copy.store, copy.path, savepoint)
    return url_of(copy.store, copy.path)


def _operator(manifest: Manifest, name: str, path: str) -> OperatorState:
    found = [each for each in manifest.operators if each.uid in (name, operator_id(name))] or [
        each for each in manifest.operators if each.name == name
    ]
    if len(found) == 1:
        return found[0]
    sinks = [each for each in manifest.operators if any(subtask.committables for subtask in each.subtasks)]
    named = ", ".join(f"'{each.uid}' ({each.name})" for each in sinks) or "none has any"
    problem = "has several operators of this name" if found else "has no such operator"
    raise CheckpointError(f"{path} {problem}, '{name}': name one with committables by its ID: {named}.")


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700)  # it holds the user's data
    except FileExistsError:
        raise CheckpointError(f"There is a folder or file {path}: name a new folder for the committables.") from None
    except OSError as error:
        raise CheckpointError(f"The folder {path} could not be made: {error}.") from error


def _written(store: Any, root: str, state: SubtaskState, into: str) -> list[dict[str, Any]]:
    """Write a subtask's committables; return what the index says of each."""
    rows = []
    for number, blob in enumerate(state.committables, 1):
        name = f"subtask-{state.subtask + 1}-{number}"
        head = read_committable(read_pieces(store, root, blob), os.path.join(into, name))
        row = {"subtask": state.subtask + 1, "checkpoint": head.checkpoint_id, "tries": head.retries}
        if head.file_name is not None:
            rows.append(row | {"file": name, "metadata": tagged_loads(head.payload)})
            continue
        with open(os.path.join(into, name), "wb") as file:  # as the sink's own serializer wrote it
            file.write(head.payload)
        rows.append(row | {"file": name})
    return rows
