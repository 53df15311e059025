"""Splits as bytes, without pickle (I20): as the driver sends them to slots."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.serde import tagged_dumps, tagged_loads


def encode_splits(splits: Sequence[SourceSplit]) -> bytes:
    """Return splits as bytes.

    >>> decode_splits(encode_splits([SourceSplit("orders-0", (17, None))]))
    [SourceSplit(split_id='orders-0', position=(17, None))]
    """
    return tagged_dumps([(split.split_id, split.position) for split in splits])


def decode_splits(data: bytes) -> list[SourceSplit]:
    """Return splits from bytes."""
    return [SourceSplit(split_id, position) for split_id, position in tagged_loads(data)]
