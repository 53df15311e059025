"""Shared parts of the small programs: options, an environment with restarts, result files and their comparison."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rekindle.common import Configuration, Encoder, RestartStrategies
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import RateLimiterStrategy
from rekindle.datastream.connectors.file_system import BucketAssigner, FileSink

_encode = msgspec.json.encode


def parser_of(description: str) -> argparse.ArgumentParser:
    """A parser with the options of every small program."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rate", type=at_least_1, default=None, help="records per second at most (default: no limit)")
    parser.add_argument("--seed", type=int, default=7, help="the generator's seed (default 7)")
    parser.add_argument("--parallelism", type=at_least_1, default=2, help="subtasks per operator (default 2)")
    parser.add_argument("--interval-ms", type=at_least_1, default=500, help="between two checkpoints (default 500)")
    parser.add_argument("--directory", help="for checkpoints and results (default: a temporary one)")
    parser.add_argument("--resume", action="store_true", help="continue from the latest checkpoint in the directory")
    return parser


def at_least_1(text: str) -> int:
    """A positive whole number on the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too little, it must be 1 or more")
    return number


at_least_1.__name__ = "int"  # argparse names it in errors


def rate_of(arguments: argparse.Namespace) -> RateLimiterStrategy:
    """The rate limit of the source."""
    return RateLimiterStrategy.no_op() if arguments.rate is None else RateLimiterStrategy.per_second(arguments.rate)


def directory_of(arguments: argparse.Namespace) -> str:
    """The directory of checkpoints and results."""
    return os.path.abspath(arguments.directory or tempfile.mkdtemp(prefix="rekindle-"))


def environment_of(arguments: argparse.Namespace, directory: str) -> StreamExecutionEnvironment:
    """An environment with checkpoints in the directory, kept when the program is killed, and up to 1000 restarts."""
    settings = {
        "execution.checkpointing.dir": os.path.join(directory, "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    if arguments.resume:
        settings["execution.state-recovery.path"] = "latest"
    if not sys.stdout.isatty():
        settings["rekindle.progress"] = "off"
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(arguments.parallelism)
    env.enable_checkpointing(max(10, arguments.interval_ms))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1000, 50))
    return env


def write(stream: DataStream, directory: str) -> None:
    """Write each record exactly once, as a line of JSON: a file becomes visible when its checkpoint is complete."""
    sink = (
        FileSink.for_row_format(os.path.join(directory, "results"), Encoder.json_lines_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    stream.sink_to(sink).name("results").uid("results")


def report(directory: str, expected: Iterable[Any]) -> int:
    """Compare the written results with those of plain Python, print the outcome, and return the exit status."""
    found, wanted = _results(Path(directory, "results")), Counter(map(_encode, expected))
    missing, unexpected = (wanted - found).total(), (found - wanted).total()
    print(f"{found.total():,} results in {directory}/results")
    if missing or unexpected:
        print(f"NOT those of plain Python: {missing:,} are missing, {unexpected:,} are too many.")
        return 1
    print("They are those of plain Python, each once.")
    return 0


def _results(folder: Path) -> Counter[bytes]:
    files = [path for path in folder.glob("*") if not path.name.startswith(".")]  # hidden files are not finished
    return Counter(line for path in files for line in path.read_bytes().splitlines())
