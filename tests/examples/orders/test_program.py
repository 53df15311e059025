"""The program around the job: options, configuration, journal, and the texts of the screens."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import examples.demo as demo
import examples.orders
import examples.transfers.__main__ as transfers
from examples.orders.__main__ import parse_arguments
from examples.orders.ends import STREAMS, ends
from examples.orders.job import build, environment
from examples.orders.journal import Journal, read_journal
from examples.orders.options import chosen
from examples.orders.results import BRANCH_STREAMS
from examples.orders.settings import Feed, Settings
from examples.orders.show.program import VisibleRows
from examples.orders.show.scene import Act, Checkpoint, Scene
from examples.orders.show.screens import LiveScreen, PlainScreen, Screen, screen_for
from rekindle.common import RestartStrategies
from rekindle.config import STATE_BACKEND
from rekindle.datastream import CheckpointingMode, ExternalizedCheckpointRetention
from tests.examples.orders.order_samples import LIVELY, job_in_process, shop

MODULES = sorted(each.name for each in pkgutil.walk_packages(examples.orders.__path__, "examples.orders."))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_the_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


def test_the_defaults_are_those_of_the_text():
    env = environment(Settings())
    checkpoints = env.get_checkpoint_config()
    assert checkpoints.get_checkpoint_interval() == 30_000
    assert checkpoints.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert checkpoints.get_checkpoint_timeout() == 600_000
    assert checkpoints.get_max_concurrent_checkpoints() == 1
    assert checkpoints.get_min_pause_between_checkpoints() == 30_000
    assert checkpoints.is_fail_on_checkpointing_errors()
    retention = checkpoints.get_externalized_checkpoint_retention()
    assert retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert env.get_restart_strategy() == RestartStrategies.fixed_delay_restart(5, 30_000)
    shop_settings = (Settings().out_of_orderness_s, Settings().window_s, Settings().initial_stock, Settings().low_stock)
    assert shop_settings == (5, 3600, 1000, 10)
    assert Settings().batch_size == 100


def test_every_setting_is_an_option():
    nothing = parse_arguments([])
    assert chosen(Settings, nothing) == Settings()
    assert chosen(Feed, nothing) == Feed()
    words = []
    for each in (*fields(Settings), *fields(Feed)):
        flag = each.name.replace("_", "-")
        value = "0.5" if each.metadata["most"] == 1 else "9"
        words += ["--no-" + flag] if each.default is True else [f"--{flag}", value]
    given = parse_arguments([*words, "--orders", "none", "--fail", "stock:7:1"])
    settings, feed = chosen(Settings, given), chosen(Feed, given)
    different = [each.name for each in fields(Settings) if getattr(settings, each.name) != each.default]
    assert different == [each.name for each in fields(Settings)]
    assert feed.orders is None
    assert feed.splits == 9
    assert given.fail[0].branch == "stock"


@pytest.mark.parametrize(("option", "complaint"), [("--sink=x", "no sink called"), ("--source=x", "no source called")])
def test_an_end_that_does_not_exist_is_named(option, complaint):
    settings = chosen(Settings, parse_arguments([option]))
    with pytest.raises(ValueError, match=complaint):
        build(environment(settings), settings, Feed())


@pytest.mark.parametrize(
    ("parse", "words", "complaint"),
    [
        (parse_arguments, ["--rate", "0"], "--rate: 0 is too little, it must be 0.001 or more"),
        (parse_arguments, ["--rate", "nan"], "--rate: nan is too little"),
        (parse_arguments, ["--duplicates", "1.5"], "--duplicates: 1.5 is too much, it must be 1 or less"),
        (parse_arguments, ["--batch-size", "0"], "--batch-size: 0 is too little, it must be 1 or more"),
        (demo.parse_arguments, ["--rate", "-5"], "--rate: -5 is too little"),
        (demo.parse_arguments, ["--orders", "0"], "--orders: 0 is too little, it must be 1 or more"),
        (demo.parse_arguments, ["--orders", "none"], "--orders: the demo has an end: give a number"),
        (demo.parse_arguments, ["--seed", "x"], "--seed: invalid int value: 'x'"),
        (transfers.parse_arguments, ["--rate", "0"], "--rate: 0 is too little, it must be 1 or more"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_starts(capsys, parse, words, complaint):
    with pytest.raises(SystemExit):
        parse(words)
    assert complaint in capsys.readouterr().err


def test_a_fault_that_does_not_exist_is_named(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--fail", "shipping:7"])
    assert "'shipping:7' names no fault" in capsys.readouterr().err


def test_every_stream_has_an_end_and_belongs_to_a_branch(tmp_path):
    assert sorted(stream for streams in BRANCH_STREAMS.values() for stream in streams) == sorted(STREAMS)
    for kind in ("print", "files", "kafka"):
        assert all(ends(Settings(directory=str(tmp_path), sink=kind))(stream) for stream in STREAMS)


def test_a_journal_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "journal"
    assert read_journal(path) == []
    Journal(path).write("checkpoint", id=1)
    with path.open("a") as file:
        file.write('{"at": 3')
    assert [line["id"] for line in read_journal(path)] == [1]
    Journal(None).write("checkpoint", id=2)


def test_visible_rows_are_counted_once(tmp_path):
    settings = shop(tmp_path)
    visible = VisibleRows(tmp_path / "output")
    job = job_in_process(settings, LIVELY)
    job.epoch()
    assert sum(visible.count().values()) == 0, "nothing is visible before a checkpoint"
    job.checkpoint()
    first = visible.count()
    assert first == visible.count()
    job.run()
    last = visible.count()
    assert 0 < first["statuses"] < last["statuses"]
    assert last["batches"] == last["statuses"] + last["rejected"]


def scene() -> Scene:
    made = Scene("a title", [Act("one thing", "recovered", 1.25, "from checkpoint 3"), Act("another thing")], total=500)
    made.checkpoints.append(Checkpoint(3, "CHECKPOINT", 120, 4000, 2_500_000))
    made.count({"batches": 200, "stock": 30})
    return made


def shown(screen: Screen, console: Console) -> str:
    with screen:
        screen.say("something begins")
        screen.checkpoint(Checkpoint(4, "SYNC_SAVEPOINT", 90, 500, 900))
        screen.act(Act("one thing", "recovered", 1.25, "from checkpoint 3"))
        screen.tick()
    file: Any = console.file
    return str(file.getvalue())


def test_plain_lines_say_what_happens():
    console = Console(file=io.StringIO(), width=100)
    made = scene()
    made.began -= 60  # some time has passed
    screen = screen_for(console, made)
    assert isinstance(screen, PlainScreen)
    said = shown(screen, console)
    assert "a title" in said
    assert "something begins" in said
    assert "savepoint 4 complete in 90 ms: 500 B written, state 900 B" in said
    assert "one thing: running again 1.2 s later, from checkpoint 3" in said
    assert "200 events in batches" in said


def test_a_terminal_shows_it_all_at_once():
    console = Console(file=io.StringIO(), width=100, height=40, force_terminal=True, color_system=None)
    screen = screen_for(console, scene())
    assert isinstance(screen, LiveScreen)
    said = shown(screen, console)
    parts = ("a title", "something begins", "1.2 s", "from checkpoint 3", "another thing", "200 of 500", "2.5 MB")
    assert [part for part in parts if part not in said] == []


def test_the_backend_is_an_option():
    for words, chosen_type in (["--backend", "rocksdb"], "rocksdb"), (["--backend", "hashmap"], "hashmap"):
        env = environment(chosen(Settings, parse_arguments(words)))
        assert env.get_configuration().get(STATE_BACKEND) == chosen_type
    configured = environment(Settings(), **{"state.backend.type": "rocksdb"})
    assert configured.get_configuration().get(STATE_BACKEND) == "rocksdb"


def test_paths_of_a_job(tmp_path: Path):
    configured = environment(Settings(directory=str(tmp_path)))._configuration.to_dict()
    assert configured["execution.checkpointing.dir"] == f"{tmp_path}/checkpoints"
    assert configured["execution.checkpointing.savepoint-dir"] == f"{tmp_path}/savepoints"
