"""The command: `python -m benchmarks.connector_chaos --seed 7`."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.connector_chaos.blows import Scene
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job with kills and without, and compare. The exit code is 0 if both outputs are equal."""
    options = _parse(arguments)
    wrong = [_run(options, kind) for kind in options.output]
    return 1 if any(wrong) else 0


def _run(options: argparse.Namespace, kind: str) -> str | None:
    """Run the job with one kind of output; return the difference, if there is one."""
    with (
        tempfile.TemporaryDirectory(prefix="rk-chaos-", ignore_cleanup_errors=True) as scratch,
        KafkaBroker() as broker,
        open_output(kind, broker) as output,
    ):
        broker.create_topic("numbers", PARTITIONS)
        for name in ("with-kills", "without-kills"):
            output.create(name)
        disturbed = _with_kills(options, broker, output, Path(scratch))
        undisturbed = _without_kills(options, broker, output, Path(scratch))
    wrong = difference(disturbed, undisturbed)
    entries = sum(map(len, disturbed.values()))
    print(wrong or f"Equal: {entries} entries under {len(disturbed)} keys in {kind}, each once and in order.")
    return wrong


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connector_chaos")
    parser.add_argument("--seed", type=int, default=1, help="chooses processes, phases and moments")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10, help="kills of each kind of process")
    parser.add_argument(
        "--output", nargs="+", choices=KINDS, default=list(KINDS), help="where the job writes; one run for each"
    )
    return parser.parse_args(arguments)


def _with_kills(options: argparse.Namespace, broker: KafkaBroker, output: Output, scratch: Path) -> Written:
    servers = {Victim.BROKER: broker, **output.servers}
    plan = plan_kills(options.seed, options.kills, [Victim.SLOT, Victim.DRIVER, *servers], commits=output.commits)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", flush=True)

    driver = Driver(_job_arguments(broker, output, "with-kills", scratch), scratch, scratch / "crash")
    feed = Feed(broker.client() | QUIET, "numbers", options.records)
    feed.outlast(len(plan) * _SECONDS_PER_KILL)
    feed.start()
    scene = Scene(driver, servers, feed, random.Random(options.seed), say)
    try:
        driver.start(2)
        for number, kill in enumerate(plan):
            scene.carry_out(kill)
            per_kill_s = (time.monotonic() - begun) / (number + 1)
            feed.outlast(1.1 * per_kill_s * (len(plan) - number - 1))
        _check_phases(scene, options.kills, 2 + len(servers))
        feed.finish()
        say(f"all {options.records} records are sent")
        written = output.read("with-kills", options.records, _READ_DEADLINE_S)
        say(f"{sum(map(len, written.values()))} entries are there")
        return written
    except BaseException:
        print(driver.tail(), file=sys.stderr)
        raise
    finally:
        driver.end()


def _job_arguments(broker: KafkaBroker, output: Output, name: str, scratch: Path) -> list[str]:
    place = json.dumps(output.arguments(name))
    return [broker.bootstrap_servers, "numbers", name, place, str(scratch / f"checkpoints-{name}")]


def _check_phases(scene: Scene, kills_each: int, victims: int) -> None:
    hit = {(kill.victim, kill.phase) for kill in scene.done}
    expected = min(kills_each, len(Phase)) * victims
    assert len(hit) == expected, f"{len(hit)} of {expected} pairs of process and phase were hit"


def _without_kills(options: argparse.Namespace, broker: KafkaBroker, output: Output, scratch: Path) -> Written:
    driver = Driver(_job_arguments(broker, output, "without-kills", scratch), scratch, scratch / "never")
    try:
        driver.start(2, "bounded")
        status = driver.wait(_READ_DEADLINE_S)
        assert status == 0, f"the undisturbed job ended with status {status}:\n{driver.tail()}"
        return output.read("without-kills", options.records, _READ_DEADLINE_S)
    finally:
        driver.end()


if __name__ == "__main__":
    sys.exit(main())
