"""All keyed state of a backend as bytes, without a cut: for tests that compare or restore it."""

from __future__ import annotations

from typing import Any

from rekindle.runtime.state.keyed_state_format import decode_part
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from tests.support.encoded_groups import encoded


def whole_parts(backend: Any) -> list[tuple[int, bytes]]:
    """(key group, part) of every key group that has state, with expired entries removed; changes stay tracked."""
    if isinstance(backend, RocksKeyedBackend):
        return [(group, part) for group, part in encoded(backend.snapshot_aside(0)) if decode_part(group, part)]
    capture = backend._capture
    capture.clean(backend.key_groups)
    captured = [capture.group(group, None) for group in backend.key_groups]
    return [(group.key_group, group.encode()) for group in captured if group]
