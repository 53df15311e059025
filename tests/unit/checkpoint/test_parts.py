"""I12: a checkpoint is a base and deltas per key group."""

from __future__ import annotations

import contextlib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rekindle.checkpoint.manifest import KeyedPart, PartKind
from rekindle.checkpoint.parts import by_key_group, carried_over, write_subtask
from rekindle.checkpoint.statefile import InlineWriter
from rekindle.errors import CheckpointError
from tests.unit.checkpoint.samples import captured_groups

FULL, DELTA = PartKind.FULL, PartKind.DELTA


def folded(parts: list[KeyedPart]) -> dict[int, bytes]:
    """The content that parts add up to, when a delta appends."""
    content: dict[int, bytes] = {}
    for part in parts:
        assert isinstance(part.blob, bytes)
        content[part.key_group] = part.blob if part.kind is FULL else content[part.key_group] + part.blob
    return content


@given(
    st.lists(
        st.dictionaries(st.integers(0, 3), st.tuples(st.booleans(), st.binary(min_size=1, max_size=2)), max_size=4)
    )
)
def test_carried_parts_always_add_up(checkpoints: list[dict[int, tuple[bool, bytes]]]) -> None:
    expected: dict[int, bytes] = {}
    parts: list[KeyedPart] = []
    for order, changes in enumerate(checkpoints, start=1):
        new = []
        for group, (full, data) in changes.items():
            whole = expected.get(group, b"") + data
            expected[group] = whole
            new.append(KeyedPart(group, FULL if full else DELTA, order, whole if full else data))
        parts = carried_over(parts, new)
        assert folded(parts) == expected
        for own in by_key_group(parts).values():
            assert [part.kind for part in own] == [FULL] + [DELTA] * (len(own) - 1)


def test_a_delta_that_is_older_than_its_base_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="key group 0: a delta below its base"):
        carried_over([KeyedPart(0, FULL, 5, b"")], [KeyedPart(0, DELTA, 5, b"")])


@pytest.mark.parametrize("max_bytes", [100, 1])
def test_captured_parts_are_freed_once_they_are_written_or_refused(max_bytes: int) -> None:
    captured = captured_groups(0, 1, iter([(0, b"abc"), (1, b"def")]))
    with contextlib.suppress(CheckpointError):
        write_subtask(InlineWriter("'count' (1/1)", max_bytes), captured)
    assert not captured._parts
    with pytest.raises(AssertionError, match="cancelled, or written before"):
        write_subtask(InlineWriter("'count' (1/1)", max_bytes), captured)
