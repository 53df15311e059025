"""Counts numbers per parity, and emits a count when it is complete; `counting.py TOTAL [PER_SECOND]`."""

from __future__ import annotations

import sys

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueStateDescriptor

TOTAL = int(sys.argv[1])
RATE = RateLimiterStrategy.per_second(float(sys.argv[2])) if len(sys.argv) > 2 else RateLimiterStrategy.no_op()


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value < 0:
            raise ValueError(f"{value} is no number to count")
        if count == TOTAL // 2:
            yield f"parity {ctx.get_current_key()}: {count}"


env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda n: n if TOTAL > 0 else -n - 1, abs(TOTAL), RATE)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
numbers.key_by(lambda n: n % 2, int).process(Count(), Types.STRING()).name("count").uid("count").print()
env.execute("counting")
