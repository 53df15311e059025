"""Invariants of the checkpoint ledger in random runs: ids, concurrency, order of completion, notifications, answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.ledger import (
    CheckpointLedger,
    Step,
)
from rekindle.coordinator.checkpoints.types import (
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointRequest,
    CheckpointState,
    Completed,
    Decision,
    Discard,
    DiscardLate,
    EndJob,
    FailJob,
    NotifyComplete,
    Publish,
    ResumeInput,
    TriggerCheckpoint,
)
from rekindle.graph.settings import CheckpointPolicy

SUBTASKS = frozenset({(0, 0), (0, 1), (1, 0)})
Reason = CheckpointFailureReason
Kind = CheckpointKind

policies = st.builds(
    CheckpointPolicy,
    interval_ms=st.sampled_from([10, 25, -1]),
    timeout_ms=st.sampled_from([60, 15]),
    min_pause_ms=st.sampled_from([0, 20]),
    max_concurrent=st.sampled_from([2, 1, 3]),
    tolerable_failures=st.integers(0, 2),
    num_retained=st.integers(1, 2),
    final_retry_ms=st.just(5),
)
subtasks = st.sampled_from(sorted(SUBTASKS))
#: For events that would otherwise end most runs too early.
seldom = st.integers(0, 7).map(lambda drawn: drawn == 7)
picks = st.integers(0, 119)


class Checkpoints(RuleBasedStateMachine):
    """Carries out decisions as the checkpoint driver does, in any order, and keeps its own account."""

    @initialize(policy=policies)
    def begin(self, policy: CheckpointPolicy) -> None:
        self.policy = policy
        self.ledger = CheckpointLedger(policy, SUBTASKS)
        self.now = 0
        self.kinds: dict[int, CheckpointKind] = {}  # every triggered one
        self.stood: set[int] = set()
        self.acknowledged: dict[int, set[Any]] = {}
        self.to_publish: list[int] = []
        self.completed: list[int] = []
        self.last_completion = -(10**6)
        self.aborted: dict[int, CheckpointFailureReason] = {}
        self.last_aborted: int | None = None
        self.notified: list[int] = []
        self.kept: list[int] = []
        self.base: int | None = None
        self.failures = 0
        self.tokens = 0
        self.answers: dict[str, Answer] = {}
        self.job_over = False
        self.apply(self.ledger.attempt_started(0))

    # -- decisions ----------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> tuple[Decision, ...]:
        self.ledger, decisions = step
        for decision in decisions:
            getattr(self, f"do_{type(decision).__name__}")(decision)
        return decisions

    def do_TriggerCheckpoint(self, trigger: TriggerCheckpoint) -> None:
        assert trigger.id == max(self.kinds, default=0) + 1, "ids increase, one by one"
        assert trigger.base_id == self.base, "deltas stand on the last completed checkpoint (I12)"
        under_way = [each for each in self.kinds if each not in self.completed and each not in self.aborted]
        assert not any(self.kinds[each].is_last for each in under_way), "nothing follows the last"
        if trigger.kind is Kind.CHECKPOINT:
            assert len(under_way) < self.policy.max_concurrent
            assert trigger.request or self.now >= self.last_completion + self.policy.min_pause_ms
        self.kinds[trigger.id] = trigger.kind
        self.acknowledged[trigger.id] = set()

    def do_Publish(self, publish: Publish) -> None:
        checkpoint = publish.checkpoint.id
        assert checkpoint in self.stood
        assert self.acknowledged[checkpoint] == SUBTASKS
        self.to_publish.append(checkpoint)

    def do_Completed(self, completed: Completed) -> None:
        checkpoint = completed.checkpoint.id
        assert checkpoint not in self.completed
        assert checkpoint not in self.aborted
        if self.kinds[checkpoint].is_in_line:
            higher = [each for each in self.completed if each > checkpoint and self.kinds[each].is_in_line]
            assert not higher, "no lower id completes after a higher one"
            self.failures = 0
        if not self.kinds[checkpoint].is_savepoint:
            self.base = checkpoint
            self.kept.append(checkpoint)
        self.completed.append(checkpoint)
        self.last_completion = self.now

    def do_NotifyComplete(self, notify: NotifyComplete) -> None:
        assert self.ledger.running
        assert notify.id in self.completed, "after the fact"
        assert self.kinds[notify.id].is_in_line, "savepoints in between do not notify (I17)"
        assert notify.acknowledge is self.kinds[notify.id].is_last
        self.notified.append(notify.id)

    def do_Aborted(self, aborted: Aborted) -> None:
        assert aborted.id in self.kinds
        assert aborted.id not in self.aborted, "said once"
        assert aborted.id not in self.completed, "nothing undoes a completed checkpoint"
        if aborted.reason is Reason.CHECKPOINT_SUBSUMED:
            assert not self.kinds[aborted.id].is_savepoint
            assert any(each > aborted.id and self.kinds[each].is_in_line for each in self.completed)
        assert aborted.notify is self.ledger.running
        self.aborted[aborted.id] = aborted.reason
        self.last_aborted = aborted.id
        if aborted.reason.counts and not self.kinds[aborted.id].is_savepoint and self.ledger.running:
            self.failures += 1

    def do_Discard(self, discard: Discard) -> None:
        for each in discard.checkpoints:
            assert not each.kind.is_savepoint
            self.kept.remove(each.id)

    def do_DiscardLate(self, late: DiscardLate) -> None:
        assert late.id in self.aborted

    def do_Answer(self, answer: Answer) -> None:
        assert answer.token not in self.answers, "answered once"
        self.answers[answer.token] = answer

    def do_FailJob(self, failure: FailJob) -> None:
        assert f" {self.last_aborted} failed: " in failure.message
        assert self.last_aborted is not None
        if self.kinds[self.last_aborted] is Kind.STOP:
            assert not self.ledger.holds_input
        else:
            assert self.failures == self.policy.tolerable_failures + 1
            self.failures = 0

    def do_ResumeInput(self, resume: ResumeInput) -> None:
        assert self.last_aborted is not None
        assert self.kinds[self.last_aborted] is Kind.STOP
        assert not self.ledger.holds_input

    def do_EndJob(self, end: EndJob) -> None:
        if self.ledger.ending is not None:
            last = self.ledger.ending.checkpoint.id
            assert not self.ledger.ending.awaiting
            assert self.kinds[last].is_last
            assert last in self.completed
            assert last in self.notified
        else:
            assert not self.policy.enabled
        self.job_over = True

    def some_checkpoint(self, pick: int) -> int:
        """Mostly a pending checkpoint, sometimes one that has ended."""
        over = [each for each in self.kinds if each in self.completed or each in self.aborted]
        under_way = [each.id for each in self.ledger.pending]
        candidates = under_way * 4 + over[-2:]
        return candidates[pick % len(candidates)]

    # -- events -------------------------------------------------------------------------------------------------------

    alive = precondition(lambda self: not self.job_over)

    @rule(by=st.integers(1, 30))
    def time_passes(self, by: int) -> None:
        self.now += by

    @alive
    @rule(kind=st.sampled_from([Kind.CHECKPOINT, Kind.SAVEPOINT]), stop=seldom, drain=st.booleans())
    def ask(self, kind: CheckpointKind, stop: bool, drain: bool) -> None:
        self.tokens += 1
        kind = Kind.STOP if stop else kind
        self.apply(self.ledger.request(CheckpointRequest(str(self.tokens), kind, drain=drain)))

    @alive
    @rule(by=st.integers(0, 40))
    def trigger(self, by: int) -> None:
        self.now += by
        assert len(self.apply(self.ledger.trigger(self.now, self.now))) <= 1

    @alive
    @rule(really=seldom)
    def wake_at_the_time_that_was_asked_for(self, really: bool) -> None:
        wake = self.ledger.next_wake_ms(self.now)
        if wake is None:
            assert not self.ledger.trigger(self.now + 10**6, 0)[1]
            assert not self.ledger.expire(self.now + 10**6)[1]
            return
        if wake > self.now:
            assert not self.ledger.trigger(wake - 1, 0)[1]
            assert not self.ledger.expire(wake - 1)[1]
        expires = self.ledger.expire(wake)
        assert expires[1] or self.ledger.trigger(wake, 0)[1], "there was a reason to wake"
        if not expires[1] or really:
            self.now = int(wake)
            self.apply(expires)
            self.apply(self.ledger.trigger(self.now, self.now))

    @alive
    @precondition(lambda self: self.kinds)
    @rule(pick=picks)
    def cut_stands(self, pick: int) -> None:
        checkpoint = self.some_checkpoint(pick)
        if checkpoint not in self.stood:
            self.stood.add(checkpoint)
            self.apply(self.ledger.cut_stands(checkpoint))

    @alive
    @precondition(lambda self: self.kinds)
    @rule(pick=picks, subtask=subtasks)
    def acknowledge(self, pick: int, subtask: Any) -> None:
        checkpoint = self.some_checkpoint(pick)
        self.acknowledged[checkpoint].add(subtask)
        self.apply(self.ledger.acknowledge(checkpoint, subtask))

    @alive
    @precondition(lambda self: self.kinds)
    @rule(pick=picks, cut=st.booleans(), published=st.booleans())
    def all_goes_well(self, pick: int, cut: bool, published: bool) -> None:
        """Acknowledge for all subtasks: single steps seldom add up to a completed checkpoint."""
        checkpoint = self.some_checkpoint(pick)
        if cut and checkpoint not in self.stood:
            self.stood.add(checkpoint)
            self.apply(self.ledger.cut_stands(checkpoint))
        for subtask in sorted(SUBTASKS):
            self.acknowledged[checkpoint].add(subtask)
            self.apply(self.ledger.acknowledge(checkpoint, subtask))
        if published and checkpoint in self.to_publish:
            self.to_publish.remove(checkpoint)
            self.apply(self.ledger.published(checkpoint, f"chk-{checkpoint}", self.now))

    @alive
    @precondition(lambda self: self.kinds)
    @rule(pick=picks, subtask=subtasks, really=seldom)
    def decline(self, pick: int, subtask: Any, really: bool) -> None:
        if not really:
            return
        checkpoint = self.some_checkpoint(pick)
        reason = (Reason.CHECKPOINT_DECLINED, Reason.CHECKPOINT_ASYNC_EXCEPTION, Reason.TASK_FAILURE)[pick % 3]
        self.apply(self.ledger.decline(checkpoint, subtask, "", self.now, reason))

    @alive
    @rule(really=seldom)
    def expire(self, really: bool) -> None:
        if really:
            self.now += self.policy.timeout_ms
            self.apply(self.ledger.expire(self.now))

    @precondition(lambda self: self.to_publish)
    @rule(pick=picks, well=st.sampled_from([True, True, False]))
    def publication_ends(self, pick: int, well: bool) -> None:
        checkpoint = self.to_publish[pick % len(self.to_publish)]
        self.to_publish.remove(checkpoint)
        if well:
            self.apply(self.ledger.published(checkpoint, f"chk-{checkpoint}", self.now))
        else:
            self.apply(self.ledger.publish_failed(checkpoint, "disk full", self.now))

    @alive
    @precondition(lambda self: self.ledger.running and not self.ledger.holds_input)
    @rule(really=seldom)
    def input_ends(self, really: bool) -> None:
        if really:
            self.apply(self.ledger.input_ended(self.now))

    @alive
    @precondition(lambda self: self.notified)
    @rule(pick=picks)
    def commit(self, pick: int) -> None:
        checkpoint = self.notified[-2:][pick % len(self.notified[-2:])]
        for subtask in sorted(SUBTASKS):
            self.apply(self.ledger.commit_acknowledged(checkpoint, subtask))

    @alive
    @rule(really=seldom)
    def attempt_fails(self, really: bool) -> None:
        if not really:
            return
        self.apply(self.ledger.attempt_failed("a slot died"))
        self.stood |= set(self.kinds)
        for each in self.kinds:
            if each not in self.to_publish:
                self.acknowledged[each] = set()  # a later attempt acknowledges nothing of this one

    @precondition(lambda self: not self.job_over and not self.ledger.running and not self.to_publish)
    @rule()
    def attempt_starts(self) -> None:
        self.apply(self.ledger.attempt_started(self.now, self.ledger.restore_point))
        restored = self.ledger.restore_point
        self.base = restored.id if restored is not None and not restored.kind.is_savepoint else None

    # -- invariants ---------------------------------------------------------------------------------------------------

    @invariant()
    def the_ledger_agrees_with_the_account(self) -> None:
        if not hasattr(self, "kinds"):
            return
        under_way = [each for each in self.kinds if each not in self.completed and each not in self.aborted]
        assert [each.id for each in self.ledger.pending] == under_way
        assert [each.id for each in self.ledger.publishing] == sorted(self.to_publish)
        assert [each.id for each in self.ledger.completed] == self.kept
        assert len(self.kept) <= self.policy.num_retained
        assert self.ledger.failures == self.failures
        for each in under_way:
            overtaken = any(self.kinds[done].is_in_line and done > each for done in self.completed)
            assert self.kinds[each].is_savepoint or not overtaken, "completing n subsumes what was pending below n"
        plain = [each for each in under_way if self.kinds[each] is Kind.CHECKPOINT]
        assert len(plain) <= self.policy.max_concurrent
        in_line = [each for each in self.completed if self.kinds[each].is_in_line]
        restore = self.ledger.restore_point
        assert (restore.id if restore else None) == (max(in_line) if in_line else None)
        in_publication = [each for each in self.ledger.publishing if each.kind.is_in_line]
        assert len(in_publication) <= 1
        assert all(each.state is not CheckpointState.COMPLETED for each in self.ledger.pending)

    def teardown(self) -> None:
        """End the job: every checkpoint has ended, and every request is answered."""
        if not hasattr(self, "kinds"):
            return
        self.apply(self.ledger.job_ended(JobStatus.FINISHED))
        for checkpoint in list(self.to_publish):
            self.to_publish.remove(checkpoint)
            self.apply(self.ledger.published(checkpoint, f"chk-{checkpoint}", self.now))
        assert set(self.kinds) == set(self.completed) | set(self.aborted)
        assert not self.ledger.pending
        assert not self.kept
        last = self.ledger.ending.request if self.ledger.ending else None
        assert set(self.answers) == {str(each + 1) for each in range(self.tokens)} - ({last.token} if last else set())


#: The steps of a walk, with weights and random arguments that lead far into a run.
STEPS: dict[str, tuple[int, Callable[[random.Random], dict[str, Any]]]] = {
    "trigger": (8, lambda chance: {"by": chance.randint(0, 40)}),
    "all_goes_well": (5, lambda chance: {"cut": chance.random() < 0.8, "published": chance.random() < 0.5}),
    "acknowledge": (3, lambda chance: {"subtask": chance.choice(sorted(SUBTASKS))}),
    "cut_stands": (2, lambda chance: {}),
    "publication_ends": (4, lambda chance: {"well": chance.random() < 0.7}),
    "ask": (
        2,
        lambda chance: {
            "kind": chance.choice([Kind.CHECKPOINT, Kind.SAVEPOINT]),
            "stop": chance.random() < 0.05,
            "drain": chance.random() < 0.5,
        },
    ),
    "wake_at_the_time_that_was_asked_for": (2, lambda chance: {"really": chance.random() < 0.1}),
    "decline": (1, lambda chance: {"subtask": chance.choice(sorted(SUBTASKS)), "really": chance.random() < 0.5}),
    "expire": (1, lambda chance: {"really": chance.random() < 0.2}),
    "input_ends": (1, lambda chance: {"really": chance.random() < 0.05}),
    "commit": (1, lambda chance: {}),
    "attempt_fails": (1, lambda chance: {"really": chance.random() < 0.3}),
    "attempt_starts": (4, lambda chance: {}),
}
WITH_PICK = {"all_goes_well", "acknowledge", "cut_stands", "publication_ends", "decline", "commit"}


def possible(machine: Checkpoints, step: str) -> bool:
    """The machine's preconditions."""
    if step == "publication_ends":
        return bool(machine.to_publish)
    if step == "attempt_starts":
        return not machine.ledger.running and not machine.to_publish
    if step == "input_ends":
        return machine.ledger.running and not machine.ledger.holds_input
    if step == "commit":
        return bool(machine.notified)
    return step not in WITH_PICK or bool(machine.kinds)


@pytest.mark.parametrize("seed", range(40))
def test_the_invariants_hold_in_long_walks(seed: int):
    chance = random.Random(seed)
    machine = Checkpoints()
    machine.begin(
        policy=CheckpointPolicy(
            interval_ms=chance.choice([10, 25]),
            timeout_ms=chance.choice([60, 200]),
            min_pause_ms=chance.choice([0, 20]),
            max_concurrent=chance.randint(1, 4),
            tolerable_failures=chance.randint(0, 3),
            num_retained=chance.randint(1, 3),
            final_retry_ms=5,
        )
    )
    names, weights = list(STEPS), [weight for weight, _ in STEPS.values()]
    for step in chance.choices(names, weights, k=250):
        if machine.job_over:
            break
        if possible(machine, step):
            arguments = STEPS[step][1](chance)
            pick = {"pick": chance.randrange(120)} if step in WITH_PICK else {}
            getattr(machine, step)(**arguments, **pick)
            machine.the_ledger_agrees_with_the_account()
    machine.teardown()


Checkpoints.TestCase.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestCheckpoints = Checkpoints.TestCase
