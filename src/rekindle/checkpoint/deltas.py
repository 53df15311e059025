"""What a checkpoint keeps of the one it stands on (I12). Pure; `rewrites` says which key groups it writes anew."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rekindle.checkpoint.manifest import KeyedPart, PartKind


def by_key_group(parts: Iterable[KeyedPart]) -> dict[int, list[KeyedPart]]:
    """The parts of each key group, oldest first; key groups in order."""
    groups: dict[int, list[KeyedPart]] = {}
    for part in sorted(parts, key=lambda part: (part.key_group, part.order)):
        groups.setdefault(part.key_group, []).append(part)
    return groups


def carried_over(base: Iterable[KeyedPart], new: Iterable[KeyedPart]) -> list[KeyedPart]:
    """The parts of a checkpoint: those of the one it stands on, with what is new on top.

    A full part replaces everything before it. A delta on a key group that had nothing is all there is of it.

    >>> base = [KeyedPart(0, PartKind.FULL, 1, b"a"), KeyedPart(1, PartKind.FULL, 1, b"b")]
    >>> new = [KeyedPart(0, PartKind.DELTA, 2, b"c"), KeyedPart(1, PartKind.FULL, 2, b"d")]
    >>> [(part.key_group, part.blob) for part in carried_over(base, new)]
    [(0, b'a'), (0, b'c'), (1, b'd')]
    """
    groups = by_key_group(base)
    for group, parts in by_key_group(new).items():
        for part in parts:
            if part.kind is PartKind.FULL:
                groups[group] = [part]
            elif group not in groups:
                groups[group] = [msgspec.structs.replace(part, kind=PartKind.FULL)]
            else:
                assert part.order > groups[group][-1].order, f"key group {group}: a delta below its base"
                groups[group].append(part)
    return [part for group in sorted(groups) for part in groups[group]]
