"""The exactly-once Kafka sink when jobs die: each rule of its recovery, and what happens without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from rekindle.datastream.connectors.kafka.token_topic import TokenTopic, token_topic_name
from rekindle.datastream.connectors.kafka.transaction_committer import TransactionCommitter
from rekindle.datastream.connectors.kafka.transaction_number import PreparedTransaction
from rekindle.datastream.connectors.kafka.transaction_pool import TransactionPool
from rekindle.datastream.connectors.kafka.transactional_producer import TransactionalProducer
from rekindle.datastream.connectors.kafka.writers import TransactionWriter
from rekindle.datastream.connectors.sink_api import WriterInitContext
from rekindle.errors import ConnectorError
from rekindle.runtime.commits import Request, _Pending
from tests.integration.kafka.kafka_reading import messages, numbers, values
from tests.integration.kafka.sink_jobs import NUMBERS, builder, job_of
from tools.servers.kafka_access import QUIET, KafkaAccess


class Died(BaseException):
    """The process dies here."""


@pytest.fixture
def name(topic: Callable[..., str]) -> str:
    return topic(partitions=2)


@pytest.fixture
def sink(kafka: KafkaAccess, name: str) -> Callable[..., Any]:
    def make(**properties: Any) -> Any:
        return builder(kafka.bootstrap_servers, name, **properties).build()

    return make


def finished_but_not_committed(sink: Callable[..., Any], parallelism: int = 1) -> tuple[Any, Any]:
    """A job whose final checkpoint is published, but of which it has not heard."""
    job = job_of(sink(), parallelism)
    while not job.finished:
        job.epoch()
    final = job.checkpoint(complete=False)
    assert final.manifest is not None
    return job, final


# -- where a job may die -----------------------------------------------------------------------------------------------


def _before(self: TransactionalProducer, token: Any) -> None:
    raise Died


def _inside(self: TransactionalProducer, token: Any) -> None:
    self.send(token)
    self.flush()
    raise Died


def _after(self: TransactionalProducer, token: Any) -> None:
    COMMIT(self, token)
    raise Died


COMMIT = TransactionalProducer.commit


@pytest.mark.parametrize(("place", "parallelism"), [(_before, 1), (_inside, 2), (_inside, 3), (_after, 1)])
def test_a_job_that_dies_in_its_commit_goes_on_without_loss_or_doubles(
    kafka: KafkaAccess,
    name: str,
    sink: Callable[..., Any],
    place: Any,
    parallelism: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = job_of(sink())
    job.checkpoint()
    checkpoint = job.checkpoint(complete=False)
    with monkeypatch.context() as patch:
        patch.setattr(TransactionalProducer, "commit", place)
        with pytest.raises(Died):
            job.complete(checkpoint)
    job.kill()

    job_of(sink(), parallelism, checkpoint).run()

    assert values(kafka, name) == NUMBERS


def test_a_job_that_dies_in_its_recovery_recovers_again(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, final = finished_but_not_committed(sink)
    job.kill()
    for place in (_before, _inside, _after):
        with monkeypatch.context() as patch:
            patch.setattr(TransactionalProducer, "commit", place)
            with pytest.raises(Died):
                job_of(sink(), 1, final)

    job_of(sink(), 1, final).run()

    assert values(kafka, name) == NUMBERS


def test_transactions_of_a_dead_attempt_do_not_hold_up_readers(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any]
) -> None:
    """With fewer subtasks too, and for ids that were opened after the checkpoint."""
    job = job_of(sink(), parallelism=3, max_records=1)
    checkpoint = job.checkpoint()
    job.abort(job.checkpoint(complete=False))
    job.epoch()
    job.kill()

    restored = job_of(sink(), 1, checkpoint)

    end_of_stable = len(messages(kafka, name))
    outside = Producer(kafka.client() | QUIET)
    for partition in range(2):
        outside.produce(name, b"99", partition=partition)
    outside.flush()
    assert len(messages(kafka, name)) == end_of_stable + 2, "an open transaction hides what comes after it"
    restored.run()
    assert values(kafka, name) == [*NUMBERS, 99, 99]


def test_transactions_of_a_larger_run_without_a_checkpoint_do_not_hold_up_readers(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any]
) -> None:
    """No checkpoint names the subtasks 2 and 3: the run that had them died before its first one."""
    first = job_of(sink(), parallelism=2, spread=True)
    checkpoint = first.checkpoint()
    first.kill()
    larger = job_of(sink(), 4, checkpoint, max_records=4, spread=True)
    larger.checkpoint(complete=False)  # each of its subtasks has sent messages in a transaction
    larger.kill()

    job_of(sink(), 2, checkpoint, spread=True).run()

    assert values(kafka, name) == NUMBERS


def test_a_savepoint_and_aborted_checkpoints_are_committed_in_order_by_the_next_one(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    name = topic()
    made = builder(kafka.bootstrap_servers, name).set_producer_pool_size(5)
    job = job_of(made.build(), 1)
    job.checkpoint(savepoint=True)
    job.abort(job.checkpoint(complete=False))
    job.abort(job.checkpoint(complete=False))
    assert messages(kafka, name) == []
    job.checkpoint()
    assert numbers(messages(kafka, name)) == NUMBERS[:12]
    job.run()
    assert numbers(messages(kafka, name)) == NUMBERS


def test_as_many_checkpoints_may_fail_as_the_job_tolerates(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    """Their records are in the next one that completes, in order, and none is dropped."""
    name = topic()
    made = builder(kafka.bootstrap_servers, name).set_producer_pool_size(2)
    job = job_of(made.build(), 1, tolerable=8, max_records=2)
    for _ in range(8):
        job.abort(job.checkpoint(complete=False))
    assert messages(kafka, name) == []
    job.checkpoint()
    assert numbers(messages(kafka, name)) == NUMBERS[:18]
    job.run()
    assert numbers(messages(kafka, name)) == NUMBERS


def test_too_many_waiting_transactions_fail_in_a_sentence(sink: Callable[..., Any]) -> None:
    job = job_of(sink(), 1, max_records=1)
    for _ in range(3):
        job.abort(job.checkpoint(complete=False))
    with pytest.raises(Exception) as caught:
        job.checkpoint()
    cause = caught.value.__cause__
    assert cause is not None
    assert "All 3 transactions" in str(cause.__cause__ or cause)
    job.close()


def test_a_lost_token_topic_is_told_because_without_tokens_records_could_be_doubled(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any]
) -> None:
    job, final = finished_but_not_committed(sink)
    job.complete(final)
    job.kill()
    admin = AdminClient(kafka.client() | QUIET)
    admin.delete_topics([token_topic_name(name)])[token_topic_name(name)].result()

    with pytest.raises(Exception) as caught:
        job_of(sink(), 1, final)

    assert f"The topic '{token_topic_name(name)}'" in str(caught.value.__cause__)
    assert values(kafka, name) == NUMBERS


# -- zombies -----------------------------------------------------------------------------------------------------------


def test_a_zombie_that_wakes_up_after_the_recovery_is_fenced(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any]
) -> None:
    zombie, final = finished_but_not_committed(sink)
    job_of(sink(), 1, final).run()

    with pytest.raises(Exception) as caught:
        zombie.complete(final)

    assert "_FENCED" in str(caught.value.__cause__)
    assert values(kafka, name) == NUMBERS


def test_a_zombie_that_wakes_up_inside_the_recovery_is_fenced(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, final = finished_but_not_committed(sink)
    fence = TransactionPool.fence
    failed: list[Exception] = []

    def fence_then_wake(self: TransactionPool, ids: Any) -> Any:
        producers = fence(self, ids)
        try:
            zombie.complete(final)
        except Exception as error:
            failed.append(error)
        return producers

    monkeypatch.setattr(TransactionPool, "fence", fence_then_wake)
    job_of(sink(), 1, final).run()

    assert len(failed) == 1
    assert values(kafka, name) == NUMBERS


# -- broken on purpose, one rule at a time -----------------------------------------------------------------------------


def test_without_the_token_check_records_are_doubled(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenTopic, "read", lambda self, subtask: {})
    job, final = finished_but_not_committed(sink)
    job.complete(final)
    job.kill()

    job_of(sink(), 1, final).run()

    assert values(kafka, name) == sorted(NUMBERS * 2)


def test_with_the_token_read_before_the_fence_records_are_doubled(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, final = finished_but_not_committed(sink)
    recover, read = TransactionCommitter._recover, TokenTopic.read

    def read_first(self: TransactionCommitter, lost: Any) -> None:
        tokens = read(self._pool.tokens(name), 0)
        zombie.complete(final)
        monkeypatch.setattr(TokenTopic, "read", lambda self, subtask: tokens)
        recover(self, lost)

    monkeypatch.setattr(TransactionCommitter, "_recover", read_first)
    job_of(sink(), 1, final).run()

    assert values(kafka, name) == sorted(NUMBERS * 2)


@pytest.mark.parametrize("to_the_end", [True, False])
def test_tokens_are_read_to_the_high_watermark_because_to_the_last_stable_offset_records_are_doubled(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], to_the_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(sink(), 1)
    other = Producer(kafka.client(transactional_id=f"other-{name}") | QUIET)
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(token_topic_name(name), b"0.0", key=b"other", partition=0)
    other.flush()
    while not job.finished:
        job.epoch()
    final = job.checkpoint()  # its token lies behind the other's open transaction
    job.kill()
    if not to_the_end:
        consumer = TokenTopic._consumer
        monkeypatch.setattr(TokenTopic, "_consumer", lambda self, isolation: consumer(self, "read_committed"))
    read, ends_later = TokenTopic.read, threading.Timer(0.5, other.abort_transaction)

    def read_while_the_other_is_open(self: TokenTopic, subtask: int) -> Any:
        if to_the_end:
            ends_later.start()  # the read waits for it
            return read(self, subtask)
        tokens = read(self, subtask)
        other.abort_transaction()
        return tokens

    monkeypatch.setattr(TokenTopic, "read", read_while_the_other_is_open)
    job_of(sink(), 1, final).run()

    assert values(kafka, name) == (NUMBERS if to_the_end else sorted(NUMBERS * 2))


def test_with_another_transactional_id_at_recovery_the_zombie_commits_too(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, final = finished_but_not_committed(sink)
    read = PreparedTransaction.of

    def renamed(committable: Any) -> PreparedTransaction:
        prepared = read(committable)
        return replace(prepared, number=replace(prepared.number, transactional_id=f"{name}-0-9"))

    with monkeypatch.context() as patch:
        patch.setattr(PreparedTransaction, "of", staticmethod(renamed))
        patch.setattr(TransactionCommitter, "_ids_to_fence", lambda self, lost: [f"{name}-0-9"])
        job_of(sink(), 1, final)
    zombie.complete(final)

    assert values(kafka, name) == sorted(NUMBERS * 2)


def test_with_the_committables_of_a_subtask_on_two_subtasks_one_fences_the_other(
    kafka: KafkaAccess, name: str, sink: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dealing keeps them together (tests/unit/checkpoint/test_rescale.py); here they are dealt in turn."""
    settings = sink()._settings
    first, second = _two_intervals(settings, str(tmp_path))
    one, two = (TransactionCommitter(TransactionPool(settings, subtask, 2)) for subtask in range(2))
    send = TransactionCommitter._send_again

    def meanwhile(self: TransactionCommitter, producer: Any, prepared: Any) -> None:
        monkeypatch.setattr(TransactionCommitter, "_send_again", send)
        two.commit([second])
        send(self, producer, prepared)

    monkeypatch.setattr(TransactionCommitter, "_send_again", meanwhile)
    with pytest.raises(ConnectorError, match="_FENCED"):
        one.commit([first])

    assert values(kafka, name) == [2], "the later interval came before the earlier one"
    TransactionCommitter(TransactionPool(settings, 0, 2)).commit([first, second])
    assert values(kafka, name) == [1, 2]


