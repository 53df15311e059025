"""The interval join: bounds, late elements, timestamps, mistakes. A property test compares its pairs with a model."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rekindle.common import Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import OutputTag, ProcessFunction, ProcessJoinFunction
from rekindle.errors import GraphError, TypeMismatchError
from rekindle.graph.build import build_plan
from rekindle.runtime.operators.interval_join import IntervalJoinOperator
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
EVENT = Types.TUPLE([Types.STRING(), Types.LONG()])
ODD = OutputTag("odd", Types.LONG())


def keyed(env, records, type_info=EVENT):
    stamped = env.from_collection(records, type_info).assign_timestamps_and_watermarks(BY_TIME)
    return stamped.key_by(lambda record: record[0], Types.STRING())


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


class OddAside(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield ODD, left[1] + right[1]
        return


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


LEFT = [("a", 0), ("a", 1), ("b", 1), ("a", 5)]
RIGHT = [("a", 0), ("a", 1), ("b", 3), ("a", 6), ("c", 1)]


@pytest.mark.parametrize(
    ("joined", "pairs"),
    [
        (
            lambda join: join.between(Time.milliseconds(-2), Time.milliseconds(1)),
            [(0, 0), (0, 1), (1, 0), (1, 1), (5, 6)],
        ),
        (lambda join: join.in_event_time().between(Duration.of_millis(0), Duration.of_millis(0)), [(0, 0), (1, 1)]),
        (lambda join: join.between(-1, 1).lower_bound_exclusive(), [(0, 0), (0, 1), (1, 1), (5, 6)]),
        (lambda join: join.between(-1, 1).upper_bound_exclusive(), [(0, 0), (1, 0), (1, 1)]),
        (lambda join: join.between(-1, 1).lower_bound_exclusive().upper_bound_exclusive(), [(0, 0), (1, 1)]),
        (lambda join: join.between(2, 2), [(1, 3)]),
        (lambda join: join.between(100, 200), []),
    ],
)
def test_bounds(joined, pairs):
    env = environment(2)
    join = joined(keyed(env, LEFT).interval_join(keyed(env, RIGHT)))
    assert sorted(InProcessJob.of(join.process(Pair())).run()) == pairs


def test_what_comes_out_has_the_later_timestamp_of_both():
    env = environment(2)
    pairs = keyed(env, LEFT).interval_join(keyed(env, RIGHT)).between(-2, 1).process(Pair())
    assert all(timestamp == max(pair) for pair, timestamp in InProcessJob.of(pairs.process(Stamped())).run())


def test_a_join_function_has_side_outputs():
    env = environment(2)
    pairs = keyed(env, LEFT).interval_join(keyed(env, RIGHT)).between(0, 0).process(OddAside())
    assert sorted(InProcessJob.of(pairs.get_side_output(ODD)).run()) == [0, 2]


def test_late_elements_go_to_their_side_or_are_counted():
    late = OutputTag("late", EVENT)
    env = environment(1)
    left, right = keyed(env, [("a", 10), ("a", 3)]), keyed(env, [("a", 10), ("a", 4), ("a", 20)])
    join = left.interval_join(right).between(-100, 100).side_output_left_late_data(late)
    job = InProcessJob.of(join.process(Pair()).get_side_output(late), max_records=1)
    assert job.run() == [("a", 3)]
    head = next(task._head.operator for task in job.tasks.values() if "Interval Join" in task.name)
    assert head.context.metrics.counter("numLateRecordsDropped").get_count() == 1


def test_elements_without_timestamps_are_refused_by_name():
    env = environment(2)
    left = env.from_collection([("a", 1)]).key_by(lambda record: record[0])
    right = env.from_collection([("a", 1)]).key_by(lambda record: record[0])
    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(left.interval_join(right).between(0, 1).process(Pair())).run()
    assert caught.value.record == ("a", 1)
    assert "interval join is in event time, but this element has no timestamp" in str(caught.value.__cause__)


class Fails(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        raise ValueError("no pairs today")


def test_an_error_names_the_element_that_met_its_partner():
    env = environment(2)
    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(keyed(env, LEFT).interval_join(keyed(env, RIGHT)).between(2, 2).process(Fails())).run()
    assert caught.value.record in (("b", 1), ("b", 3))


def test_what_cannot_be_is_refused_when_it_is_said():
    env = environment(2)
    join = keyed(env, LEFT).interval_join(keyed(env, RIGHT))
    with pytest.raises(GraphError, match="interval joins are in event time only"):
        join.in_processing_time()
    with pytest.raises(GraphError, match="the interval from 5 to 4 ms is empty"):
        join.between(5, 4).process(Pair())
    with pytest.raises(GraphError, match="the interval from 4 to 5 ms is empty"):
        join.between(4, 5).lower_bound_exclusive().upper_bound_exclusive().process(Pair())
    with pytest.raises(GraphError, match="'soon' is no amount of time"):
        join.between(0, "soon")
    with pytest.raises(GraphError, match=r"side_output_left_late_data\(\) takes an OutputTag, not 'late'"):
        join.between(0, 1).side_output_left_late_data("late")
    with pytest.raises(GraphError, match=r"interval_join\(\) .*takes a KeyedStream"):
        keyed(env, LEFT).interval_join(env.from_collection([1]))
    with pytest.raises(GraphError, match="takes a ProcessJoinFunction, not 'print'"):
        join.between(0, 1).process(print)
    other = env.from_collection([(1, 1)]).key_by(lambda record: record[0], Types.LONG())
    with pytest.raises(TypeMismatchError, match="both streams need one type of key"):
        keyed(env, LEFT).interval_join(other).between(0, 1).process(Pair())


@dataclass
class Click:
    user: str
    at: int

    def __getitem__(self, place):
        return (self.user, self.at)[place]


def test_buffers_of_declared_types_are_not_pickled(caplog):
    env = environment(2)
    env.get_configuration().set_string("state.pickle", "refuse")
    left, right = keyed(env, [Click("a", 1)], Click), keyed(env, RIGHT)
    pairs = left.interval_join(right).between(0, 0).process(Pair(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    assert InProcessJob.of(pairs).run() == [(1, 1)]
    left, right = keyed(env, [Click("a", 1)], None), keyed(env, RIGHT)
    pairs = left.interval_join(right).between(0, 0).process(Pair(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    with pytest.raises(GraphError, match="left elements buffered in 'Interval Join'"):
        build_plan(env._program("refused", pairs._collect()))


@pytest.mark.parametrize(
    ("saved", "bounds"), [((-10, 10), (-100, 100)), ((-100, 100), (-10, 10)), ((0, 10), (-60, -50)), ((-4, 4), (-5, 0))]
)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_elements_saved_with_other_bounds_are_joined_and_forgotten_by_the_new_ones(saved, bounds, parallelism):
    def program(bounds, parallelism):
        env = environment(1)
        left = keyed(env, [("a", 1000), ("a", 1003), ("a", 1007), ("a", 1020), ("a", 1500)])
        right = keyed(env, [("a", 1000), ("a", 1001), ("a", 1006), ("a", 1080), ("a", 1500)])
        between = left.interval_join(right).between(*map(Time.milliseconds, bounds))
        return between.process(Pair()).set_parallelism(parallelism).uid("join")

    before = InProcessJob.of(program(saved, 1), max_records=3)
    checkpoint = before.checkpoint()
    before.kill()
    job = InProcessJob.of(program(bounds, parallelism), restore=checkpoint, max_records=1)
    lower, upper = bounds
    lefts, rights = [1000, 1003, 1007], [1000, 1001, 1006]
    expected = [(one, 1080) for one in lefts if lower <= 1080 - one <= upper]
    expected += [(1020, other) for other in rights if lower <= other - 1020 <= upper]
    expected += [(1020, 1080)] * (lower <= 60 <= upper) + [(1500, 1500)] * (lower <= 0 <= upper)
    assert sorted(job.run()) == sorted(expected)
    keys = [operator.context.keyed.number_of_keys() for operator in _joins(job)]
    timers = [len(operator.context.timers.event) for operator in _joins(job)]
    assert sum(keys) == sum(timers) == 0, "everything is forgotten at the end of time"


def _joins(job):
    operators = [operator for task in job.tasks.values() for operator in task._operators.values()]
    joins = [operator for operator in operators if isinstance(operator, IntervalJoinOperator)]
    for operator in joins:
        operator.context.keyed.forget_changes()
    return joins
