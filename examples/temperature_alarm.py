"""An alarm for each reading that is far from the sensor's last one: one value of keyed state per sensor.

    python -m examples.temperature_alarm --readings 20000 --rate 2000 --directory alarms
    python -m examples.temperature_alarm --readings 20000 --directory alarms --resume     # after it was killed

While it runs, kill a process (`kill -9`). After a slot is killed, the job restarts by itself. After this program is
killed, run it again with `--resume`, also with another `--parallelism`. At the end the alarms are compared with those
that plain Python finds in the same readings.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from examples.small import at_least_1, directory_of, environment_of, parser_of, rate_of, report, write
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import DataStream, RichFlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueState, ValueStateDescriptor

SENSORS = 20


@dataclass(frozen=True)
class Reading:
    """A temperature that a sensor measured."""

    sensor: str
    celsius: float


@dataclass(frozen=True)
class Alarm:
    """Two readings of a sensor, one after the other, that are too far apart."""

    sensor: str
    before: float
    after: float


@dataclass(frozen=True)
class Readings:
    """Reading number n of a seed: the same in every run and every process, so that a source can continue anywhere.

    >>> Readings(7)(12) == Readings(7)(12)
    True
    """

    seed: int

    def __call__(self, number: int) -> Reading:
        draw = random.Random(self.seed * 1_000_003 + number)
        return Reading(f"sensor-{draw.randrange(SENSORS)}", round(draw.gauss(20.0, 3.0), 1))


class TemperatureAlarm(RichFlatMapFunction):
    """Keeps each sensor's last temperature, and emits an alarm when the next one is too far from it."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last-temperature", Types.DOUBLE())
        self._last: ValueState[float] = self.get_runtime_context().get_state(descriptor)

    def flat_map(self, value: Reading) -> Iterator[Alarm]:
        last = self._last.value()
        if last is not None and abs(value.celsius - last) > self._threshold:
            yield Alarm(value.sensor, last, value.celsius)
        self._last.update(value.celsius)


def build(
    env: StreamExecutionEnvironment,
    seed: int,
    readings: int,
    threshold: float,
    limit: RateLimiterStrategy | None = None,
) -> DataStream:
    """The stream of alarms. One subtask reads, so that a sensor's readings keep their order at any parallelism."""
    source = DataGeneratorSource(Readings(seed), readings, limit or RateLimiterStrategy.no_op())
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings", Reading)
    keyed = stream.uid("readings").set_parallelism(1).key_by(lambda reading: reading.sensor, Types.STRING())
    return keyed.flat_map(TemperatureAlarm(threshold), Alarm).name("alarm").uid("alarm")


def expected(readings: Iterable[Reading], threshold: float) -> Iterator[Alarm]:
    """The alarms as plain Python finds them.

    >>> list(expected([Reading("a", 20.0), Reading("b", 40.0), Reading("a", 31.0)], threshold=10))
    [Alarm(sensor='a', before=20.0, after=31.0)]
    """
    last: dict[str, float] = {}
    for reading in readings:
        before = last.get(reading.sensor)
        if before is not None and abs(reading.celsius - before) > threshold:
            yield Alarm(reading.sensor, before, reading.celsius)
        last[reading.sensor] = reading.celsius


def main() -> int:
    """Run the job to its end and compare."""
    parser = parser_of("An alarm for each temperature that is far from the sensor's last one.")
    parser.add_argument("--readings", type=at_least_1, default=20_000, help="how many (default 20,000)")
    parser.add_argument("--threshold", type=float, default=8.0, help="degrees between two readings (default 8)")
    arguments = parser.parse_args()
    directory = directory_of(arguments)
    env = environment_of(arguments, directory)
    write(build(env, arguments.seed, arguments.readings, arguments.threshold, rate_of(arguments)), directory)
    env.execute("temperature-alarm")
    return report(directory, expected(map(Readings(arguments.seed), range(arguments.readings)), arguments.threshold))


if __name__ == "__main__":
    sys.exit(main())
