"""Each record with the number of records of its key so far: a count per key in keyed state.

    python -m examples.count_per_key --words 20000 --rate 2000 --directory counts
    python -m examples.count_per_key --words 20000 --directory counts --resume     # after it was killed

While it runs, kill a process (`kill -9`). After a slot is killed, the job restarts by itself. After this program is
killed, run it again with `--resume`, also with another `--parallelism`. At the end the counts are compared with those
of plain Python: for each word 1, 2, 3, ... and no number twice.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from examples.small import at_least_1, directory_of, environment_of, parser_of, rate_of, report, write
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import DataStream, RichMapFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueState, ValueStateDescriptor

WORDS = ("to", "be", "or", "not", "that", "is", "the", "question")
COUNTED = Types.TUPLE([Types.STRING(), Types.LONG()])


@dataclass(frozen=True)
class Words:
    """Word number n of a seed: the same in every run and every process, so that a source can continue anywhere.

    >>> Words(7)(12) == Words(7)(12)
    True
    """

    seed: int

    def __call__(self, number: int) -> str:
        return random.Random(self.seed * 1_000_003 + number).choice(WORDS)


class CountPerKey(RichMapFunction):
    """Counts the records of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("my-count", Types.LONG())
        self._count: ValueState[int] = self.get_runtime_context().get_state(descriptor)

    def map(self, value: str) -> tuple[str, int]:
        current = self._count.value()
        counted = 1 if current is None else current + 1
        self._count.update(counted)
        return value, counted


def build(
    env: StreamExecutionEnvironment, seed: int, words: int, limit: RateLimiterStrategy | None = None
) -> DataStream:
    """The stream of the words, each with its count so far."""
    source = DataGeneratorSource(Words(seed), words, limit or RateLimiterStrategy.no_op())
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "words", Types.STRING()).uid("words")
    keyed = stream.key_by(lambda word: word, Types.STRING())
    return keyed.map(CountPerKey(), COUNTED).name("count per key").uid("count-per-key")


def expected(words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The words with their counts so far, in plain Python.

    >>> list(expected(["to", "be", "to"]))
    [('to', 1), ('be', 1), ('to', 2)]
    """
    counts: Counter[str] = Counter()
    for word in words:
        counts[word] += 1
        yield word, counts[word]


def main() -> int:
    """Run the job to its end and compare."""
    parser = parser_of("Each word with the number of times that it has come so far.")
    parser.add_argument("--words", type=at_least_1, default=20_000, help="how many (default 20,000)")
    arguments = parser.parse_args()
    directory = directory_of(arguments)
    env = environment_of(arguments, directory)
    write(build(env, arguments.seed, arguments.words, rate_of(arguments)), directory)
    env.execute("count-per-key")
    return report(directory, expected(map(Words(arguments.seed), range(arguments.words))))


if __name__ == "__main__":
    sys.exit(main())
