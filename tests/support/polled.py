"""What a source's reader returns, in the form that the test relies on."""

from __future__ import annotations

from typing import Any

from rekindle.datastream.connectors.base import Batch, SourceReader


def polled_list(reader: SourceReader[Any], most: int) -> list[Any]:
    """Up to `most` records of a reader that returns them without times and splits; none at its end."""
    polled = reader.poll(most)
    assert not isinstance(polled, Batch)
    return polled or []


def polled_batch(reader: SourceReader[Any], most: int) -> Batch[Any]:
    """Up to `most` records of a reader that has not come to its end, with their times and splits."""
    polled = reader.poll(most)
    assert isinstance(polled, Batch)
    return polled
