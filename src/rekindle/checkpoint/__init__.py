"""Checkpoints on disk: their layout and formats, which of them count, and who may change them (docs/architecture.md).

For users: `list_checkpoints`, `verify_checkpoint`, `copy_checkpoint`, `take_out_committables`, `delete_checkpoint`,
`unneeded_files` and `delete_unneeded` look after a directory of checkpoints without a job (docs/guide/catalogue.md).

- `store/`: the port with four verbs (I15) and its implementations; `paths`: the one owner of the layout (I14)
- `parts`: a subtask's state, captured and written; `statefile`: parts in few large files; `part_formats`,
  `committables`: the bytes of a part; `compaction`: what the next checkpoint writes whole
- `manifest`: the content of `_metadata`; `publish`: complete a checkpoint, delete files; `ownership`: which driver may
- `timeline_notes`: what a run began from, that it completed a checkpoint, the savepoint that it was stopped with
- `latest_checkpoint`: which checkpoint is a job's latest; `load_checkpoint`: find, read and verify it;
  `retention`: what may be deleted
- `rescale`: each subtask's share of a checkpoint; `redistribute`: how lists are shared out; `read_state`: read a share
- `checkpoint_listing`, `checkpoint_copy`, `checkpoint_deletion`: a directory of checkpoints, without a job;
  `copy_parts`: state from one folder into another; `take_out`: a copy without a sink's committables
"""

from __future__ import annotations

from rekindle.checkpoint.checkpoint_copy import Damage, copy_checkpoint, verify_checkpoint
from rekindle.checkpoint.checkpoint_deletion import Deleted, delete_checkpoint, delete_unneeded, unneeded_files
from rekindle.checkpoint.checkpoint_listing import CheckpointEntry, list_checkpoints
from rekindle.checkpoint.take_out import take_out_committables

__all__ = [
    "CheckpointEntry",
    "Damage",
    "Deleted",
    "copy_checkpoint",
    "delete_checkpoint",
    "delete_unneeded",
    "list_checkpoints",
    "take_out_committables",
    "unneeded_files",
    "verify_checkpoint",
]
