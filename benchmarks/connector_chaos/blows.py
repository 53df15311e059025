"""Carries out kills: finds or pauses the process in the phase of the plan, kills it, and lets the job recover."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.connector_chaos.feed import Feed
from benchmarks.connector_chaos.kill_plan import Kill, Phase, Victim
from benchmarks.connector_chaos.processes import Driver, wait_for

#: How long a phase may take to come, and the job to recover, on a busy machine.
_DEADLINE_S = 180.0
_PARALLELISMS = (2, 3, 1)


class Server(Protocol):
    """A server that is killed and comes back on its address with its data."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def kill(self) -> None:
        """Kill it with SIGKILL."""

    def restart(self) -> object:
        """Start it again; returns when it answers."""


@dataclass
class Scene:
    """The processes of a run, and the kills so far."""

    driver: Driver
    servers: Mapping[Victim, Server]
    feed: Feed
    chance: random.Random
    say: Callable[[str], None]
    done: list[Kill] = field(default_factory=list)
    _dead: list[Server] = field(default_factory=list)

    def carry_out(self, kill: Kill) -> None:
        """Kill one process in its phase, then wait until a checkpoint completes again."""
        if kill.phase is Phase.RESTORE:
            self._restore_with(kill)
        elif kill.point is None:
            self._kill_while_flowing(kill)
        else:
            self._arm(kill)
            self._finish_armed(kill)
        self._recover()
        self.done.append(kill)

    # -- the phases ---------------------------------------------------------------------------------------------------

    def _kill_while_flowing(self, kill: Kill) -> None:
        seen = self.driver.completions
        self._await(lambda: self.driver.completions > seen, "a checkpoint to complete")
        time.sleep(self.chance.uniform(0.0, 0.5))
        match kill.victim:
            case Victim.SLOT:
                victim = self.chance.choice(self.driver.slots())
                self._tell(kill, victim.pid)
                victim.kill()
            case Victim.DRIVER:
                self._tell(kill, self.driver.pid)
                self.driver.kill()
            case _:
                self._kill_server(kill)

    def _restore_with(self, kill: Kill) -> None:
        """Make the job restore by another kill, and kill the process of the plan meanwhile."""
        self._await(lambda: self.driver.completed, "a checkpoint to restore")
        if kill.victim is Victim.DRIVER:
            self.driver.kill()
            self._arm(kill)
            self._start_driver()
        else:
            self._await(self.driver.slots, "slots")
            self._arm(kill)
            self.chance.choice(self.driver.slots()).kill()
        self._finish_armed(kill)

    def _arm(self, kill: Kill) -> None:
        file = self.driver.crash_file
        written = file.with_suffix(".new")
        written.write_text(kill.order())
        written.rename(file)

    def _finish_armed(self, kill: Kill) -> None:
        """Wait until a process has taken the order; if a server is to die, that process is paused meanwhile."""
        pid = self._await_taken()
        if not kill.victim.is_server:
            self._tell(kill, pid)
            if kill.victim is Victim.DRIVER:
                self.driver.wait()
            return
        try:
            self._kill_server(kill)
        finally:
            os.kill(pid, signal.SIGCONT)

    def _await_taken(self) -> int:
        folder, name = self.driver.crash_file.parent, self.driver.crash_file.name

        def taken() -> list[str]:
            found = [each.removeprefix(f"{name}.") for each in os.listdir(folder)]
            return [each for each in found if each.isdigit()]

        wait_for(taken, _DEADLINE_S, "a process to reach the point of the kill")
        (pid,) = taken()
        os.unlink(folder / f"{name}.{pid}")
        return int(pid)

    def _kill_server(self, kill: Kill) -> None:
        server = self.servers[kill.victim]
        self._tell(kill, server.pid)
        server.kill()
        self._dead.append(server)

    # -- afterwards ---------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        while self._dead:
            time.sleep(self.chance.uniform(0.0, 2.0))
            self._dead.pop().restart()
        if not self.driver.is_running():
            self._start_driver()
        seen = self.driver.completions
        self._await(lambda: self.driver.completions > seen + 1, "two checkpoints after a kill")

    def _await(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that only a living driver does."""

        def holds() -> object:
            assert self.driver.is_running(), f"the driver ended by itself, before {what}"
            return condition()

        wait_for(holds, _DEADLINE_S, what)

    def _start_driver(self) -> None:
        others = [each for each in _PARALLELISMS if each != self.driver.parallelism]
        self.driver.start(self.chance.choice(others))

    def _tell(self, kill: Kill, pid: int) -> None:
        """Print a kill. One that hits an idle or finished job proves nothing: it fails the run."""
        assert self.feed.is_flowing, "the input ended before the last kill: give more records, or fewer kills"
        where = f" at {kill.point.value}" if kill.point is not None else ""
        state = f"checkpoint {self.driver.completed} complete, {self.driver.triggered} triggered"
        self.say(f"{kill.victim:8} {pid:>8}  {kill.phase}{where}; {state}; {self.feed.sent} records sent")
