"""Sinks after a restore: they commit again, writers go on from their state, and unclaimed committables are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from rekindle.datastream.connectors import TypedSerializer, WriterInitContext
from rekindle.errors import GraphError, IncompatibleStateError, SerializationError
from rekindle.runtime.operators.output import OperatorFailure
from tests.unit.runtime.operators.sink_samples import Sinking, Subtask, Writer, later

# -- after a restore ---------------------------------------------------------------------------------------------------


def test_a_restore_commits_again_before_the_writer_exists(directory: str) -> None:
    """I18: the restart counts as a try."""
    first = Sinking(answers=[later])
    task = Subtask(directory, first).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    task.write("b")
    state = task.checkpoint(2)
    again = Sinking(answers=[later])
    restored = Subtask(directory, again, store=task.store).begin(2, state)
    assert again.log == ["commit", "commit", "create_writer"]
    assert again.requests == [(("a",), 2), (("b",), 1), (("a",), 3)]
    assert again.committed == [("b",), ("a",)]
    assert restored.checkpoint(3).committables == []


def test_a_restore_that_cannot_commit_fails_before_any_record(directory: str) -> None:
    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    state = task.checkpoint(1)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, Sinking(answers=[later] * 10), store=task.store).begin(1, state)
    assert "could not commit 1 of its committables in 3 tries" in str(failure.value.__cause__)


def test_a_restore_from_the_final_checkpoint_makes_no_writer(directory: str) -> None:
    """I9: the restored job only commits."""
    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    task.operator.finish()
    state = task.checkpoint(1)
    sink = Sinking()
    restored = Subtask(directory, sink, store=task.store).begin(1, state, ended=True)
    restored.operator.process_watermark(2**63 - 1)
    restored.checkpoint(2)
    restored.operator.notify_complete(2)
    restored.operator.finish()
    restored.operator.close()
    assert sink.log == ["commit", "close committer"]
    assert sink.committed == [("a",)]


def test_staging_is_swept_once_by_the_first_subtask_when_a_checkpoint_is_complete(directory: str) -> None:
    """I18: by then every subtask has committed what the restored checkpoint held."""
    first, second = Sinking(), Sinking()
    tasks = [Subtask(directory, first).begin(), Subtask(directory, second, subtask=1).begin()]
    for checkpoint_id in (1, 2):
        for task in tasks:
            task.checkpoint(checkpoint_id)
        assert first.sweeps == checkpoint_id - 1
        for task in tasks:
            task.operator.notify_complete(checkpoint_id)
    assert (first.sweeps, second.sweeps) == (1, 0)


# -- state of writers, and serializers ---------------------------------------------------------------------------------


@dataclass
class Offset:
    file: str
    length: int


class Resuming(Sinking):
    """Its writer has state of a declared type, and its committables are dataclasses too."""

    restored: Sequence[Any] = ()

    def create_writer(self, context: WriterInitContext) -> Writer:
        return ResumingWriter(self)

    def restore_writer(self, context: WriterInitContext, recovered_state: list[Offset]) -> Writer:
        self.restored = recovered_state
        return ResumingWriter(self)

    def get_writer_state_serializer(self) -> TypedSerializer:
        return TypedSerializer(Offset)

    def get_committable_serializer(self) -> TypedSerializer:
        return TypedSerializer(Offset)


class ResumingWriter(Writer):
    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return [Offset("open", checkpoint_id), Offset("other", 0)]


def test_writers_go_on_from_their_state_and_serializers_make_the_bytes(directory: str) -> None:
    task = Subtask(directory, Resuming(hand_over=lambda records: Offset(records[0], len(records)))).begin()
    task.write("a", "b")
    state = task.checkpoint(1)
    sink = Resuming()
    Subtask(directory, sink, store=task.store).begin(1, state)
    assert sink.restored == [Offset("open", 1), Offset("other", 0)]
    assert sink.committed == [Offset("a", 2)]


def test_state_without_restore_writer_is_refused(directory: str) -> None:
    task = Subtask(directory, Resuming()).begin()
    state = task.checkpoint(1)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, Sinking(), store=task.store).begin(1, state)
    assert isinstance(failure.value.__cause__, GraphError)
    assert "has no restore_writer(context, recovered_state)" in str(failure.value.__cause__)


def test_a_committable_that_is_no_plain_data_is_refused_never_pickled(directory: str) -> None:
    """I20: committables are never pickled."""
    task = Subtask(directory, Sinking(hand_over=lambda records: Offset("a", 1))).begin()
    task.write("a")
    with pytest.raises(OperatorFailure) as failure:
        task.checkpoint(1)
    assert isinstance(failure.value.__cause__, SerializationError)
    message = str(failure.value.__cause__)
    assert message.startswith("A committable of Sink: Writer (1/2) has no place in a checkpoint: ")
    assert message.endswith("Or give the sink a get_committable_serializer().")


@pytest.mark.parametrize("allowed", [False, True])
def test_committables_that_nobody_would_commit_are_refused_unless_that_is_allowed(
    directory: str, allowed: bool
) -> None:
    class Plain:
        def create_writer(self, context: WriterInitContext) -> Any:
            return SimpleNamespace(write=lambda element, context: None, flush=lambda end_of_input: None)

    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    state = task.checkpoint(1)
    other = Subtask(directory, Plain(), store=task.store)
    other.context.settings = replace(other.context.settings, allow_non_restored_state=allowed)
    if allowed:
        assert other.begin(1, state).checkpoint(2).committables == []
        return
    with pytest.raises(OperatorFailure) as failure:
        other.begin(1, state)
    assert isinstance(failure.value.__cause__, IncompatibleStateError)
    assert "holds 1 committables for Sink: Writer (1/2), which commits nothing" in str(failure.value.__cause__)


def test_committables_without_a_committer_are_refused(directory: str) -> None:
    class NoCommitter:
        def create_writer(self, context: WriterInitContext) -> Writer:
            return Writer(Sinking())

    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, NoCommitter()).begin()
    assert "has prepare_commit(), but its sink has no create_committer(context)" in str(failure.value.__cause__)