def _two_intervals(settings: Any, directory: str) -> list[Request]:
    """The restored committables of a subtask that wrote 1, then 2, and died."""
    pool = TransactionPool(settings, 0, 1)
    pool.fence_own()
    writer = TransactionWriter(settings, pool, WriterInitContext(timeline="t", attempt=1, directory=directory))
    requests = []
    for number in (1, 2):
        writer.write(number, _NoTimestamps())  # type: ignore[arg-type]
        writer.flush(False)
        requests += [Request(_Pending(each, b"", retries=1)) for each in writer.prepare_commit()]
    return requests


class _NoTimestamps:
    def timestamp(self) -> None:
        return None


@pytest.mark.parametrize("flushed", [True, False])
def test_what_the_broker_refuses_fails_before_the_checkpoint_because_after_it_no_restart_helps(
    kafka: KafkaAccess, topic: Callable[..., str], flushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not flushed:
        monkeypatch.setattr(TransactionWriter, "flush", lambda self, end_of_input: None)
    small = topic(max_message_bytes=1000)
    made = builder(kafka.bootstrap_servers, small, serialize=lambda number: b"x" * 5000)
    job = job_of(made.build(), 1)
    if flushed:
        with pytest.raises(Exception) as caught:
            job.checkpoint()
        assert "MSG_SIZE_TOO_LARGE" in str(caught.value.__cause__)
        assert small in str(caught.value.__cause__)
        return
    checkpoint = job.checkpoint(complete=False)
    assert checkpoint.manifest is not None
    job.kill()
    for _ in range(2):
        with pytest.raises(Exception, match="Writer"):
            job_of(made.build(), 1, checkpoint)
