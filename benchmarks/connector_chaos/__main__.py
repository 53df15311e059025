"""The command: `python -m benchmarks.connector_chaos --seed 7`."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.connector_chaos.blows import Scene, Server
from benchmarks.connector_chaos.comparison import difference
from benchmarks.connector_chaos.feed import Feed
from benchmarks.connector_chaos.job import PARTITIONS
from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from benchmarks.connector_chaos.outputs import KINDS, Output, Written, open_output
from benchmarks.connector_chaos.processes import Driver
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET

#: How long a kill and the recovery from it take, at first guess; measured as the run goes on.
_SECONDS_PER_KILL = 15.0
_READ_DEADLINE_S = 600.0


@dataclass(frozen=True)
class Run:
    """What the command line asks for, and a folder for the run's files."""

    seed: int
    records: int
    kills: int
    scratch: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job with kills and without, and compare. The exit code is 0 if all outputs are equal."""
    options = _parse(arguments)
    with ExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(prefix="rk-chaos-", ignore_cleanup_errors=True)
        run = Run(options.seed, options.records, options.kills, Path(stack.enter_context(scratch)))
        broker = stack.enter_context(KafkaBroker())
        broker.create_topic("numbers", PARTITIONS)
        outputs = {kind: stack.enter_context(open_output(kind, broker)) for kind in dict.fromkeys(options.output)}
        for output, name in product(outputs.values(), ("with-kills", "without-kills")):
            output.create(name)
        disturbed = _with_kills(run, broker, outputs)
        undisturbed = _without_kills(run, broker, outputs)
    equal = [_is_equal(kind, disturbed[kind], undisturbed[kind]) for kind in outputs]
    return 0 if all(equal) else 1


def _is_equal(kind: str, disturbed: Written, undisturbed: Written) -> bool:
    wrong = difference(disturbed, undisturbed)
    entries = sum(map(len, disturbed.values()))
    equal = f"{entries} entries under {len(disturbed)} keys in {kind}, each once and in order."
    print(f"Different in {kind}: {wrong}" if wrong else f"Equal: {equal}")
    return wrong is None


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connector_chaos")
    parser.add_argument("--seed", type=int, default=1, help="chooses processes, phases and moments")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10, help="kills of each kind of process")
    parser.add_argument("--output", nargs="+", choices=KINDS, default=list(KINDS), help="where the job writes")
    return parser.parse_args(arguments)


def _with_kills(run: Run, broker: KafkaBroker, outputs: Mapping[str, Output]) -> dict[str, Written]:
    servers: dict[Victim, Server] = {Victim.BROKER: broker}
    for output in outputs.values():
        servers |= output.servers
    commits = any(output.commits for output in outputs.values())
    plan = plan_kills(run.seed, run.kills, [Victim.SLOT, Victim.DRIVER, *servers], commits=commits)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", flush=True)

    driver = Driver(_job_arguments(broker, outputs, "with-kills", run.scratch), run.scratch, run.scratch / "crash")
    feed = Feed(broker.client() | QUIET, "numbers", run.records)
    feed.outlast(len(plan) * _SECONDS_PER_KILL)
    feed.start()
    scene = Scene(driver, servers, feed, random.Random(run.seed), say)
    try:
        driver.start(2)
        for number, kill in enumerate(plan):
            scene.carry_out(kill)
            per_kill_s = (time.monotonic() - begun) / (number + 1)
            feed.outlast(1.1 * per_kill_s * (len(plan) - number - 1))
        _check_phases(scene, run.kills, 2 + len(servers))
        feed.finish()
        say(f"all {run.records} records are sent")
        return _read(outputs, "with-kills", run.records)
    except BaseException:
        print(driver.tail(), file=sys.stderr)
        raise
    finally:
        driver.end()


def _job_arguments(broker: KafkaBroker, outputs: Mapping[str, Output], name: str, scratch: Path) -> list[str]:
    places = json.dumps([output.arguments(name) for output in outputs.values()])
    return [broker.bootstrap_servers, "numbers", name, places, str(scratch / f"checkpoints-{name}")]


def _check_phases(scene: Scene, kills_each: int, victims: int) -> None:
    hit = {(kill.victim, kill.phase) for kill in scene.done}
    expected = min(kills_each, len(Phase)) * victims
    assert len(hit) == expected, f"{len(hit)} of {expected} pairs of process and phase were hit"


def _without_kills(run: Run, broker: KafkaBroker, outputs: Mapping[str, Output]) -> dict[str, Written]:
    driver = Driver(_job_arguments(broker, outputs, "without-kills", run.scratch), run.scratch, run.scratch / "never")
    try:
        driver.start(2, "bounded")
        status = driver.wait(_READ_DEADLINE_S)
        assert status == 0, f"the undisturbed job ended with status {status}:\n{driver.tail()}"
        return _read(outputs, "without-kills", run.records)
    finally:
        driver.end()


def _read(outputs: Mapping[str, Output], name: str, records: int) -> dict[str, Written]:
    return {kind: output.read(name, records, _READ_DEADLINE_S) for kind, output in outputs.items()}


if __name__ == "__main__":
    sys.exit(main())
