"""A cluster for tests of the whole coordinator: its slots speak the control protocol on threads of this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from rekindle import wire
from rekindle.common.accumulators import encode_accumulators
from rekindle.coordinator.cluster import EpochRun
from rekindle.graph.nodes import JobPlan
from rekindle.protocol import (
    Closed,
    CloseTasks,
    Deploy,
    Deployed,
    DriverHeartbeat,
    Message,
    SlotHeartbeat,
    SlotHello,
    SlotLaunch,
    StageReport,
    TaskReport,
    decode_from_driver,
    encode,
)


class PlayedSlot:
    """Answers the driver's messages, heartbeats too, until it is mute; it takes part in no checkpoint."""

    def __init__(self, launch: SlotLaunch) -> None:
        self.mute = False
        self._connection = wire.connect_tcp(launch.driver_host, launch.driver_port, launch.secret)
        self.send(SlotHello(launch.job_id, launch.attempt, launch.slot, 1, "here", "boot", "/nowhere", 0))
        threading.Thread(target=self._follow, name="played slot", daemon=True).start()

    def send(self, message: Message) -> None:
        """Send to the driver, unless the slot is mute or the connection has ended."""
        if not self.mute:
            with contextlib.suppress(OSError):
                self._connection.send(encode(message))

    def _follow(self) -> None:
        with contextlib.closing(self._connection), contextlib.suppress(OSError):
            while True:
                match decode_from_driver(self._connection.receive()):
                    case Deploy():
                        self.send(Deployed())
                    case DriverHeartbeat():
                        self.send(SlotHeartbeat())
                    case CloseTasks():
                        self.send(Closed(encode_accumulators(())))
                        return


class PlayedCluster:
    """Implements `coordinator.cluster.Cluster`: each epoch reports at once that its tasks have nothing to do."""

    def __init__(self, plan: JobPlan) -> None:
        self._plan = plan
        self.slots: list[PlayedSlot] = []
        #: The checkpoints whose barriers came with the epochs.
        self.barriers: list[int] = []

    def prepare(self, cancelled: threading.Event) -> None:
        """There is nothing to prepare."""

    def driver_host(self) -> str:
        return "127.0.0.1"

    def start_slots(self, launches: Sequence[SlotLaunch]) -> None:
        self.slots = [PlayedSlot(launch) for launch in launches]

    def run_epoch(self, run: EpochRun) -> list[bytes]:
        for number, slot in enumerate(self.slots):
            for stage in range(len(run.stage_names)):
                tasks = [
                    TaskReport(chain.id, subtask, 0, 0, 0, False, 0.0)
                    for chain in self._plan.chains
                    for subtask in range(chain.parallelism)
                    if chain.stage == stage and self._plan.placement[chain.id, subtask] == number
                ]
                slot.send(StageReport(run.epoch, stage, [], [], tasks, more=False))
        if run.checkpoint is not None:
            self.barriers.append(run.checkpoint.id)
        return []

    def cancel_epoch(self) -> None:
        """Epochs end at once."""

    def close(self) -> None:
        """Nothing was taken."""
