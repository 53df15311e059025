"""Async I/O and checkpoints: elements in flight at a cut, restores, and the end of input."""

from __future__ import annotations

import asyncio

import pytest

from rekindle.common import Time, Types
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import KeyedProcessFunction, SourceFunction
from rekindle.datastream.async_data_stream import AsyncDataStream
from rekindle.datastream.functions import AsyncFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.testing import InProcessJob, assert_survives
from tests.support.environments import checkpointed
from tests.unit.runtime.operators.async_functions import MODES, Gate, Gated, Slower, epochs_until

pytestmark = pytest.mark.usefixtures("no_thread_left")


def test_a_barrier_does_not_wait_for_answers():
    """The snapshot holds the elements in flight and those without room; after a restore all of them are asked again."""
    gate = Gate("barrier")

    def program(parallelism):
        numbers = checkpointed(parallelism).from_sequence(0, 29)
        return AsyncDataStream.ordered_wait(numbers, Gated("barrier"), Time.hours(1), 10)

    job = InProcessJob.of(program(1))
    gate.let(0, 1)
    epochs_until(job, lambda came: came == [0, 1])
    gate.let(3)
    checkpoint = job.checkpoint()
    assert checkpoint.results == []
    job.kill()
    gate.open.set()
    gate.asked.clear()
    restored = InProcessJob.of(program(1), restore=checkpoint)
    assert restored.run() == list(range(2, 30))
    assert gate.asked == list(range(2, 30))
    assert sorted(InProcessJob.of(program(3), restore=checkpoint).run()) == list(range(2, 30))


class Changes(AsyncFunction):
    """Changes its input and its results after it has answered."""

    async def async_invoke(self, value):
        value["asked"] = True
        await asyncio.sleep(3600 if value["n"] else 0)
        return [value]


def test_what_the_function_does_to_its_input_is_not_in_the_snapshot():
    """I13: an element that is asked again after a restore is as it came in."""

    def program():
        records = checkpointed().from_collection([{"n": 0}, {"n": 1}])
        return AsyncDataStream.unordered_wait(records, Changes(), Time.hours(1))

    job = InProcessJob.of(program())
    assert epochs_until(job, bool) == [{"n": 0, "asked": True}]
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(program(), restore=checkpoint)
    operator = next(each for each in restored.tasks.values() if "async" in each.name)._operators
    waiting = next(each for each in operator.values() if each.name == "async wait operator")._runner.in_flight()
    assert [item.record for item in waiting if hasattr(item, "record")] == [{"n": 1}]
    restored.kill()


class Remembering(AsyncFunction):
    """Takes part in checkpoints."""

    async def async_invoke(self, value):
        self.seen = [*getattr(self, "seen", []), value]
        return [list(self.seen)]

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.seen

    def restore_state(self, state):
        self.seen = list(state)


def test_the_function_may_take_part_in_checkpoints():
    def program():
        return AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 4), Remembering(), Time.seconds(30))

    job = InProcessJob.of(program(), max_records=2)
    before = epochs_until(job, lambda came: [1, 2] in came)  # on a busy machine the others may have come, too
    checkpoint = job.checkpoint()
    job.kill()
    results = before + checkpoint.results + InProcessJob.of(program(), restore=checkpoint).run()
    longest = max(results, key=len)
    assert longest[:2] == [1, 2], "what the function had seen was not restored"
    # Elements in flight at the cut are asked again, whether the function had begun with them or not.
    assert set(longest[2:]) == {3, 4}


