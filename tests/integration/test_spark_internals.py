"""Each private call into Spark behaves as the engine needs it; when a new Spark changes one, its test fails."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from rekindle.spark import internals as private

# Spark's workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Numbers:
    """Yields (key, row) pairs for a shuffle: partition p sends a row to every partition."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        assert list(rows) == []
        for target in range(self.partitions):
            yield struct.pack("!q", target)
            yield b"%d to %d" % (index, target)


class Tagged:
    """Puts the partition's number before each row."""

    def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        return (b"%d: %s" % (index, row) for row in rows)


class Environment:
    """Returns the environment variables of the worker."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        import os

        yield os.environ.get(self.name, "").encode()


@pytest.fixture
def sc(spark: Any) -> Any:
    return spark.sparkContext


def test_rows_are_bytes_on_both_sides_and_shuffled_by_their_key(sc: Any) -> None:
    runtime = private.python_runtime(sc)
    sent = private.python_stage(sc, private.empty_partitions(sc, 3), Numbers(3), runtime)
    shuffled, identifier = private.shuffle(sc, sent, 3)
    got = private.collect_bytes(sc, private.python_stage(sc, shuffled, Tagged(), runtime))
    assert sorted(got) == [b"%d: %d to %d" % (target, source, target) for target in range(3) for source in range(3)]
    assert isinstance(identifier, int)
    private.remove_shuffle(sc, identifier, blocking=True)


def test_each_shuffle_has_an_id_of_its_own(sc: Any) -> None:
    sent = private.python_stage(sc, private.empty_partitions(sc, 1), Numbers(1), private.python_runtime(sc))
    assert private.shuffle(sc, sent, 1)[1] != private.shuffle(sc, sent, 1)[1]


def test_chosen_partitions_keep_their_rows(sc: Any) -> None:
    runtime = private.python_runtime(sc)
    all_of_them = private.python_stage(sc, private.empty_partitions(sc, 5), Numbers(1), runtime)
    rows = private.collect_bytes(sc, private.select_partitions(sc, all_of_them, {4, 1}))
    assert [row for row in rows if b"to" in row] == [b"1 to 0", b"4 to 0"]


def test_a_union_has_the_partitions_of_all(sc: Any) -> None:
    runtime = private.python_runtime(sc)
    parts = [private.python_stage(sc, private.empty_partitions(sc, n), Numbers(1), runtime) for n in (2, 1)]
    rows = private.collect_bytes(sc, private.union(sc, parts))
    assert [row for row in rows if b"to" in row] == [b"0 to 0", b"1 to 0", b"0 to 0"]


def test_workers_get_a_path_that_the_session_does_not_have(sc: Any) -> None:
    before = dict(sc.environment)
    task = Environment("PYTHONPATH")
    base = private.empty_partitions(sc, 1)
    (path,) = private.collect_bytes(sc, private.python_stage(sc, base, task, private.python_runtime(sc, "/some/where")))
    assert b"/some/where" in path.split(b":")
    assert sc.environment == before


def test_a_persisted_rdd_is_computed_once(sc: Any) -> None:
    class Clock:
        def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
            import time

            yield str(time.time_ns()).encode()

    rdd = private.python_stage(sc, private.empty_partitions(sc, 1), Clock(), private.python_runtime(sc))
    release = private.persist(sc, rdd)
    assert private.collect_bytes(sc, rdd) == private.collect_bytes(sc, rdd)
    release()
    assert private.collect_bytes(sc, rdd) != private.collect_bytes(sc, rdd)


def test_local_properties_are_a_copy(sc: Any) -> None:
    with private.own_local_properties(sc):
        sc.setLocalProperty("rekindle.test", "inside")
        private.set_call_site(sc, "a name for a stage")
        assert sc.getLocalProperty("rekindle.test") == "inside"
        assert sc.getLocalProperty("callSite.short") == "a name for a stage"
    assert sc.getLocalProperty("rekindle.test") is None
    assert sc.getLocalProperty("callSite.short") is None


def test_arrow_batches_have_the_partitions_of_the_dataframe(spark: Any) -> None:
    batches = private.arrow_batches(spark.range(10, numPartitions=3))
    assert batches.getNumPartitions() == 3
    assert len(private.collect_bytes(spark.sparkContext, batches)) == 3


def test_a_local_session_has_no_executors_besides_the_driver(sc: Any) -> None:
    assert private.registered_executors(sc) == 0


def test_java_errors_are_told_from_others(sc: Any) -> None:
    class Fails:
        def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
            raise LookupError("nothing there")

    failing = private.python_stage(sc, private.empty_partitions(sc, 1), Fails(), private.python_runtime(sc))
    with pytest.raises(Exception, match="nothing there") as caught:
        private.collect_bytes(sc, failing)
    assert "LookupError: nothing there" in (private.java_message(caught.value) or "")
    assert "org.apache.spark" in (private.java_stack(caught.value) or "")
    assert private.java_message(ValueError("mine")) is None
    assert private.has_gateway()


@pytest.mark.parametrize("level", ["OFF", "ERROR"])
def test_loggers_can_be_silenced_and_heard_again(sc: Any, level: str) -> None:
    name = "org.apache.spark.rekindle.test"
    private.set_logger_levels(sc, [name], level)
    assert sc._jvm.org.apache.logging.log4j.LogManager.getLogger(f"{name}.below").getLevel().toString() == level


#: Collects rows from a JVM that is killed before, or after, its stream was opened; prints how that is told.
JVM_DIES_WHILE_ROWS_COME = """
import sys
from rekindle.common import Configuration
from rekindle.spark import internals
from rekindle.spark.session import create_session
session = create_session(Configuration.from_dict({"rekindle.master": "local[1]"}))
sc = session.sparkContext
runtime = internals.python_runtime(sc)
rdd = internals.python_stage(sc, internals.empty_partitions(sc, 1), lambda i, rows: [b"a", b"b"], runtime)
connect, when = internals._create_local_socket, sys.argv[1]
def and_kill(served):
    if when == "before":
        sc._gateway.proc.kill(); sc._gateway.proc.wait()
        return connect(served)
    opened = connect(served)
    sc._gateway.proc.kill(); sc._gateway.proc.wait()
    return opened
