"""A cut of a source with its own thread (I8): the position that the function keeps is never ahead of its records.

The functions run in this process; they and the test wait for each other with the events of `Meeting`.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from rekindle.common import Types
from rekindle.datastream.functions import CheckpointedFunction, MapFunction, SourceFunction
from rekindle.datastream.state import ListStateDescriptor
from rekindle.errors import JobCancelledError
from rekindle.testing import InProcessJob
from tests.support.environments import environment
from tests.support.waiting import becomes_true

DEADLINE_S = 30.0
#: How long a snapshot waits, so that a wrong source would collect meanwhile.
CHANCE_S = 0.2
PAUSE_AT = 500
COUNT = 1000
#: Records that an epoch takes where the buffer is to be full.
CAP = 100


class Meeting:
    """Events with which functions and test wait for each other."""

    reached = threading.Event()  # the source is where the test wants it
    go = threading.Event()  # it may go on
    moved = threading.Event()  # it has collected a record since
    ended = threading.Event()  # `run` was left

    @classmethod
    def begin(cls):
        for event in (cls.reached, cls.go, cls.moved, cls.ended):
            event.clear()


@pytest.fixture(autouse=True)
def meeting():
    Meeting.begin()
    yield Meeting
    Meeting.go.set()


class KeepsItsPlace(SourceFunction, CheckpointedFunction):
    """S2's source: it collects, then notes how far it is, and saves that note itself."""

    last = -1
    running = True

    def __init__(self, locked, count=COUNT, pause_at=PAUSE_AT):
        self.locked = locked
        self.count = count
        self.pause_at = pause_at

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("last", Types.LONG()))
        for last in self.state.get():
            self.last = last

    def snapshot_state(self, context):
        Meeting.go.set()
        Meeting.moved.wait(CHANCE_S)
        self.state.update([self.last])

    def run(self, ctx):
        for number in range(self.last + 1, self.count):
            if not self.running:
                break
            if number == self.pause_at:
                Meeting.reached.set()
                Meeting.go.wait(DEADLINE_S)
            if self.locked:
                with ctx.get_checkpoint_lock():
                    self.collect(ctx, number)
            else:
                self.collect(ctx, number)
        Meeting.ended.set()

    def collect(self, ctx, number):
        ctx.collect(number)
        self.last = number
        if Meeting.go.is_set():
            Meeting.moved.set()

    def cancel(self):
        self.running = False


class Flushes(MapFunction, CheckpointedFunction):
    """Stands for a sink whose snapshot takes its time."""

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        Meeting.go.set()
        Meeting.moved.wait(CHANCE_S)

    def map(self, value):
        return value


def program(source, chained=True):
    env = environment(1)
    numbers = env.add_source(source, "numbers", int)
    return (numbers if chained else numbers.disable_chaining()).map(Flushes())


def source_of(job):
    (head,) = (
        task._head.operator
        for task in job.tasks.values()
        if task.chain.stage == 0 and hasattr(task._head.operator, "_thread")
    )
    return head


def times_seen(checkpoint, job, again):
    """How often each number came out, before the cut and after the restore."""
    job.kill()
    restored = InProcessJob.of(again, restore=checkpoint)
    return Counter(checkpoint.results + restored.run())


@pytest.mark.parametrize("locked", [False, True], ids=["without-lock", "with-lock"])
@pytest.mark.parametrize("chained", [True, False], ids=["chained", "apart"])
def test_a_source_that_keeps_its_own_place_loses_nothing(chained, locked):
    """S2's program: while the snapshots are taken, chained or not, the source stands still."""
    job = InProcessJob.of(program(KeepsItsPlace(locked), chained))
    assert Meeting.reached.wait(DEADLINE_S)
    seen = times_seen(job.checkpoint(), job, program(KeepsItsPlace(locked, pause_at=None), chained))
    assert set(seen) == set(range(COUNT)), "records were lost"
    assert seen.total() == COUNT, "the source stood still before the record that it waits with"


@pytest.mark.parametrize("locked", [False, True], ids=["without-lock", "with-lock"])
def test_a_source_that_waits_for_room_does_not_claim_the_record_it_waits_with(locked):
    job = InProcessJob.of(program(KeepsItsPlace(locked, 10**9, pause_at=None)), max_records=CAP)
    job.epoch()
    assert becomes_true(lambda: source_of(job)._source_context.buffered() >= CAP, DEADLINE_S), (
        "it never waited for room"
    )
    Meeting.go.set()
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(program(KeepsItsPlace(locked, 10**9, pause_at=None)), restore=checkpoint)
    assert becomes_true(restored.tasks[0, 0].has_input, DEADLINE_S)
    first, last = restored.epoch()[0], checkpoint.results[-1]
    assert first <= last + 1, f"the cut ends with {last}, the restored source goes on with {first}"
    assert first >= last, "more than one record comes again"
    restored.kill()


class LockedBlocks(SourceFunction):
    """Emits pairs under the lock, and gives a cut every chance to fall between the two."""

    running = True

    def run(self, ctx):
        for number in range(0, 20, 2):
            with ctx.get_checkpoint_lock():
                ctx.collect(number)
                if number == 10:
                    Meeting.reached.set()
                    Meeting.go.wait(CHANCE_S)
                ctx.emit_watermark(number)
                ctx.collect(number + 1)
        Meeting.ended.set()
        Meeting.go.wait(DEADLINE_S)

    def cancel(self):
        Meeting.go.set()


def test_what_a_lock_holds_together_is_on_one_side_of_the_cut():
    job = InProcessJob.of(program(LockedBlocks()))
    assert Meeting.reached.wait(DEADLINE_S)
    taken = job.checkpoint().results
    assert len(taken) >= 12, "the block had begun before the cut"
    assert len(taken) % 2 == 0, "the cut fell into a locked block"
    job.kill()


