"""Small files beside the checkpoints that say what no checkpoint does: msgpack with a version, never pickle (I20)."""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

import msgspec

from rekindle.checkpoint.store.port import Store
from rekindle.errors import CorruptCheckpointError

FORMAT_VERSION: Final = 1


class Note(Protocol):
    """What every note has."""

    @property
    def version(self) -> int:
        """Of its format."""


N = TypeVar("N", bound=Note)

encode = msgspec.msgpack.Encoder().encode


def read_note(store: Store, path: str, kind: type[N], advice: str) -> N:
    """A note of this kind; CorruptCheckpointError, with `advice`, when it is damaged or of a newer format."""
    try:
        note = msgspec.msgpack.decode(store.read(path), type=kind)
    except msgspec.DecodeError as error:
        raise CorruptCheckpointError(f"The note {path} in {store.url} is damaged: {advice}.") from error
    if note.version > FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"The note {path} in {store.url} has format {note.version}, this version of Rekindle knows "
            f"{FORMAT_VERSION}: use the version that wrote it or a newer one, or {advice}."
        )
    return note