internals._create_local_socket = and_kill
try:
    print("collected", internals.collect_bytes(sc, rdd))
except Exception as error:
    print("told:", internals.java_message(error))
"""


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.long), "after"])
def test_rows_of_a_jvm_that_dies_are_never_taken_for_all_rows(when: str) -> None:
    program = [sys.executable, "-c", JVM_DIES_WHILE_ROWS_COME, when]
    done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert f"told: {private.JVM_GONE}" in done.stdout, done.stdout + done.stderr


def test_ctrl_c_while_the_jvm_starts_leaves_no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyspark removes the file in which the JVM tells its port: left alone, the JVM would wait for ever."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(private.subprocess, "Popen", Noted)  # type: ignore[attr-defined]
    monkeypatch.setattr(private.java_gateway, "time", SimpleNamespace(sleep=interrupted))  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        private.launch_gateway(2)
    (process,) = started
    assert process.poll() == -signal.SIGKILL


def test_expressions_of_plans_know_their_place_in_the_text(spark: Any) -> None:
    sql = "SELECT (id + 1) / (2) AS half, (SELECT max(id) FROM range(2)) FROM range(3)"
    parsed = {node.nodeName(): node for node in private.plan_expressions(private.parsed_plan(spark, sql))}
    place = private.range_in_text(parsed["Divide"])
    assert place is not None
    assert sql[slice(*place[:2])] == "(id + 1) / (2)"
    other = private.parsed_plan(spark, f"{sql} WHERE id > 0")
    assert private.range_in_text(next(private.plan_expressions(other))) != place
    assert "UnresolvedFunction" in parsed  # of the subquery
    frame = spark.sql(sql)
    analysed = {node.nodeName(): node for node in private.plan_expressions(private.analysed_plan(frame))}
    assert private.range_in_text(analysed["Divide"]) == place
    left, _ = private.expression_parts(analysed["Divide"])
    assert (left.nodeName(), private.range_in_text(left)) == ("Cast", place)  # Spark's own cast
    frame.createOrReplaceTempView("halves")
    over = private.plan_expressions(private.analysed_plan(spark.table("halves")))
    assert "Divide" not in {node.nodeName() for node in over}
    spark.catalog.dropTempView("halves")
