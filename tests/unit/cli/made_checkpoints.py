"""Real checkpoints in a directory, made in this process: counts per key, and more of them a checkpoint later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Types
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rekindle.testing import InProcessJob

#: Key and amount; the first checkpoint is after FIRST of them, the second after all.
SALES = [("ada", 1), ("ben", 2), ("ada", 3), ("4711", 4), ("eve", 5), ("ada", 6)]
FIRST = 4


class AddUp(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.kinds = runtime_context.get_map_state(MapStateDescriptor("kinds", Types.STRING(), Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        self.kinds.put("odd" if value[1] % 2 else "even", value[1])
        ctx.timer_service().register_processing_time_timer(10**15)
        yield value


@dataclass(frozen=True)
class Made:
    """A directory with two checkpoints and a savepoint."""

    directory: Path
    first: str
    second: str
    savepoint: str


def make_checkpoints(directory: Path) -> Made:
    """Run the job to its end, with checkpoints on the way."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_parallelism(8)
    env.enable_checkpointing(1000)
    sales = env.from_collection(SALES, Types.TUPLE([Types.STRING(), Types.LONG()])).uid("sales")
    totals = sales.key_by(lambda sale: sale[0], Types.STRING()).process(AddUp()).name("totals").uid("totals")
    job = InProcessJob.of(totals, max_records=FIRST)
    job._lineage.store = LocalStore(directory)
    first = job.checkpoint()
    job.epoch()
    second = job.checkpoint()
    savepoint = job.checkpoint(savepoint=True)
    assert savepoint.manifest
    job.kill()
    return Made(directory, *(f"file://{directory}/{each.path}" for each in (first, second, savepoint)))
