"""A view of a job as JSON, and back: for the history. It is never pickle."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from rekindle.errors import CheckpointError
from rekindle.monitor.job_view import JobView

#: The version of the format; any other is refused.
FORMAT = 1


class _Document(msgspec.Struct, frozen=True):
    format: int
    job: JobView


def encode_view(view: JobView) -> bytes:
    """A view as JSON."""
    return msgspec.json.encode(_without_nan(msgspec.to_builtins(_Document(FORMAT, view))))


def decode_view(data: bytes, where: str) -> JobView:
    """The view that `encode_view` wrote. Raises CheckpointError if it is damaged or of another format."""
    try:
        document = msgspec.json.decode(data, type=_Document, strict=False)
    except msgspec.MsgspecError as error:
        raise CheckpointError(
            f"{where} is no history of a job that this version of Rekindle can read: {error}."
        ) from None
    if document.format != FORMAT:
        raise CheckpointError(
            f"{where} is a history of a job in format {document.format}; this version of Rekindle reads {FORMAT}."
        )
    return document.job


def _without_nan(value: Any) -> Any:
    """The same value with NaN as text: JSON has none, and the decoder reads it back."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
