"""Mistakes in programs, each marked with the error that a user's checker gives for its line."""

from __future__ import annotations

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import MapFunction, StreamExecutionEnvironment
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import TumblingEventTimeWindows


class Returns(MapFunction):
    def map(self, value: int, context: int) -> int:  # refused: override
        return value + context


def mistakes() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism("2")  # refused: arg-type
    env.enable_checkpointing()  # refused: call-arg
    env.add_source(lambda: [1])  # refused: arg-type
    numbers = env.from_collection([1, 2], Types.INT())
    numbers.map(5)  # refused: arg-type
    numbers.key_by("name", Types.STRING()).window(5)  # refused: arg-type
    numbers.window(TumblingEventTimeWindows.of(1000))  # refused: attr-defined
    numbers.process(Returns())  # refused: arg-type
    numbers.assign_timestamps_and_watermarks(WatermarkStrategy)  # refused: arg-type
    numbers.uid(7)  # refused: arg-type
    ValueStateDescriptor("count")  # refused: call-arg