class Twice(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(value * 7919 % 7 / 2000)
        return [value, -value]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chained", [True, False])
def test_killed_restored_and_rescaled_it_gives_the_same(mode, chained):
    """Also two operators in a row, also behind an exchange, also with a kill near the end of the input."""

    def program(env):
        numbers = env.from_sequence(1, 40)
        once = mode(numbers if chained else numbers.rebalance(), Twice(), Time.seconds(30), 5)
        return mode(once, Twice(), Time.seconds(30), 50).filter(lambda value: value > 0)

    # Ten epochs bring the input; how many more wait for the last answers is a matter of time.
    results = assert_survives(program, records_per_epoch=2, cuts=(1, 3, 5, 8, 10))
    assert sorted(results) == sorted([*range(1, 41), *range(1, 41)])


def test_the_end_is_held_back_and_comes_once_also_across_a_restore():
    """End of input fires everything exactly once: timers downstream see the last watermark after all results."""
    gate = Gate("the end")

    def program(parallelism):
        asked = AsyncDataStream.unordered_wait(
            checkpointed(parallelism).from_sequence(0, 5), Gated("the end"), Time.hours(1)
        )
        return asked.key_by(lambda value: 0).reduce(lambda a, b: a + b)

    job = InProcessJob.of(program(2))
    for _ in range(3):
        checkpoint = job.checkpoint()
    assert not job.finished
    gate.wait_until_asked(*range(6))
    job.kill()
    gate.open.set()
    for parallelism in (2, 1, 3):
        assert max(InProcessJob.of(program(parallelism), restore=checkpoint).run()) == 15
    gate.open.set()


class RunsOnce(SourceFunction):
    """Keeps no offsets: a second run would bring every record again."""

    runs: list[int] = []

    def run(self, ctx):
        self.runs.append(1)
        for number in range(6):
            ctx.collect(number)

    def cancel(self):
        pass


def test_a_source_that_has_ended_is_not_run_again_although_its_task_has_not_ended():
    """I9: the end of its input is held back in its own chain."""
    RunsOnce.runs.clear()
    gate = Gate("run once")

    def program():
        return AsyncDataStream.ordered_wait(checkpointed().add_source(RunsOnce()), Gated("run once"), Time.hours(1))

    job = InProcessJob.of(program())
    epochs_until(job, lambda _: set(range(6)) <= set(gate.asked))
    source = next(iter(job.tasks.values()))._head.operator
    while not source.finished:
        job.epoch()
    checkpoint = job.checkpoint()
    assert not job.finished
    job.kill()
    gate.open.set()
    assert InProcessJob.of(program(), restore=checkpoint).run() == list(range(6))
    assert RunsOnce.runs == [1]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_flight_behind_an_ended_source_is_not_lost_when_both_become_one_chain(mode):
    """I9: the source had ended in its own task, the elements in flight of another one had not."""
    gate = Gate("one chain")

    def program(parallelism):
        numbers = checkpointed(1).from_sequence(0, 5)
        asked = mode(numbers, Gated("one chain"), Time.hours(1)).set_parallelism(parallelism).uid("asked")
        beside = numbers.map(lambda number: -number).set_parallelism(2).uid("beside")
        total = asked.union(beside).key_by(lambda number: number < 0).process(TotalAtTheEnd())
        return total.set_parallelism(3 - parallelism)

    job = InProcessJob.of(program(2))
    before = [*job.epoch(), *(checkpoint := job.checkpoint()).results]
    gate.wait_until_asked(*range(6))
    job.kill()
    assert before == []
    again = InProcessJob.of(program(1), restore=checkpoint)
    waiting = [*again.epoch(), *(checkpoint := again.checkpoint()).results]
    assert waiting == []
    assert not again.finished
    again.kill()
    gate.open.set()
    for parallelism in (1, 2):
        assert sorted(InProcessJob.of(program(parallelism), restore=checkpoint).run()) == [-15, 15]


class TotalAtTheEnd(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)

    def on_timer(self, timestamp, ctx):
        yield self.total.value()


def test_a_drained_savepoint_waits_for_all():
    job = InProcessJob.of(
        AsyncDataStream.ordered_wait(checkpointed().from_sequence(0, 1_000_000), Slower(), Time.seconds(30)),
        max_records=10,
    )
    assert job.checkpoint(savepoint=True, drain=True).results == list(range(10))
    assert job.finished
    job.close()
