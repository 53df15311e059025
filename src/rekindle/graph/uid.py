"""Operator ids that stay the same from one version of a program to the next.

The id of an operator with a `uid` is the hash of the uid. The id of another is the hash of its position: its kind, the
ids of its inputs, and the number of operators without a uid before it at the same position. Names, parallelism and
partitioning do not matter, nor do other branches, nor operators with a uid at the same position.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from rekindle.datastream.transformations import Transformation
from rekindle.errors import GraphError

_HEX_DIGITS = 32


def uid_hash(*parts: str) -> str:
    """Hash these texts to 32 hexadecimal digits.

    >>> uid_hash("count") == uid_hash("count"), len(uid_hash("count")), uid_hash("a", "b") == uid_hash("ab")
    (True, 32, False)
    """
    digest = hashlib.blake2b(digest_size=_HEX_DIGITS // 2)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def operator_id(uid: str) -> str:
    """The id of an operator with this uid, by which checkpoints know it.

    >>> operator_id("count") == operator_id("count"), len(operator_id("count"))
    (True, 32)
    """
    return uid_hash("uid", uid)


def assign_uids(transformations: Sequence[Transformation], auto_generate: bool = True) -> Mapping[int, str]:
    """The id of each operator by its number; operators must come after their inputs."""
    ids: dict[int, str] = {}
    holders: dict[str, Transformation] = {}
    positions: Counter[tuple[str, ...]] = Counter()
    for transformation in transformations:
        uid = _explicit(transformation)
        if uid is None:
            if not auto_generate and not transformation.implied:
                raise GraphError(
                    f"Operator '{transformation.name}' has no uid, and auto-generated ones are disabled: call uid()."
                )
            position = _position(transformation, ids)
            uid = uid_hash("place", *position, str(positions[position]))
            positions[position] += 1
        if uid in holders:
            raise GraphError(_collision(transformation, holders[uid]))
        holders[uid] = transformation
        ids[transformation.number] = uid
    return ids


def _explicit(transformation: Transformation) -> str | None:
    if transformation.uid_hash is not None:
        return transformation.uid_hash
    return None if transformation.uid is None else operator_id(transformation.uid)


def _position(transformation: Transformation, ids: Mapping[int, str]) -> tuple[str, ...]:
    inputs = [
        f"{index}:{ids[upstream.transformation.number]}:{upstream.tag or ''}"
        for index, streams in enumerate(transformation.inputs)
        for upstream in streams
    ]
    return (transformation.kind.value, *inputs)


def _collision(later: Transformation, earlier: Transformation) -> str:
    if later.uid is not None and later.uid == earlier.uid:
        return f"uid '{later.uid}' is given to both '{earlier.name}' and '{later.name}': uids must be unique."
    return f"'{earlier.name}' and '{later.name}' have the same operator id: give each a uid of its own."
