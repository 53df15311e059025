"""Compares what was written with kills and without."""

from __future__ import annotations

from benchmarks.connector_chaos.outputs import Written


def difference(disturbed: Written, undisturbed: Written) -> str | None:
    """The first difference between two outputs, as a sentence; None if they are equal.

    >>> difference({1: [(1, 5)]}, {1: [(1, 5), (2, 9)]})
    'Key 1: 1 entries with kills, 2 without; the first difference is at place 1.'
    """
    for key in sorted(disturbed.keys() | undisturbed.keys()):
        one, other = disturbed.get(key, []), undisturbed.get(key, [])
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            place = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
            return (
                f"Key {key}: {len(one)} entries with kills, {len(other)} without; "
                f"the first difference is at place {place}."
            )
    return None
