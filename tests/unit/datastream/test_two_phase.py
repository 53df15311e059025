"""`sink_to` in programs and plans, and the contracts of Flink's `TwoPhaseCommitSinkFunction`."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rekindle.checkpoint.redistribute import operator_share
from rekindle.common import Configuration
from rekindle.datastream import SinkFunction, StreamExecutionEnvironment, TwoPhaseCommitSinkFunction
from rekindle.datastream.connectors import Sink, SinkWriter, WriterInitContext
from rekindle.errors import CommitError, GraphError, SerializationError
from rekindle.graph.build import build_plan
from rekindle.graph.explain import explain
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.plan_json import plan_json
from rekindle.graph.settings import CheckpointPolicy, CommitRetries, JobSettings
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.context import Accumulators, OperatorContext
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot import InitializationContext, SnapshotContext
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment

# -- sink_to -----------------------------------------------------------------------------------------------------------


class Discarding(Sink[Any], SinkWriter[Any]):
    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        return self

    def write(self, element: Any, context: SinkWriter.Context) -> None: ...

    def flush(self, end_of_input: bool) -> None: ...


def plan_of(env: StreamExecutionEnvironment) -> JobPlan:
    plan = build_plan(env._program("test"))
    env.close()
    return plan


def test_a_sink_is_an_operator_of_the_plan_and_is_told_as_a_sink() -> None:
    env = environment()
    env.from_sequence(1, 3).sink_to(Discarding()).name("nowhere").uid("sink-uid")
    plan = plan_of(env)
    node = plan.nodes[-1]
    assert (node.kind, node.name, node.user_uid) == (OperatorKind.SINK, "Sink: nowhere", "sink-uid")
    assert "[1] Sink: nowhere: sink, uid 'sink-uid'\n" in explain(plan)
    assert json.loads(plan_json(plan))["nodes"][-1]["pact"] == "Data Sink"


def test_a_sink_without_a_name_has_flinks_and_a_keyed_stream_has_sinks_too() -> None:
    env = environment()
    env.from_sequence(1, 3).key_by(lambda n: n, key_type=int).sink_to(Discarding())
    plan = plan_of(env)
    assert plan.nodes[-1].name == "Sink: Writer"
    assert not plan.nodes[-1].is_keyed


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (3, "takes a Sink, which has create_writer(context), not 3."),
        (print, "takes a Sink, which has create_writer(context), not 'print'."),
        (Discarding, "takes an instance, not the class 'Discarding': write Discarding()."),
    ],
)
def test_what_is_no_sink_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(GraphError) as error:
        environment().from_collection([1]).sink_to(wrong)
    assert str(error.value).endswith(sentence)


def test_each_kind_of_sink_has_its_method() -> None:
    class Plain(SinkFunction):
        def invoke(self, value: Any, context: SinkFunction.Context) -> None: ...

    stream = environment().from_collection([1])
    with pytest.raises(GraphError, match=r"a SinkFunction belongs in add_sink\(\)"):
        stream.sink_to(Plain())  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"a Sink belongs in sink_to\(\)"):
        stream.add_sink(Discarding())  # type: ignore[arg-type]


def test_methods_that_cannot_be_called_as_they_will_be_are_named() -> None:
    class Wrong:
        def create_writer(self) -> None: ...

    with pytest.raises(GraphError, match=r"Wrong\.create_writer is called with 1 argument, but its signature is \(\)"):
        environment().from_collection([1]).sink_to(Wrong())  # type: ignore[arg-type]


def test_how_often_a_commit_is_retried_is_a_setting() -> None:
    settings = Configuration().set_string("sink.committer.retries", "3")
    settings.set_string("rekindle.sink.committer.retry-delay", "2 s")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.from_sequence(1, 3).sink_to(Discarding())
    plan = plan_of(env)
    assert plan.settings.commits == CommitRetries(3, 2000)


# -- TwoPhaseCommitSinkFunction ----------------------------------------------------------------------------------------


class Transactions(TwoPhaseCommitSinkFunction[Any]):
    """A sink whose transactions are numbers. The log lists the calls for each transaction."""

    def __init__(self, transaction_type: Any = None, log: list[Any] | None = None) -> None:
        super().__init__(transaction_type)
        self.log: list[Any] = [] if log is None else log
        self.next = 0
        self.failing: set[str] = set()

    def _note(self, *what: Any) -> None:
        self.log.append(what)
        if what[0] in self.failing:
            raise OSError(f"{what[0]} failed")

    def begin_transaction(self) -> Any:
        self.next += 1
        self._note("begin", self.next)
        return self.next

    def invoke(self, transaction: Any, value: Any, context: SinkFunction.Context) -> None:  # type: ignore[override]
        self._note("invoke", transaction, value)

    def pre_commit(self, transaction: Any) -> None:
        self._note("pre_commit", transaction)

    def commit(self, transaction: Any) -> None:
        self._note("commit", transaction)

    def abort(self, transaction: Any) -> None:
        self._note("abort", transaction)


@dataclass
class Driven:
    """Drives a function with the operator state of one subtask."""

    function: Transactions
    subtask: int = 0
    checkpointed: bool = True

    def begin(self, state: bytes | None = None, restored_id: int | None = None) -> Driven:
        self.backend = OperatorStateBackend(self.subtask, allow_pickle=False)
        if state is not None:
            self.backend.restore(state)
        self.context = OperatorContext(
            node=None,  # type: ignore[arg-type]
            subtask=self.subtask,
            attempt=0,
            clock=ManualClock(),
            accumulators=Accumulators(),
            metrics=TaskMetricGroup(ManualClock(), ()),
            keyed=None,
            timers=None,
            operator_state=self.backend,
            batch=False,
            settings=replace(
                JobSettings.of(Configuration()), checkpoints=CheckpointPolicy(1000 if self.checkpointed else -1)
            ),
            has_restored_state=state is not None,
        )
        self.function.initialize_state(InitializationContext(self.context, restored_id))
        return self

    def write(self, value: Any) -> None:
        self.function.invoke_current(value, None)  # type: ignore[arg-type]

    def snapshot(self, checkpoint_id: int) -> bytes:
        self.function.snapshot_state(SnapshotContext(CheckpointOrder(checkpoint_id, 0), self.context))
        return self.backend.snapshot()

    def completed(self, checkpoint_id: int) -> None:
        self.function.notify_checkpoint_complete(checkpoint_id)


def test_records_between_two_barriers_are_one_transaction() -> None:
    driven = Driven(Transactions()).begin()
    driven.write("a")
    driven.snapshot(1)
    driven.write("b")
    assert driven.function.current_transaction() == 2
    assert driven.function.pending_transactions() == [(1, 1)]
    driven.completed(1)
    assert driven.function.log == [
        ("begin", 1),
        ("invoke", 1, "a"),
        ("pre_commit", 1),
        ("begin", 2),
        ("invoke", 2, "b"),
        ("commit", 1),
    ]
    assert driven.function.pending_transactions() == []


def test_completion_commits_what_came_before_it_and_nothing_later() -> None:
    """I18: a completed checkpoint also commits the transactions of earlier savepoints and aborted checkpoints."""
    driven = Driven(Transactions()).begin()
    for checkpoint_id in (1, 2, 3, 4):
        driven.snapshot(checkpoint_id)
    driven.function.log.clear()
    driven.completed(3)
    assert driven.function.log == [("commit", 1), ("commit", 2), ("commit", 3)]
    assert driven.function.pending_transactions() == [(4, 4)]


def test_a_commit_that_fails_fails_the_job_after_the_others_were_tried() -> None:
    driven = Driven(Transactions()).begin()
    driven.snapshot(1)
    driven.snapshot(2)
    driven.function.failing.add("commit")
    with pytest.raises(
        CommitError, match=r"^2 of 2 transactions of checkpoint 2 could not be committed.*commit failed"
    ):
        driven.completed(2)


def test_a_restore_commits_what_was_pre_committed_and_aborts_what_was_open() -> None:
    """I18."""
    driven = Driven(Transactions()).begin()
    driven.snapshot(1)
    state = driven.snapshot(2)
    restored = Driven(Transactions()).begin(state, restored_id=2)
    assert restored.function.log == [("commit", 1), ("commit", 2), ("abort", 3), ("begin", 1)]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_a_restore_at_another_parallelism_handles_each_transaction_once(parallelism: int) -> None:
    states = []
    for subtask in range(3):
        driven = Driven(Transactions(), subtask)
        driven.function.next = 10 * subtask
        driven.begin()
        states.append(driven.snapshot(1))
    log: list[Any] = []
    for subtask in range(parallelism):
        state = operator_share(states, parallelism, subtask)
        Driven(Transactions(log=log), subtask).begin(state, restored_id=1)
    handled = [entry for entry in log if entry[0] != "begin"]
    assert sorted(handled) == [
        *[("abort", 10 * subtask + 2) for subtask in range(3)],
        *[("commit", 10 * subtask + 1) for subtask in range(3)],
    ]


def test_the_last_transaction_is_committed_with_the_final_checkpoint() -> None:
    """I9: after the end of the input no transaction is begun."""
    driven = Driven(Transactions()).begin()
    driven.write("a")
    driven.function.finish()
    driven.snapshot(1)
    assert driven.function.current_transaction() is None
    driven.completed(1)
    driven.function.close()
    assert driven.function.log[-2:] == [("pre_commit", 1), ("commit", 1)]


def test_without_checkpoints_the_end_commits() -> None:
    driven = Driven(Transactions(), checkpointed=False).begin()
    driven.write("a")
    driven.function.finish()
    driven.function.close()
    assert driven.function.log[-2:] == [("pre_commit", 1), ("commit", 1)]


def test_close_aborts_the_open_transaction_once() -> None:
    driven = Driven(Transactions()).begin()
    driven.snapshot(1)
    driven.function.log.clear()
    driven.function.close()
    driven.function.close()
    assert driven.function.log == [("abort", 2)]
    assert driven.function.pending_transactions() == [(1, 1)], "pre-committed: only a restart may decide about it"


def test_a_snapshot_that_fails_keeps_the_transaction() -> None:
    driven = Driven(Transactions()).begin()
    driven.function.failing.add("pre_commit")
    with pytest.raises(OSError, match="pre_commit failed"):
        driven.snapshot(1)
    assert driven.function.current_transaction() == 1
    driven.function.failing = {"begin"}
    with pytest.raises(OSError, match="begin failed"):
        driven.snapshot(2)
    driven.function.failing.clear()
    driven.write("a")  # begins the transaction that could not be begun at the barrier
    assert driven.function.log[-2:] == [("begin", 3), ("invoke", 3, "a")]
    assert driven.function.pending_transactions() == [(2, 1)]


# -- user context, types, timeouts -------------------------------------------------------------------------------------


class Pooled(Transactions):
    """A sink whose user context is a pool of transaction ids."""

    def initialize_user_context(self) -> Any:
        return {"ids": [1, 2]}

    def finish_recovering_context(self, handled_transactions: list[Any]) -> None:
        self.log.append(("handled", handled_transactions, self.get_user_context()))


def test_the_user_context_is_restored_and_told_what_was_handled() -> None:
    driven = Driven(Pooled()).begin()
    driven.function.get_user_context()["ids"].append(3)
    state = driven.snapshot(1)
    restored = Driven(Pooled()).begin(state, restored_id=1)
    assert restored.function.log[-2] == ("handled", [1, 2], {"ids": [1, 2, 3]})
    assert restored.function.get_user_context() == {"ids": [1, 2, 3]}


@dataclass
class Staged:
    path: str
    rows: int


class Typed(Transactions):
    def begin_transaction(self) -> Any:
        return Staged(f"part-{super().begin_transaction()}", 0)


def test_transactions_of_a_declared_type_come_back_as_they_were() -> None:
    state = Driven(Typed(Staged)).begin().snapshot(1)
    restored = Driven(Typed(Staged)).begin(state, restored_id=1)
    assert restored.function.log[:2] == [("commit", Staged("part-1", 0)), ("abort", Staged("part-2", 0))]


def test_a_transaction_that_is_no_plain_data_is_refused_never_pickled() -> None:
    """I20."""
    with pytest.raises(
        SerializationError, match=r"A transaction of Typed has no place in a checkpoint.*transaction_type"
    ):
        Driven(Typed()).begin().snapshot(1)


class Ageing(Transactions):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock  # type: ignore[assignment]


def test_a_transaction_older_than_its_timeout_may_be_lost_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    state = Driven(Ageing(clock)).begin().snapshot(1)

    def restored() -> Driven:
        function = Ageing(clock)
        function.set_transaction_timeout(1000).ignore_failures_after_transaction_timeout()
        function.failing.add("commit")
        return Driven(function)

    clock.advance(1000)
    with pytest.raises(OSError, match="commit failed"):
        restored().begin(state, restored_id=1)
    clock.advance(1)
    with caplog.at_level(logging.ERROR, "rekindle.sink"):
        assert restored().begin(state, restored_id=1).function.current_transaction() == 1
    assert "The transaction 1 is lost: it is 1001 ms old, older than its timeout of 1000 ms" in caplog.text


def test_a_transaction_that_is_committed_late_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    function = Ageing(clock)
    function.set_transaction_timeout(1000).enable_transaction_timeout_warnings(0.5)
    driven = Driven(function).begin()
    driven.snapshot(1)
    clock.advance(500)
    with caplog.at_level(logging.WARNING, "rekindle.sink"):
        driven.completed(1)
        assert caplog.text == ""
        driven.snapshot(2)
        clock.advance(1)
        driven.completed(2)
    assert "The transaction 2 is 501 ms old, close to or above its timeout of 1000 ms" in caplog.text


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more ms"):
        Transactions().set_transaction_timeout(-1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Transactions().enable_transaction_timeout_warnings(2)


def test_a_two_phase_function_takes_part_in_checkpoints_on_a_keyed_stream_too() -> None:
    """The wrapper of a keyed sink function sets the key for `invoke` and forwards all other methods."""

    class Written(Transactions):
        def commit(self, transaction: Any) -> None:
            raise OSError(f"commit of {transaction} reached the sink")

    env = environment().enable_checkpointing(1000)
    env.from_collection([1, 2, 3]).key_by(lambda n: n % 2, key_type=int).add_sink(Written())
    job = InProcessJob(plan_of(env))
    with pytest.raises(OperatorFailure) as failure:
        job.run()
    assert "commit of 1 reached the sink" in str(failure.value.__cause__)
    job.kill()
