"""The runtime context of functions: metrics, job parameters, cached files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from time import monotonic

import msgspec
import numpy as np
import pytest

from rekindle.checkpoint.store.open_store import open_store
from rekindle.datastream import MapFunction
from rekindle.datastream.cached_files import CachedFile
from rekindle.errors import GraphError, SerializationError
from rekindle.graph.build import build_plan
from rekindle.graph.ship_files import ShippedFile, ship_files
from rekindle.graph.shipping import InstalledJob, ship, unship
from rekindle.metrics import MetricReading
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.runtime.unpack_files import place_files
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment


class Measured(MapFunction):
    def open(self, runtime_context):
        metrics = runtime_context.get_metrics_group()
        self.seen = metrics.counter("seen")
        self.rate = metrics.meter("rate", 10)
        self.sizes = metrics.add_group("sizes", "small").distribution("bytes")
        self.last = 0
        metrics.gauge("last", lambda: self.last)
        metrics.gauge("broken", lambda: 1 // 0)
        self.greeting = runtime_context.get_job_parameter("greeting", "hello")
        self.missing = runtime_context.get_job_parameter("no such", "nothing")

    def map(self, value):
        self.seen.inc()
        self.seen.inc(2)
        self.seen.dec()
        self.rate.mark_event(value)
        self.sizes.update(value)
        self.last = value
        return self.greeting, self.missing


def test_metrics_of_each_kind_and_job_parameters():
    env = environment()
    env.get_config().set_global_job_parameters({"greeting": "hi"})
    job = InProcessJob.of(env.from_collection([1, 5, 3]).map(Measured()).name("measured"))
    assert set(job.run()) == {("hi", "nothing")}
    (task,) = job.tasks.values()
    readings = [each for each in task.metrics.read() if each.operator == "measured"]
    assert {(each.subtask, each.uid) for each in readings} == {(0, next(iter(readings)).uid)}
    assert {each.name: (each.kind, each.value) for each in readings} == {
        "seen": ("counter", 6),
        "rate": ("meter", {"count": 9, "rate": 0.9}),
        "last": ("gauge", 3),
        "broken": ("gauge", "ZeroDivisionError: integer division or modulo by zero"),
        "sizes.small.bytes": ("distribution", {"count": 3, "sum": 9, "min": 1, "max": 5, "mean": 3}),
    }


def test_metrics_are_told_with_epochs_but_not_with_each():
    job = InProcessJob.of(environment().from_collection(list(range(40))).map(Measured()), max_records=1)
    told = []
    job._run = lambda each, budget: told.append(each.run_epoch(budget).report.metrics) or each.outbox.drain()
    started = monotonic()
    job.run()
    elapsed_s = monotonic() - started
    assert {each.name for each in told[0]} >= {"seen", "last"}
    assert len([each for each in told if each]) <= 2 + elapsed_s, "once a second, first and last"
    assert next(each.value for each in told[-1] if each.name == "seen") == 80


def test_whatever_functions_count_with_can_be_sent():
    """A metric that fails does not fail the job."""
    group = TaskMetricGroup(ManualClock())
    group.counter("numpy").inc(np.int64(3))
    group.counter("beyond 64 bits").inc(2**70)
    group.counter("half").inc(0.5)
    group.distribution("floats").update(np.float32(0.5))
    said = [None, True, "text", "\ud800", object, float("nan"), 10**400, np.float64(1.5), [1]]
    for place, value in enumerate(said):
        group.gauge(f"gauge {place}", lambda value=value: value)
    group.counter("\ud800").inc()
    readings = [MetricReading("op", "uid", 0, *metric) for metric in group.collect()]
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(readings), type=list[MetricReading])
    values = {each.name: each.value for each in decoded}
    assert (values["numpy"], values["beyond 64 bits"], values["half"]) == (3, float(2**70), 0.5)
    assert values["floats"] == {"count": 1, "sum": 0.5, "min": 0.5, "max": 0.5, "mean": 0.5}
    assert [values[f"gauge {place}"] for place in (0, 1, 2, 3, 7, 8)] == [None, True, "text", "\\ud800", 1.5, "[1]"]


def test_a_meter_counts_its_time_span_only():
    clock = ManualClock()
    meter = TaskMetricGroup(clock, ()).meter("m", 5)
    meter.mark_event(10)
    clock.advance(4000)
    meter.mark_event(5)
    assert (meter.get_count(), meter.get_rate()) == (15, 3.0)
    clock.advance(4000)
    assert (meter.get_count(), meter.get_rate()) == (15, 1.0)


# -- cached files -----------------------------------------------------------------------------------------------------


class Reads(MapFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, runtime_context):
        self.path = runtime_context.get_distributed_cache().get_file(self.name)

    def map(self, value):
        return Path(self.path).read_text()


def test_a_function_reads_a_cached_file(tmp_path):
    (tmp_path / "words.txt").write_text("to be")
    env = environment()
    env.register_cached_file(str(tmp_path / "words.txt"), "words")
    assert InProcessJob.of(env.from_collection([1]).map(Reads("words"))).run() == ["to be"]


def test_a_file_that_nobody_registered_is_named(tmp_path):
    (tmp_path / "words.txt").write_text("to be")
    env = environment()
    env.register_cached_file(f"file://{tmp_path}/words.txt", "words")
    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(env.from_collection([1]).map(Reads("others")))
    assert "no cached file 'others' was registered" in str(caught.value.__cause__)
    assert "there are: 'words'" in str(caught.value.__cause__)


def test_files_directories_and_executables_reach_a_slot(tmp_path):
    """As a slot does it: the payload is unpacked below the slot's own directory; the driver's files may be gone."""
    model = tmp_path / "model"
    (model / "deep" / "er").mkdir(parents=True)
    (model / "weights.bin").write_bytes(b"\x00\x01")
    (model / "deep" / "er" / "names.txt").write_text("a")
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    os.chmod(script, 0o640)
    env = environment()
    env.register_cached_file(str(model), "model")
    env.register_cached_file(str(script), "tool", executable=True)
    env.from_collection([1]).print()
    program = env._program("files")
    payload = ship(build_plan(program), program)
    for path in (model / "weights.bin", model / "deep" / "er" / "names.txt", script):
        path.unlink()
    slot = tmp_path / "slot"
    files = place_files(InstalledJob(unship(payload)).cached_files, str(slot))
    assert set(files) == {"model", "tool"}
    assert all(Path(path).is_relative_to(slot) for path in files.values())
    assert Path(files["model"], "weights.bin").read_bytes() == b"\x00\x01"
    assert Path(files["model"], "deep", "er", "names.txt").read_text() == "a"
    assert not os.access(Path(files["model"], "weights.bin"), os.X_OK)
    assert subprocess.run([files["tool"]], capture_output=True, text=True, check=True).stdout == "ran\n"


def test_an_empty_directory_is_one(tmp_path):
    (tmp_path / "empty").mkdir()
    files = place_files(ship_files([CachedFile("it", str(tmp_path / "empty"), False)]), str(tmp_path / "slot"))
    assert list(Path(files["it"]).iterdir()) == []


def test_what_a_url_names_is_fetched_by_the_slot(tmp_path):
    """A cached file may lie in any store that checkpoints may lie in; here in a directory, named by its URL."""
    store = open_store(str(tmp_path / "shared"))
    store.put("one.txt", b"1")
    store.put("many/two.txt", b"2")
    store.put("many/three/4.txt", b"4")
    shipped = [
        ShippedFile(name, f"file://{tmp_path}/shared/{path}", False, None)
        for name, path in (("one", "one.txt"), ("many", "many"))
    ]
    files = place_files(shipped, str(tmp_path / "slot"))
    assert Path(files["one"]).read_bytes() == b"1"
    assert Path(files["many"], "three", "4.txt").read_bytes() == b"4"
    missing = ShippedFile("gone", f"file://{tmp_path}/shared/gone", False, None)
    with pytest.raises(SerializationError, match=r"'gone' was registered as '.*', where there is nothing"):
        place_files([missing], str(tmp_path / "slot"))


def test_what_cannot_be_registered_is_refused_at_once(tmp_path):
    env = environment()
    with pytest.raises(GraphError, match=r"register_cached_file\('it'\): there is no '/no/such'"):
        env.register_cached_file("/no/such", "it")
    with pytest.raises(GraphError, match=r"takes a name of letters, digits, '.', '-' and '_', not '../it'"):
        env.register_cached_file(str(tmp_path), "../it")


def test_a_file_that_is_gone_when_the_job_starts_is_named(tmp_path):
    (tmp_path / "it").write_text("")
    file = CachedFile("it", str(tmp_path / "it"), False)
    (tmp_path / "it").unlink()
    with pytest.raises(SerializationError, match=r"Cached file 'it' was registered as '.*/it', but is no longer there"):
        ship_files([file])
