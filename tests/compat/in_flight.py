"""A checkpoint with records in flight that later versions have to go on from.

    python -m tests.compat.in_flight tests/data/in_flight/0.1.0

Run it once for each release with a new format, never to make a test pass again: what is in the repository stands for
what users have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rekindle.common import Configuration, Types
from rekindle.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.testing import InProcessCheckpoint, InProcessJob, ManualClock
from tests.compat.make_checkpoints import needed

COUNT, KEYS = 40, 4
CLOCK = ManualClock()
EXPECTED = sorted((key, n + 1) for key in range(KEYS) for n in range(COUNT // KEYS))


class SlowCount(KeyedProcessFunction):
    """Takes a second per record."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        CLOCK.advance(1000)
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def program(parallelism: int, **settings: str) -> DataStream:
    """Counts per key."""
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env.enable_checkpointing(1000).get_checkpoint_config().enable_unaligned_checkpoints()
    numbers = env.from_collection(list(range(COUNT)), Types.INT()).uid("numbers")
    pairs = Types.TUPLE([Types.INT(), Types.INT()])
    return numbers.key_by(lambda n: n % KEYS, Types.INT()).process(SlowCount(), pairs).uid("count")


def interrupted() -> InProcessCheckpoint:
    """A checkpoint after three records of each subtask; the others are in flight."""
    job = InProcessJob.of(program(2), CLOCK)
    checkpoint = job.checkpoint(leave_after_ms=3000)
    assert job.in_flight == COUNT - 6
    job.kill()
    return checkpoint


def write(target: Path) -> None:
    """`checkpoint.zip`."""
    target.mkdir(parents=True)
    taken = interrupted()
    assert taken.manifest.operators
    with ZipFile(target / "checkpoint.zip", "w") as archive:
        for path in needed(taken):
            archive.writestr(ZipInfo(path), taken.store.read(path), ZIP_DEFLATED)


if __name__ == "__main__":
    # What belongs to `__main__` is shipped by value, and the function would turn a clock of its own.
    from tests.compat import in_flight

    in_flight.write(Path(sys.argv[1]))
