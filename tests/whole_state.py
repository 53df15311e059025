"""All keyed state of a backend as bytes, without a cut: for tests that compare or restore it."""

from __future__ import annotations

from rekindle.runtime.state.hashmap import HashMapKeyedBackend


def whole_parts(backend: HashMapKeyedBackend) -> list[tuple[int, bytes]]:
    """(key group, part) of every key group that has state, with expired entries removed; changes stay tracked."""
    capture = backend._capture
    capture.clean(backend.key_groups)
    captured = [capture.group(group, None) for group in backend.key_groups]
    return [(group.key_group, group.encode()) for group in captured if group]
