"""Where checkpoints are stored, as data."""

from __future__ import annotations

import logging
from typing import ClassVar

from rekindle import config
from rekindle.errors import GraphError

_LOG = logging.getLogger("rekindle")


class CheckpointStorage:
    """Base of the places for checkpoints."""


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the driver's memory: for small state and tests. A subtask's larger state fails the checkpoint.

    With a path, state and metadata are files below it, as with `FileSystemCheckpointStorage`, and of any size.

    >>> JobManagerCheckpointStorage(max_state_size=100).get_max_state_size()
    100
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = config.CHECKPOINT_MAX_MEMORY.default

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        self._savepoint_path: str | None = None

    def get_checkpoint_path(self) -> str | None:
        """The directory of the metadata, if set."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """The largest state of one subtask, in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """The default directory of savepoints, if set."""
        return self._savepoint_path


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory of a file system or object store.

    The threshold and the size of the write buffer have no effect, and a warning says so when they are given.

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
        self._checkpoint_path = checkpoint_path
        self._threshold = max(0, threshold)
        self._write_buffer_size = write_buffer_size if write_buffer_size >= 0 else 4096
        self._savepoint_path: str | None = None

    def get_checkpoint_path(self) -> str:
        """The directory."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """The default directory of savepoints, if set."""
        return self._savepoint_path

    def get_min_file_size_threshold(self) -> int:
        """State below this many bytes is stored in the metadata."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """The size of the write buffer in bytes."""
        return max(self._write_buffer_size, self._threshold)


class CustomCheckpointStorage(CheckpointStorage):
    """In PyFlink a Java checkpoint storage; there is none to load here, so making one fails.

    >>> CustomCheckpointStorage(None)
    Traceback (most recent call last):
    rekindle.errors.GraphError: Java checkpoint storages cannot be used: take FileSystemCheckpointStorage.
    """

    def __init__(self, j_custom_checkpoint_storage: object) -> None:
        raise GraphError("Java checkpoint storages cannot be used: take FileSystemCheckpointStorage.")
