"""Sessions of a web site's visitors with late events, written for PyFlink from Flink's documentation.

Clicks come as JSON, a few of them late. The job counts clicks per session, keeps late ones in a side output, reports
the first visit of each visitor, and finds the most visited pages per window over all visitors.

    rekindle run web_sessions.py
"""
import json
import time
from typing import Dict, Iterable, List, Tuple

from pyflink.common import Configuration, Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.state import AggregatingStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TimeWindow,
    TumblingEventTimeWindows,
)

SECOND = 1000
GAP = 30 * SECOND
START = 1_650_000_000_000

SESSION = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT(), Types.LONG()])



def click_type():
    """Made anew where it is needed: a type that a stream uses cannot be pickled with an operator."""
    return Types.ROW_NAMED(
        ["visitor", "page", "at", "bytes", "is_mobile"],
        [Types.STRING(), Types.STRING(), Types.LONG(), Types.INT(), Types.BOOLEAN()],
    )


late_clicks = OutputTag("late clicks", click_type())


def click_lines() -> List[str]:
    """Clicks in the order in which they arrive; the last ones of each part wait for a watermark, and are late."""
    pages = ["/", "/cart", "/help", "/item/1", "/item/2", "/pay"]
    lines = []
    for number in range(150):
        visitor = "visitor-%d" % (number * 5 % 8)
        # every fortieth click there is a pause of all visitors, which ends their sessions
        at = START + number * 2 * SECOND + (number // 40) * 90 * SECOND
        lines.append(click(visitor, pages[number * 7 % len(pages)], at, 100 + number, number % 3 == 0))
        if number % 50 == 49:
            lines.append("{damaged")
    # The pause lets the watermark pass: what follows is older than all sessions of its visitor.
    lines.append("pause")
    lines.append(click("visitor-1", "/late", START + 5 * SECOND, 1, False))
    lines.append(click("visitor-2", "/late", START + 7 * SECOND, 2, True))
    lines.append(click("visitor-9", "/", START + 700 * SECOND, 3, True))
    lines.append("pause")
    lines.append(click("visitor-3", "/late", START + 100 * SECOND, 4, False))
    return lines


def click(visitor: str, page: str, at: int, size: int, is_mobile: bool) -> str:
    return json.dumps({"visitor": visitor, "page": page, "at": at, "bytes": size, "is_mobile": is_mobile})


class ClickTime(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp) -> int:
        return value.at


class ParseClick(FlatMapFunction):
    """Skips what is no JSON; a pause lasts long enough for a watermark to be emitted."""

    def flat_map(self, value):
        if value == "pause":
            time.sleep(1.5)
            return
        try:
            parsed = json.loads(value)
        except ValueError:
            return
        yield Row(visitor=parsed["visitor"], page=parsed["page"], at=parsed["at"], bytes=parsed["bytes"],
                  is_mobile=parsed["is_mobile"])


class SessionTotals(AggregateFunction):
    """Clicks and bytes of a session, and the pages in it."""

    def create_accumulator(self) -> Tuple[int, int, Dict[str, int]]:
        return 0, 0, {}

    def add(self, value, accumulator):
        clicks, size, pages = accumulator
        pages = dict(pages)
        pages[value.page] = pages.get(value.page, 0) + 1
        return clicks + 1, size + value.bytes, pages

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        pages = dict(a[2])
        for page, count in b[2].items():
            pages[page] = pages.get(page, 0) + count
        return a[0] + b[0], a[1] + b[1], pages


class DescribeSession(ProcessWindowFunction):

    def process(self, key: str, context: 'ProcessWindowFunction.Context[TimeWindow]', elements: Iterable[tuple]):
        clicks, size, _pages = next(iter(elements))
        window = context.window()
        yield key, (window.start - START) // SECOND, (window.end - START) // SECOND, clicks, size


class MobileGap(SessionWindowTimeGapExtractor):
    """Visitors with a phone come back later: their sessions have a longer gap."""

    def extract(self, element) -> int:
        return 2 * GAP if element.is_mobile else GAP


class CountClicks(ProcessWindowFunction):

    def process(self, key: str, context: 'ProcessWindowFunction.Context[TimeWindow]', elements: Iterable[Row]):
        pages = sorted({element.page for element in elements})
        yield "%s saw %d pages until second %d: %s" % (
            key, len(pages), (context.window().end - START) // SECOND, " ".join(pages))


class MostVisited(ProcessAllWindowFunction):
    """The two pages with most clicks; of pages with as many the one that comes first in the alphabet."""

    def process(self, context: 'ProcessAllWindowFunction.Context', elements: Iterable[Row]):
        counts: Dict[str, int] = {}
        for element in elements:
            counts[element.page] = counts.get(element.page, 0) + 1
        best = sorted(counts.items(), key=lambda page: (-page[1], page[0]))[:2]
        yield (context.window().end - START) // SECOND, [page for page, _ in best], sum(counts.values())


class Mean(AggregateFunction):

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class FirstVisits(KeyedProcessFunction):
    """The first click of each visitor, and every tenth one with the mean size so far."""

    def __init__(self):
        self.clicks = None
        self.mean = None
        self.pages = None

    def open(self, runtime_context: RuntimeContext):
        self.clicks = runtime_context.get_state(ValueStateDescriptor("clicks", Types.INT()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()])))
        self.pages = runtime_context.get_map_state(
            MapStateDescriptor("pages", Types.STRING(), Types.BOOLEAN()))

    def process_element(self, value, ctx: 'KeyedProcessFunction.Context'):
        number = (self.clicks.value() or 0) + 1
        self.clicks.update(number)
        self.mean.add(value.bytes)
        if value.page not in self.pages:
            self.pages[value.page] = True
        if number == 1:
            yield "welcome, %s" % ctx.get_current_key()
        elif number % 10 == 0:
            known = len(list(self.pages.keys()))
            yield "%s: %d clicks on %d pages, %.1f bytes" % (ctx.get_current_key(), number, known, self.mean.get())


class DescribeLate(MapFunction):

    def map(self, value):
        return value.visitor, value.page, (value.at - START) // SECOND


def web_sessions():
    config = Configuration()
    # one element per bundle, so that a pause lets the watermark pass before the next element
    config.set_integer("python.fn-execution.bundle.size", 1)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)

    clicks = env.from_collection(click_lines(), type_info=Types.STRING()) \
        .flat_map(ParseClick(), output_type=click_type()) \
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10))
            .with_timestamp_assigner(ClickTime()))
    by_visitor = clicks.key_by(lambda value: value.visitor, key_type=Types.STRING())

    sessions = by_visitor.window(EventTimeSessionWindows.with_gap(Time.seconds(30))) \
        .allowed_lateness(5 * SECOND) \
        .side_output_late_data(late_clicks) \
        .aggregate(SessionTotals(), window_function=DescribeSession(), output_type=SESSION)
    pages = by_visitor.window(EventTimeSessionWindows.with_dynamic_gap(MobileGap())) \
        .process(CountClicks(), Types.STRING())
    popular = clicks.window_all(TumblingEventTimeWindows.of(Time.minutes(2))) \
        .process(MostVisited(), Types.TUPLE([Types.LONG(), Types.LIST(Types.STRING()), Types.INT()]))
    visits = by_visitor.process(FirstVisits(), output_type=Types.STRING())

    sessions.print("session")
    sessions.get_side_output(late_clicks) \
        .map(DescribeLate(), output_type=Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])) \
        .print("late")
    pages.print("pages")
    popular.print("popular")
    visits.print("visit")
    env.execute("web sessions")


if __name__ == '__main__':
    web_sessions()
