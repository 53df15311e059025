"""A fraud detector, written for PyFlink from Flink's documentation; it runs unchanged on Rekindle.

A small payment that is followed by a large one of the same account within a minute is an alert. Beside the alerts the
job keeps a limit per country in broadcast state, totals per account, and a count of payments per hour.

    rekindle run fraud_detector.py
"""
import argparse
import sys
from typing import Iterable, Tuple

from pyflink.common import Configuration, Duration, Encoder, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from pyflink.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, ReduceFunction
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

SMALL_AMOUNT = 1.00
LARGE_AMOUNT = 500.00
ONE_MINUTE = 60 * 1000
START = 1_700_000_000_000

PAYMENT = Types.ROW_NAMED(
    ["payment", "account", "country", "amount", "at"],
    [Types.LONG(), Types.STRING(), Types.STRING(), Types.DOUBLE(), Types.LONG()],
)
ALERT = Types.ROW_NAMED(["account", "payment", "amount", "seconds"],
                        [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.INT()])
HOURLY = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.INT()])

suspicious = OutputTag("suspicious", Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
damaged = OutputTag("damaged", Types.STRING())


def payment_lines():
    """Lines as another system writes them: a few are damaged."""
    countries = ["DE", "FR", "US", "JP"]
    lines = []
    for number in range(240):
        account = "acc-%02d" % (number * 7 % 12)
        country = countries[number % len(countries)]
        at = START + number * 20_000
        if number % 37 == 5:
            amount = 0.25
        elif number % 37 == 17:
            amount = 700.0 + number
        else:
            amount = 5.0 + (number * 13 % 90)
        lines.append("%d;%s;%s;%.2f;%d" % (number, account, country, amount, at))
    # a small payment, and a large one of the same account half a minute later
    lines.append("240;acc-03;DE;0.40;%d" % (START + 4_800_000))
    lines.append("241;acc-03;DE;950.00;%d" % (START + 4_830_000))
    # the same with more than a minute between them: no alert
    lines.append("242;acc-05;FR;0.80;%d" % (START + 4_840_000))
    lines.append("243;acc-05;FR;999.99;%d" % (START + 4_910_000))
    lines.insert(20, "not a payment")
    lines.insert(90, "17;acc-01;DE")
    return lines


class PaymentTime(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp) -> int:
        return value["at"]


class ParsePayment(FlatMapFunction):
    """Skips the lines that are no payments, and counts them."""

    def __init__(self):
        self.damaged_lines = None

    def open(self, runtime_context: RuntimeContext):
        self.damaged_lines = runtime_context.get_metrics_group().counter("damaged_lines")

    def flat_map(self, value):
        fields = value.split(";")
        if len(fields) != 5:
            self.damaged_lines.inc()
            return
        number, account, country, amount, at = fields
        yield Row(payment=int(number), account=account, country=country, amount=float(amount), at=int(at))


class IsPositive(FilterFunction):

    def filter(self, value):
        return value.amount > 0


class FraudDetector(KeyedProcessFunction):
    """The detector of Flink's documentation, with the time of the small payment in its state."""

    def __init__(self):
        self.small_payment_at = None
        self.cleanup_timer = None
        self.recent = None
        self.spent = None
        self.by_country = None

    def open(self, runtime_context: RuntimeContext):
        ttl = StateTtlConfig.new_builder(Time.hours(24)) \
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite) \
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired) \
            .build()
        small = ValueStateDescriptor("small payment at", Types.LONG())
        small.enable_time_to_live(ttl)
        self.small_payment_at = runtime_context.get_state(small)
        self.cleanup_timer = runtime_context.get_state(ValueStateDescriptor("cleanup timer", Types.LONG()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.DOUBLE()))
        self.spent = runtime_context.get_reducing_state(
            ReducingStateDescriptor("spent", lambda a, b: a + b, Types.DOUBLE()))
        self.by_country = runtime_context.get_map_state(
            MapStateDescriptor("by country", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: 'KeyedProcessFunction.Context'):
        self.spent.add(value.amount)
        seen = self.by_country.get(value.country) if self.by_country.contains(value.country) else 0
        self.by_country.put(value.country, seen + 1)
        recent = (list(self.recent.get() or []) + [value.amount])[-3:]
        self.recent.update(recent)

        small_at = self.small_payment_at.value()
        if small_at is not None:
            if value.amount > LARGE_AMOUNT and ctx.timestamp() - small_at <= ONE_MINUTE:
                yield Row(account=value.account, payment=value.payment, amount=value.amount,
                          seconds=(ctx.timestamp() - small_at) // 1000)
            self.clean_up(ctx)

        if value.amount < SMALL_AMOUNT:
            self.small_payment_at.update(ctx.timestamp())
            timer = ctx.timestamp() + ONE_MINUTE
            ctx.timer_service().register_event_time_timer(timer)
            self.cleanup_timer.update(timer)

        if len(recent) == 3 and sum(recent) > 1000:
            yield suspicious, (value.account, value.payment, round(sum(recent), 2))

    def on_timer(self, timestamp: int, ctx: 'KeyedProcessFunction.OnTimerContext'):
        if self.cleanup_timer.value() == timestamp:
            self.cleanup_timer.clear()
            self.small_payment_at.clear()

    def clean_up(self, ctx):
        timer = self.cleanup_timer.value()
        if timer is not None:
            ctx.timer_service().delete_event_time_timer(timer)
        self.cleanup_timer.clear()
        self.small_payment_at.clear()


class Totals(AggregateFunction):
    """The number of payments, their sum, and the largest."""

    def create_accumulator(self) -> Tuple[int, float, float]:
        return 0, 0.0, 0.0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + value.amount, max(accumulator[2], value.amount)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1], max(a[2], b[2])


class WithWindow(ProcessWindowFunction):

    def process(self, key: str, context: 'ProcessWindowFunction.Context[TimeWindow]',
                elements: Iterable[Tuple[int, float, float]]):
        number, total, _largest = next(iter(elements))
        window = context.window()
        yield key, window.start - START, window.end - START, round(total, 2), number


class LargerPayment(ReduceFunction):

    def reduce(self, value1, value2):
        return value1 if value1.amount >= value2.amount else value2


class Describe(MapFunction):

    def map(self, value):
        return "largest payment of %s: %.2f (%d)" % (value.country, value.amount, value.payment)


def fraud_detector(output_path):
    config = Configuration()
    config.set_string("pipeline.name", "fraud detector")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)

    payments = env.from_collection(payment_lines(), type_info=Types.STRING()) \
        .flat_map(ParsePayment(), output_type=PAYMENT) \
        .filter(IsPositive()) \
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(30))
            .with_timestamp_assigner(PaymentTime()))

    alerts = payments.key_by(lambda payment: payment.account, key_type=Types.STRING()) \
        .process(FraudDetector(), output_type=ALERT) \
        .name("fraud detector")

    hourly = payments.key_by(lambda payment: payment.country, key_type=Types.STRING()) \
        .window(TumblingEventTimeWindows.of(Time.hours(1))) \
        .aggregate(Totals(), window_function=WithWindow(),
                   accumulator_type=Types.TUPLE([Types.LONG(), Types.DOUBLE(), Types.DOUBLE()]),
                   output_type=HOURLY)

    largest = payments.key_by(lambda payment: payment.country, key_type=Types.STRING()) \
        .window(TumblingEventTimeWindows.of(Time.days(1))) \
        .reduce(LargerPayment(), output_type=PAYMENT) \
        .map(Describe(), output_type=Types.STRING())

    if output_path is not None:
        alerts.sink_to(
            FileSink.for_row_format(output_path, Encoder.simple_string_encoder())
            .with_output_file_config(OutputFileConfig.builder().with_part_prefix("alert").build())
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build())
    else:
        alerts.print("alert")
    alerts.get_side_output(suspicious).print("suspicious")
    hourly.print("hourly")
    largest.print("largest")

    env.execute("fraud detector")


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--output', dest='output', required=False, help='Where alerts are written.')
    known_args, _ = parser.parse_known_args(sys.argv[1:])
    fraud_detector(known_args.output)