class Marks(SourceFunction):
    """Emits a watermark or idleness during a cut."""

    def __init__(self, idle):
        self.idle = idle

    def run(self, ctx):
        ctx.collect(1)
        Meeting.reached.set()
        Meeting.go.wait(DEADLINE_S)
        if self.idle:
            ctx.mark_as_temporarily_idle()
        else:
            ctx.emit_watermark(5)
        Meeting.moved.set()

    def cancel(self):
        Meeting.go.set()


@pytest.mark.parametrize("idle", [False, True], ids=["watermark", "idleness"])
def test_watermarks_and_idleness_wait_for_the_end_of_the_cut(idle):
    job = InProcessJob.of(program(Marks(idle)))
    assert Meeting.reached.wait(DEADLINE_S)
    found = []

    class Looks(Flushes):
        def snapshot_state(self, context):
            super().snapshot_state(context)
            found.append(Meeting.moved.is_set())

    operators = [operator for task in job.tasks.values() for operator in task._operators.values()]
    tail = next(operator for operator in operators if operator.name == "Map")
    tail.function = Looks()
    job.checkpoint()
    assert found == [False], "it did not wait"
    assert Meeting.moved.wait(DEADLINE_S), "it waits for ever"
    job.kill()


class Unbounded(KeepsItsPlace):
    """Collects without a pause and without an end, with the lock around each record."""

    def __init__(self):
        super().__init__(locked=True, count=10**9, pause_at=None)

    def snapshot_state(self, context):
        self.state.update([self.last])


def test_a_source_that_takes_the_lock_for_each_record_is_held_back_too():
    """I5: there is room for what one lock holds, not for a stream of locked records."""
    job = InProcessJob.of(program(Unbounded()), max_records=CAP)
    head = source_of(job)
    job.checkpoint()
    before = head.function.last
    Meeting.ended.wait(CHANCE_S)
    assert head.function.last <= before + CAP + 1, "nothing holds it back"
    job.kill()
    head._thread.join(DEADLINE_S)
    assert not head._thread.is_alive()


class FailsInTheMiddle(Flushes):
    """The epoch of the cut fails, so that no snapshot ever ends the cut."""

    def map(self, value):
        raise ValueError("the epoch of the cut")


@pytest.mark.parametrize("locked", [False, True], ids=["in-collect", "for-the-lock"])
def test_a_source_that_waits_for_a_cut_can_be_cancelled(locked):
    env = environment(1)
    job = InProcessJob.of(env.add_source(KeepsItsPlace(locked), "numbers", int).map(FailsInTheMiddle()))
    head = source_of(job)
    assert Meeting.reached.wait(DEADLINE_S)
    with pytest.raises(Exception, match="Map"):
        job.checkpoint()
    Meeting.go.set()
    head._thread.join(CHANCE_S)
    assert head._thread.is_alive(), "the cut was given up by itself"
    job.kill()
    head._thread.join(DEADLINE_S)
    assert not head._thread.is_alive(), "it waits for a cut that never ends"


class HoldsForLong(SourceFunction):
    """Does not give the lock back until it is told."""

    def run(self, ctx):
        with ctx.get_checkpoint_lock():
            ctx.collect(1)
            Meeting.reached.set()
            Meeting.go.wait(DEADLINE_S)

    def cancel(self):
        """Does nothing: the function is stuck."""


def test_a_cut_that_waits_for_the_lock_can_be_cancelled():
    job = InProcessJob.of(program(HoldsForLong()))
    assert Meeting.reached.wait(DEADLINE_S)
    raised = []

    def cut():
        try:
            job.checkpoint()
        except JobCancelledError as error:
            raised.append(error)

    waiting = threading.Thread(target=cut, daemon=True)
    waiting.start()
    waiting.join(CHANCE_S)
    assert waiting.is_alive(), "the cut did not wait for the lock"
    job.kill()
    waiting.join(DEADLINE_S)
    assert not waiting.is_alive(), "the cut waits for the lock for ever"
    assert len(raised) == 1


class AsksInItsListener(KeepsItsPlace):
    """Takes the lock on the task's own thread, too."""

    def __init__(self):
        super().__init__(locked=False, count=10**9, pause_at=None)

    def run(self, ctx):
        self.ctx = ctx
        super().run(ctx)

    def snapshot_state(self, context):
        with self.ctx.get_checkpoint_lock():
            self.state.update([self.last])

    def notify_checkpoint_complete(self, checkpoint_id):
        self.was_full = becomes_true(lambda: self.ctx.buffered() >= CAP, DEADLINE_S)
        self.got_it = self.ctx.get_checkpoint_lock().acquire(timeout=CHANCE_S)


def test_the_tasks_own_thread_takes_the_lock_though_the_buffer_is_full():
    """That thread drains the buffer: if it waited for room, it would wait for ever."""
    job = InProcessJob.of(program(AsksInItsListener()), max_records=CAP)
    function = source_of(job).function
    assert becomes_true(lambda: hasattr(function, "ctx"), DEADLINE_S)
    job.checkpoint()
    assert function.was_full
    assert function.got_it
    job.kill()


def test_a_source_that_the_bound_holds_back_has_more():
    """Also while it cannot go on, as in a cut: otherwise epochs would stay as small as the bound, and pause."""
    job = InProcessJob.of(program(Unbounded()), max_records=CAP)
    assert becomes_true(lambda: source_of(job)._source_context.buffered() >= CAP, DEADLINE_S)
    job.checkpoint()
    assert job._more
    job.kill()
