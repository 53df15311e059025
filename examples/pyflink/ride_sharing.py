"""Taxi rides, written for PyFlink from Flink's training exercises; it runs unchanged on Rekindle.

Rides begin and end; the job joins both ends, computes fares, warns with a timer about rides that have not ended after
two hours, sends rides that make no sense to a side output, joins drivers with their shifts, and counts per area.

    rekindle run ride_sharing.py
"""
from typing import Iterable

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.functions import KeySelector
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import SlidingEventTimeWindows, TimeWindow

MINUTE = 60 * 1000
TWO_HOURS = 120 * MINUTE
START = 1_600_000_000_000

AREA = Types.TUPLE([Types.INT(), Types.LONG(), Types.INT(), Types.BOOLEAN()])

senseless = OutputTag("senseless", Types.STRING())
long_rides = OutputTag("long rides", Types.TUPLE([Types.LONG(), Types.LONG()]))


def event_type():
    """Made anew where it is needed: a type that a stream uses cannot be pickled with a function."""
    return Types.ROW_NAMED(
        ["ride", "is_start", "at", "driver", "longitude", "latitude", "passengers"],
        [Types.LONG(), Types.BOOLEAN(), Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.DOUBLE(), Types.SHORT()],
    )


def ride_type():
    return Types.TUPLE([Types.LONG(), Types.LONG(), Types.INT(), Types.DOUBLE()])


def ride_events():
    """Starts and ends of 60 rides in the order of their times, some without an end, some without sense."""
    events = []
    for ride in range(60):
        driver = 2000 + ride % 9
        begins = START + ride * 3 * MINUTE
        lasts = (4 + ride * 11 % 50) * MINUTE
        west, south = -73.9 + (ride % 10) * 0.01, 40.7 + (ride % 7) * 0.01
        passengers = 0 if ride % 19 == 7 else 1 + ride % 4
        events.append((ride, True, begins, driver, west, south, passengers))
        if ride % 14 != 3:
            events.append((ride, False, begins + lasts, driver, west + 0.02, south + 0.01, passengers))
    # an end without a start, and a place in the sea
    events.append((900, False, START + 50 * MINUTE, 2001, -73.9, 40.7, 1))
    events.append((901, True, START + 55 * MINUTE, 2002, 0.0, 0.0, 2))
    return sorted(events, key=lambda event: (event[2], event[0]))


def shifts():
    return [(2000 + number, "shift-%s" % "ABC"[number % 3]) for number in range(9)]


class EventTime(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp) -> int:
        return value[2]


class RideOf(KeySelector):

    def get_key(self, value):
        return value.ride


class CheckPlace(ProcessFunction):
    """Sends events that make no sense to a side output."""

    def process_element(self, value, ctx: 'ProcessFunction.Context'):
        if not -75 < value.longitude < -72:
            yield senseless, "ride %d is at (%.1f, %.1f)" % (value.ride, value.longitude, value.latitude)
        elif value.passengers == 0:
            yield senseless, "ride %d has no passengers" % value.ride
        else:
            yield value


