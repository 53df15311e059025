"""Transfers between 100 accounts, checked by an auditor at every checkpoint.

    python -m examples.transfers --transfers 50000 --rate 5000 --directory transfers-demo
    python -m examples.transfers --directory transfers-demo --resume      # after it was killed: continues where it was

While it runs, kill a process (`kill -9`). After one of the processes `rekindle.runtime.slot transfers` is killed, the
job restarts by itself. After this program is killed, run it again with `--resume`, also with another `--parallelism`.
At the end a table shows, for each completed checkpoint, the sum of all balances at its barrier: always the same total.
The last balances are compared with those that plain Python finds for the same transfers.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from examples.small import at_least_1
from examples.transfers.audit import AuditLine, AuditLog, published_checkpoints
from examples.transfers.job import JOB_NAME, build
from examples.transfers.model import TOTAL_CENTS, expected_balances
from rekindle.common import Configuration, RestartStrategies
from rekindle.datastream import StreamExecutionEnvironment

_LINES_SHOWN = 12


def main() -> int:
    """Run the job to its end, audit it, and print whether everything adds up."""
    arguments = parse_arguments()
    directory = os.path.abspath(arguments.directory or tempfile.mkdtemp(prefix="transfers-"))
    checkpoints = os.path.join(directory, "checkpoints")
    log = AuditLog(os.path.join(directory, "audit"))
    run = log.begin_run(resumed=arguments.resume)
    env = environment(arguments, checkpoints)
    build(env, log, run, arguments.seed, arguments.transfers, arguments.rate)
    console = Console()
    console.print(f"{arguments.transfers:,} transfers between 100 accounts, run {run}, in {directory}")
    env.execute(JOB_NAME)
    lines = log.audit(published_checkpoints(checkpoints, JOB_NAME))
    print_audit(console, lines)
    wrong = sum(not line.adds_up for line in lines)
    right = log.statements() == expected_balances(arguments.seed, arguments.transfers)
    console.print(f"{len(lines) - wrong} of {len(lines)} completed checkpoints add up.")
    console.print(f"The last balances are {'' if right else 'NOT '}those of plain Python.")
    return 0 if right and not wrong else 1


def environment(arguments: argparse.Namespace, checkpoints: str) -> StreamExecutionEnvironment:
    """An environment with checkpoints several times a second and up to 1000 restarts."""
    settings = {
        "execution.checkpointing.dir": checkpoints,
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    if arguments.resume:
        settings["execution.state-recovery.path"] = "latest"
    if not sys.stdout.isatty():
        settings["rekindle.progress"] = "off"
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(arguments.parallelism)
    env.enable_checkpointing(arguments.interval_ms)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1000, 50))
    return env


def print_audit(console: Console, lines: list[AuditLine]) -> None:
    """Print the last checkpoints, and all that do not add up."""
    table = Table(title="What the books said at each completed checkpoint", title_justify="left")
    for column in ("chk", "run", "attempt", "transfers", "entries", "accounts", "total", "verdict"):
        table.add_column(column, justify="right")
    shown = [line for line in lines[:-_LINES_SHOWN] if not line.adds_up] + lines[-_LINES_SHOWN:]
    for line in shown:
        verdict = "adds up" if line.adds_up else complaint(line)
        numbers = (line.checkpoint_id, line.run, line.attempt, line.transfers, line.entries, line.accounts)
        table.add_row(*(f"{number:,}" for number in numbers), f"{line.total_cents / 100:,.2f}", verdict)
    console.print(table)


def complaint(line: AuditLine) -> str:
    """The error of a checkpoint that does not add up."""
    if line.missing:
        return f"NO WORD of {', '.join(line.missing)}"
    return f"WRONG by {line.total_cents - TOTAL_CENTS:+,} cents, {line.entries - 2 * line.transfers:+,} entries"


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The program's options."""
    parser = argparse.ArgumentParser(description="Transfers between accounts, audited at every checkpoint.")
    parser.add_argument("--transfers", type=at_least_1, default=50_000, help="how many (default 50,000)")
    parser.add_argument("--rate", type=at_least_1, default=None, help="transfers per second (default: no limit)")
    parser.add_argument("--seed", type=int, default=7, help="the generator's seed (default 7)")
    parser.add_argument("--parallelism", type=at_least_1, default=2, help="subtasks per operator (default 2)")
    parser.add_argument("--interval-ms", type=int, default=300, help="between two checkpoints (default 300)")
    parser.add_argument("--directory", help="for checkpoints and audit (default: a temporary one)")
    parser.add_argument("--resume", action="store_true", help="continue from the latest checkpoint in the directory")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
