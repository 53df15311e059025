"""The command: `python -m benchmarks.connector_chaos --seed 7`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.connector_chaos.blows import Scene
from benchmarks.connector_chaos.feed import Feed
from benchmarks.connector_chaos.job import PARTITIONS
from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from benchmarks.connector_chaos.processes import Driver
from benchmarks.connector_chaos.read_back import Committed, difference
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET

#: How long a kill and the recovery from it take, at first guess; measured as the run goes on.
_SECONDS_PER_KILL = 15.0
_READ_DEADLINE_S = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job with kills and without, and compare. The exit code is 0 if both outputs are equal."""
    options = _parse(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="rk-chaos-", ignore_cleanup_errors=True) as scratch,
        KafkaBroker() as broker,
    ):
        for topic in ("numbers", "with-kills", "without-kills"):
            broker.create_topic(topic, PARTITIONS)
        disturbed = _with_kills(options, broker, Path(scratch))
        undisturbed = _without_kills(options, broker, Path(scratch))
    wrong = difference(disturbed.steps, undisturbed.steps)
    print(wrong or f"Equal: {disturbed.count} records of {len(disturbed.steps)} keys, each once and in order.")
    return 0 if wrong is None else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connector_chaos")
    parser.add_argument("--seed", type=int, default=1, help="chooses processes, phases and moments")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10, help="kills of each kind of process")
    return parser.parse_args(arguments)


def _with_kills(options: argparse.Namespace, broker: KafkaBroker, scratch: Path) -> Committed:
    plan = plan_kills(options.seed, options.kills)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", flush=True)

    arguments = [broker.bootstrap_servers, "numbers", "with-kills", str(scratch / "checkpoints")]
    driver = Driver(arguments, scratch, scratch / "crash")
    feed = Feed(broker.client() | QUIET, "numbers", options.records)
    feed.outlast(len(plan) * _SECONDS_PER_KILL)
    feed.start()
    scene = Scene(driver, broker, feed, random.Random(options.seed), say)
    committed = None
    try:
        driver.start(2)
        for number, kill in enumerate(plan):
            scene.carry_out(kill)
            per_kill_s = (time.monotonic() - begun) / (number + 1)
            feed.outlast(1.1 * per_kill_s * (len(plan) - number - 1))
        _check_phases(scene, options.kills)
        feed.finish()
        say(f"all {options.records} records are sent")
        committed = Committed(broker.client() | QUIET, "with-kills")
        committed.read_until(options.records, _READ_DEADLINE_S, lambda: None)
        say(f"{committed.count} records are committed")
        return committed
    except BaseException:
        print(driver.tail(), file=sys.stderr)
        raise
    finally:
        driver.end()
        if committed is not None:
            committed.close()


def _check_phases(scene: Scene, kills_each: int) -> None:
    hit = {(kill.victim, kill.phase) for kill in scene.done}
    expected = min(kills_each, len(Phase)) * len(Victim)
    assert len(hit) == expected, f"{len(hit)} of {expected} pairs of process and phase were hit"


def _without_kills(options: argparse.Namespace, broker: KafkaBroker, scratch: Path) -> Committed:
    arguments = [broker.bootstrap_servers, "numbers", "without-kills", str(scratch / "undisturbed")]
    driver = Driver(arguments, scratch, scratch / "never")
    committed = Committed(broker.client() | QUIET, "without-kills")
    try:
        driver.start(2, "bounded")
        status = driver.wait(_READ_DEADLINE_S)
        assert status == 0, f"the undisturbed job ended with status {status}:\n{driver.tail()}"
        committed.read_until(options.records, _READ_DEADLINE_S, lambda: None)
        return committed
    finally:
        driver.end()
        committed.close()


if __name__ == "__main__":
    sys.exit(main())
