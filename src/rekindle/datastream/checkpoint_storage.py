"""Checkpoint storages: the settings of where checkpoints are stored."""

from __future__ import annotations

import logging
from typing import ClassVar

from rekindle import config
from rekindle.common.java_names import RefusesJavaNames
from rekindle.errors import GraphError

_LOG = logging.getLogger("rekindle")


class CheckpointStorage(RefusesJavaNames):
    """Base of the checkpoint storages."""


class JobManagerCheckpointStorage(CheckpointStorage):
    """Stores checkpoints in the driver's memory, for small state and tests.

    State of a subtask above `max_state_size` bytes fails the checkpoint. With a path, state of any size is stored in
    files below it, as with `FileSystemCheckpointStorage`.

    >>> JobManagerCheckpointStorage(max_state_size=100).get_max_state_size()
    100
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = config.CHECKPOINT_MAX_MEMORY.default

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        self._savepoint_path: str | None = None

    def get_checkpoint_path(self) -> str | None:
        """Return the directory of the checkpoints, or None."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """Return the largest state of one subtask, in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return the default directory of savepoints, or None."""
        return self._savepoint_path

    def __str__(self) -> str:
        """Flink's text of the storage."""
        return f"JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: {self._max_state_size})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Stores checkpoints in a directory of a file system or object store.

    `file_state_size_threshold` and `write_buffer_size` have no effect; a warning says so if they are given.

    >>> FileSystemCheckpointStorage("file:///checkpoints").get_checkpoint_path()
    'file:///checkpoints'
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not isinstance(checkpoint_path, str) or not checkpoint_path:
            raise GraphError(f"FileSystemCheckpointStorage needs a directory, not {checkpoint_path!r}.")
        threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise GraphError(
                f"The file state threshold is between -1 and {self.MAX_FILE_STATE_THRESHOLD} bytes, not {threshold}."
            )
        if file_state_size_threshold is not None or write_buffer_size >= 0:
            _LOG.warning(
                "file_state_size_threshold and write_buffer_size have no effect in Rekindle: small state is kept in "
                "the metadata, other state is written in large blocks."
            )
        self._checkpoint_path = checkpoint_path.rstrip("/") or checkpoint_path
        self._threshold = max(0, threshold)
        self._write_buffer_size = write_buffer_size if write_buffer_size >= 0 else 4096
        self._savepoint_path: str | None = None

    def get_checkpoint_path(self) -> str:
        """Return the directory of the checkpoints."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Return the default directory of savepoints, or None."""
        return self._savepoint_path

    def get_min_file_size_threshold(self) -> int:
        """Return the size in bytes below which Flink stores state in the metadata. It has no effect here."""
        return self._threshold

    def __str__(self) -> str:
        """Flink's text of the storage."""
        return (
            f"FileSystemCheckpointStorage (checkpoints: '{self._checkpoint_path}', savepoints: "
            f"'{self._savepoint_path or 'null'}', fileStateThreshold: {self._threshold})"
        )

    def get_write_buffer_size(self) -> int:
        """Return the size of the write buffer in bytes. It has no effect here."""
        return max(self._write_buffer_size, self._threshold)


class CustomCheckpointStorage(CheckpointStorage):
    """A Java checkpoint storage in PyFlink. Rekindle cannot load Java classes, so creating one fails.

    >>> CustomCheckpointStorage(None)
    Traceback (most recent call last):
    rekindle.errors.GraphError: Java checkpoint storages cannot be used: take FileSystemCheckpointStorage.
    """

    def __init__(self, j_custom_checkpoint_storage: object) -> None:
        raise GraphError("Java checkpoint storages cannot be used: take FileSystemCheckpointStorage.")