class JoinEnds(KeyedProcessFunction):
    """One record per ride; a ride that has not ended two hours after its start is reported by a timer."""

    def __init__(self):
        self.start = None
        self.timer = None

    def open(self, runtime_context: RuntimeContext):
        self.start = runtime_context.get_state(ValueStateDescriptor("start", event_type()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx: 'KeyedProcessFunction.Context'):
        if value.is_start:
            self.start.update(value)
            due = ctx.timestamp() + TWO_HOURS
            ctx.timer_service().register_event_time_timer(due)
            self.timer.update(due)
            return
        start = self.start.value()
        if start is None:
            yield senseless, "ride %d ends without a start" % value.ride
            return
        ctx.timer_service().delete_event_time_timer(self.timer.value())
        minutes = (value.at - start.at) // MINUTE
        yield value.ride, value.driver, minutes, self.fare(minutes, value.passengers)
        self.start.clear()
        self.timer.clear()

    def on_timer(self, timestamp: int, ctx: 'KeyedProcessFunction.OnTimerContext'):
        start = self.start.value()
        if start is not None:
            yield long_rides, (ctx.get_current_key(), (timestamp - START) // MINUTE)
            self.start.clear()
            self.timer.clear()

    @staticmethod
    def fare(minutes, passengers):
        return round(2.5 + minutes * 0.8 + (passengers - 1) * 0.5, 2)


class WithShift(KeyedCoProcessFunction):
    """Rides of a driver with the driver's shift, whichever comes first."""

    def __init__(self):
        self.waiting = None
        self.shift = None

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", ride_type()))
        self.shift = runtime_context.get_state(ValueStateDescriptor("shift", Types.STRING()))

    def process_element1(self, value, ctx: 'KeyedCoProcessFunction.Context'):
        shift = self.shift.value()
        if shift is None:
            self.waiting.add(value)
        else:
            yield self.line(value, shift)

    def process_element2(self, value, ctx: 'KeyedCoProcessFunction.Context'):
        self.shift.update(value[1])
        for ride in self.waiting.get():
            yield self.line(ride, value[1])
        self.waiting.clear()

    @staticmethod
    def line(ride, shift):
        return "driver %d in %s: ride %d, %d min, %.2f" % (ride[1], shift, ride[0], ride[2], ride[3])


class AreaOf(MapFunction):
    """The area on a grid, the time, one, and whether the event is a start."""

    def map(self, value):
        area = int((value.longitude + 75) * 50) * 1000 + int((value.latitude - 40) * 50)
        return area, value.at, 1, value.is_start


class CountInWindow(ProcessWindowFunction):

    def process(self, key: int, context: 'ProcessWindowFunction.Context[TimeWindow]', elements: Iterable[tuple]):
        elements = list(elements)
        starts = sum(1 for element in elements if element[3])
        ends = len(elements) - starts
        if starts + ends >= 3:
            minute = (context.window().end - START) // MINUTE
            yield Row(key, minute, starts, ends)


class Both(CoMapFunction):
    """The lines of two streams in one."""

    def map1(self, value):
        return "senseless: " + value

    def map2(self, value):
        return "never ended: ride %d, noticed in minute %d" % (value[0], value[1])


def ride_sharing():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    events = env.from_collection(ride_events(), type_info=event_type()) \
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
            .with_timestamp_assigner(EventTime()))
    checked = events.process(CheckPlace(), output_type=event_type())
    rides = checked.key_by(RideOf(), key_type=Types.LONG()) \
        .process(JoinEnds(), output_type=ride_type())

    drivers = env.from_collection(shifts(), type_info=Types.TUPLE([Types.LONG(), Types.STRING()]))
    with_shifts = rides.connect(drivers) \
        .key_by(lambda ride: ride[1], lambda shift: shift[0], key_type=Types.LONG()) \
        .process(WithShift(), output_type=Types.STRING())

    busy = checked.map(AreaOf(), output_type=AREA) \
        .key_by(lambda area: area[0], key_type=Types.INT()) \
        .window(SlidingEventTimeWindows.of(Time.minutes(60), Time.minutes(30))) \
        .process(CountInWindow(), Types.ROW([Types.INT(), Types.LONG(), Types.INT(), Types.INT()]))

    earnings = rides.map(lambda ride: (ride[1], ride[3]), output_type=Types.TUPLE([Types.LONG(), Types.DOUBLE()])) \
        .key_by(lambda ride: ride[0], key_type=Types.LONG()) \
        .reduce(lambda a, b: (a[0], round(a[1] + b[1], 2)))

    problems = checked.get_side_output(senseless).union(rides.get_side_output(senseless)) \
        .connect(rides.get_side_output(long_rides)) \
        .map(Both(), output_type=Types.STRING())

    with_shifts.print("ride")
    busy.print("busy")
    earnings.print("earned")
    problems.print("problem")
    env.execute("ride sharing")


if __name__ == '__main__':
    ride_sharing()
