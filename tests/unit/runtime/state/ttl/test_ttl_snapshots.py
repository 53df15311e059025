"""Time to live and snapshots: restores, deltas, full snapshots, and a time to live that comes or goes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rekindle.common import Types
from rekindle.datastream.state import StateTtlConfig
from rekindle.errors import IncompatibleStateError, SerializationError
from rekindle.runtime.state.keyed_state_format import decode_part
from rekindle.runtime.state.ttl.expiry import TimedCodec
from rekindle.serde import value_codec_for
from rekindle.serde.type_schema import decode_state_schema
from rekindle.testing import ManualClock
from tests.unit.runtime.state.ttl.ttl_job import (
    KINDS,
    START_MS,
    TTL_MS,
    Job,
    expired_too,
    in_full_snapshot,
    incrementally,
    on_read,
    ttl,
    with_expired_keys,
)

# -- snapshots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_expiry_holds_over_a_restore_and_counts_the_time_in_between(kind: str) -> None:
    job = Job(kind, ttl()).at("old").write(1)
    job.after(4).at("young").write(2)
    saved = job.full()
    restored = Job(kind, ttl(), ManualClock(START_MS + 10), saved)
    assert [restored.at(key).read() for key in ("old", "young")] == [None, 2]
    assert restored.after(4).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_renewal_by_reading_is_in_the_delta(kind: str) -> None:
    job = Job(kind, ttl(on_read)).at("k").write(7)
    parts = job.checkpoint(1, None)
    job.after(8).read()
    parts += job.checkpoint(2, 1)
    assert Job(kind, ttl(on_read), ManualClock(START_MS + 17), parts).at("k").read() == 7
    assert Job(kind, ttl(on_read), ManualClock(START_MS + 18), parts).at("k").read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_reading_again_in_the_same_millisecond_changes_nothing(kind: str) -> None:
    job = Job(kind, ttl(on_read)).at("k").write(7)
    job.checkpoint(1, None)
    assert job.read() == 7
    assert job.delta(2, 1) == []
    assert Job(kind, ttl(), job.clock).at("k").write(7).after(1).read() == 7


@pytest.mark.parametrize("kind", KINDS)
def test_reading_does_not_change_state_that_only_writing_renews(kind: str) -> None:
    job = Job(kind, ttl(background=True)).at("k").write(7)
    job.checkpoint(1, None)
    assert job.after(5).read() == 7
    assert job.delta(2, 1) == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_cleanup_removed_is_removed_by_the_delta(kind: str) -> None:
    job = with_expired_keys(kind, ttl(incrementally(100), expired_too), 5)
    parts = job.checkpoint(1, None)
    job.read()
    assert job.held() == set()
    parts += job.checkpoint(2, 1)
    restored = Job(kind, ttl(expired_too), job.clock, parts)
    assert restored.held() == set()
    assert restored.at(1).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_full_snapshots_leave_expired_entries_out_if_asked_to(kind: str) -> None:
    for settings, kept in (((in_full_snapshot,), {"young"}), ((), {"old", "young"})):
        job = Job(kind, ttl(*settings)).at("old").write(1)
        job.after(5).at("young").write(2)
        saved = job.after(5).full()
        assert Job(kind, ttl(), job.clock, saved).held() == kept


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_full_snapshot_left_out_does_not_come_back(kind: str) -> None:
    """Neither from the deltas that follow it, nor from the base before it when the snapshot is aborted (I12)."""
    config = ttl(in_full_snapshot, expired_too)
    for completed in (True, False):
        job = Job(kind, config).at("k").write(1)
        parts = job.checkpoint(1, None)
        job.after(TTL_MS)
        rewritten = job.full()
        job.delta(2, 1)
        job.at("another").write(2)
        if completed:
            parts = rewritten + job.delta(3, 2)
        else:
            job.backend.snapshot_aborted(2)
            parts += job.delta(3, 1)
        restored = Job(kind, config, job.clock, parts)
        assert restored.held() == {"another"}
        assert [restored.at(key).read() for key in ("k", "another")] == [None, 2]


def test_a_list_goes_on_after_a_full_snapshot_that_left_elements_out() -> None:
    config = ttl(in_full_snapshot, expired_too)
    job = Job("list", config).at("k")
    job.state.add(1)
    job.after(5).state.add(2)
    parts = job.after(5).full()
    job.checkpoint(1, None)
    job.state.add(3)
    parts += job.checkpoint(2, 1)
    assert Job("list", config, job.clock, parts).at("k").state.get() == [2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_deltas_stand_on_a_first_checkpoint_that_left_entries_out(kind: str) -> None:
    config = ttl(in_full_snapshot, expired_too)
    job = Job(kind, config).at("gone").write(1)
    job.after(5).at("k").write(2)
    job.after(5)
    parts = [(group.key_group, group.encode()) for group in job.backend.snapshot_whole(1)]
    job.backend.snapshot_completed(1)
    if kind == "list":
        job.state.add(3)
    parts += job.checkpoint(2, 1)
    restored = Job(kind, config, job.clock, parts)
    assert restored.held() == {"k"}
    assert restored.at("k").read() == 2
    job.checkpoint(3, 2)
    assert job.backend.number_of_keys() == 1


def test_mutable_values_are_written_as_they_were_at_the_cut() -> None:
    """I13 holds for values in pairs."""
    job = Job("aggregating", ttl()).at("k").write(1)
    captured = job.backend.snapshot_delta(1, None)
    job.write(5)
    assert Job("aggregating", ttl(), job.clock, list(captured.encode())).at("k").read() == 1
    assert job.read() == 6


# -- a time to live that comes or goes --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_gets_a_time_to_live_begins_it_at_the_restore(kind: str) -> None:
    saved = Job(kind, None).at("k").write(7).full()
    restored = Job(kind, ttl(), ManualClock(START_MS + 1000), saved)
    assert restored.at("k").read() == 7
    assert restored.after(TTL_MS).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_that_began_at_the_restore_is_in_the_next_delta(kind: str) -> None:
    parts = Job(kind, None).at("k").write(7).full()
    migrated = Job(kind, ttl(), ManualClock(START_MS + 1000), parts)
    parts += migrated.checkpoint(1, None)
    again = Job(kind, ttl(), ManualClock(START_MS + 1000 + TTL_MS), parts)
    assert again.at("k").read() is None
    assert migrated.checkpoint(2, 1) == []


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_loses_its_time_to_live_keeps_its_values(kind: str) -> None:
    saved = Job(kind, ttl()).at("k").write(7).full()
    restored = Job(kind, None, ManualClock(START_MS + 1000), saved)
    assert restored.at("k").read() == 7
    again = Job(kind, ttl(), ManualClock(START_MS + 2000), restored.full())
    assert again.at("k").read() == 7


def test_elements_and_entries_that_are_none_migrate_too() -> None:
    cases: list[tuple[str, Any, Any]] = [
        ("list", lambda state: state.add_all([1, None]), lambda state: state.get()),
        ("map", lambda state: state.put_all({"a": None, None: 1}), lambda state: state.items()),
    ]
    for kind, write, read in cases:
        plain = Job(kind, None).at("k")
        write(plain.state)
        timed = Job(kind, ttl(), plain.clock, plain.full()).at("k")
        assert read(timed.state) == read(plain.state)
        assert read(Job(kind, None, plain.clock, timed.full()).at("k").state) == read(plain.state)


def test_a_delta_with_timestamps_stands_on_a_base_without() -> None:
    plain = Job("list", None).at("k")
    plain.state.add_all([1, 2])
    plain.at("gone").state.add(1)
    parts = plain.checkpoint(1, None)
    plain.state.clear()
    plain.at("k").state.add(3)
    parts += plain.checkpoint(2, 1)
    timed = Job("list", ttl(), ManualClock(START_MS), parts).at("k")
    timed.after(5).state.add(4)
    parts += timed.checkpoint(3, 2)
    assert Job("list", ttl(), ManualClock(START_MS + 10), parts).at("k").state.get() == [4]
    assert Job("list", None, ManualClock(START_MS + 10), parts).at("k").state.get() == [1, 2, 3, 4]


def test_schemas_tell_state_with_timestamps_apart() -> None:
    def schemas(config: StateTtlConfig | None) -> set[tuple[bool, str]]:
        parts = Job("value", config).at("k").write(7).full()
        found = [part for group, data in parts for part in decode_part(group, data)]
        return {(decode_state_schema(part.schema).timed, part.type_name) for part in found}

    ((timed, plain_type),) = schemas(None)
    assert not timed
    assert schemas(ttl()) == {(True, f"{plain_type} with time to live")}


@pytest.mark.parametrize("operations", [[7], [[START_MS], []], [["soon"], [7]]])
def test_damaged_timestamps_are_refused_by_name(operations: Any) -> None:
    ((group, data),) = [part for part in Job("value", ttl()).at("k").write(7).full() if decode_part(*part)]
    [[*head, good, schema]] = msgspec.msgpack.decode(data)
    assert good == [[START_MS], [7]]
    damaged = msgspec.msgpack.encode([[*head, operations, schema]])
    with pytest.raises(IncompatibleStateError, match=r"'state', saved as value state of .* with time to live, cannot"):
        Job("value", ttl(), parts=[(group, damaged)])


def test_a_single_value_with_its_timestamp_is_read_back_or_refused() -> None:
    codec = TimedCodec(value_codec_for(Types.LONG()), lambda: 0)
    for timed in ((START_MS, 7), (START_MS, None), (-1, 0)):
        assert codec.decode(codec.encode(timed)) == timed
    with pytest.raises(SerializationError, match="5 bytes are too few"):
        codec.decode(b"short")
