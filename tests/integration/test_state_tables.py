"""State as tables on Spark: every kind of state is read, compared, written again, and restored by the engine."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from rekindle import state
from rekindle.checkpoint import copy_checkpoint, list_checkpoints, verify_checkpoint
from rekindle.checkpoint.load_checkpoint import load, locate
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.options import store_options
from rekindle.cli.state_questions import changes_of
from rekindle.common import Configuration, Time, Types
from rekindle.datastream import CheckpointedFunction, KeyedBroadcastProcessFunction, KeyedProcessFunction, MapFunction
from rekindle.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ConfigurationError,
    IncompatibleStateError,
    StoreError,
)
from rekindle.spark import savepoint_builder
from rekindle.spark.keyed_writing import write_rows
from rekindle.state import OperatorIdentifier, OperatorTransformation, SavepointReader, SavepointWriter
from rekindle.testing import InProcessJob, ManualClock, StoredCheckpoint
from tests.compat.in_flight import CLOCK
from tests.compat.in_flight import EXPECTED as IN_FLIGHT_EXPECTED
from tests.compat.in_flight import interrupted as in_flight_interrupted
from tests.compat.in_flight import program as in_flight_program
from tests.compat.kept_checkpoints import ARCHIVES, expected, unpacked
from tests.compat.kept_in_flight import ARCHIVES as IN_FLIGHT
from tests.compat.make_checkpoints import continued, interrupted, needed
from tests.compat.program import MINUTE_MS, START_MS, Basket
from tests.support.environments import checkpointed
from tests.support.s3_server import SECRET

KEPT = pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: f"{archive.parent.name} {archive.stem}")


def plain(value):
    """Rows of Spark as dicts and lists, so that they compare with what a test writes down."""
    if hasattr(value, "asDict"):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def by_key(df):
    return {row["key"]: plain(row) for row in df.collect()}


def saved(checkpoint, folder: Path) -> str:
    """Bring a checkpoint of an in-process job to disk."""
    for path in needed(checkpoint):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(checkpoint.store.read(path))
    return str(folder / checkpoint.path)


@pytest.fixture
def fresh(tmp_path):
    """A checkpoint that this version has written, with deltas, and with schemas."""
    (tmp_path / "out").mkdir()
    _, taken = interrupted(str(tmp_path / "out"), savepoint=False)
    return saved(taken, tmp_path / "fresh")


def origin_name(archive):
    return "fresh" if archive is None else f"{archive.parent.name} {archive.stem}"


def each_origin(test):
    """The test reads checkpoints kept from before, and one that this version writes."""
    return pytest.mark.parametrize("origin", [*ARCHIVES, None], ids=origin_name)(test)


def path_of(origin, tmp_path, request):
    return request.getfixturevalue("fresh") if origin is None else unpacked(origin, tmp_path)


@each_origin
def test_keyed_state_of_every_kind_is_a_row_per_key_with_typed_columns(spark, origin, tmp_path, request):
    table = state.read(path_of(origin, tmp_path, request)).keyed_state("every kind")
    types = dict(table.dtypes)
    assert types == {
        "key_group": "bigint",
        "key": "bigint",
        "value": "bigint",
        "untyped": "binary",
        "elements": "array<bigint>",
        "entries": "map<string,struct<f0:bigint,f1:bigint>>",
        "largest": "bigint",
        "mean": "struct<f0:bigint,f1:bigint>",
    }
    rows = by_key(table)
    assert {key: (row["value"], row["largest"], row["elements"]) for key, row in rows.items()} == {
        0: (63, 18, [12, 15, 18]),
        1: (70, 19, [7, 10, 13, 16, 19]),
        2: (57, 17, [2, 5, 8, 11, 14, 17]),
    }
    assert rows[0]["mean"] == {"f0": 63, "f1": 7}
    assert rows[0]["entries"]["entry 2"] == {"f0": 0, "f1": 18}
    assert pickle.loads(rows[0]["untyped"]) == Basket([12, 15, 18])


@each_origin
def test_windows_timers_lists_broadcast_state_positions_and_metadata(spark, origin, tmp_path, request):
    snapshot = state.read(path_of(origin, tmp_path, request))
    tumbling = plain(snapshot.keyed_state("tumbling").collect())
    assert {row["key"]: (row["window"], row["rekindle:window-contents"]) for row in tumbling}[0] == (
        {"start_ms": 60000, "end_ms": 90000},
        {"f0": 0, "f1": 45},
    )
    timers = plain(snapshot.timers("timers").collect())
    assert len(timers) == 16
    assert {(row["domain"], row["time_ms"]) for row in timers if row["key"] == 0} == {
        ("processing", START_MS + 90 * MINUTE_MS),
        ("processing", START_MS + 90 * MINUTE_MS + 1),
        *(("event", number * 1000 + number // 10 * 60_000 + 15_000) for number in (12, 15, 18)),
    }
    assert sorted(row["value"] for row in snapshot.list_state("lists", "split").collect()) == [16, 17, 18, 19]
    assert plain(snapshot.list_state("lists", "union").collect()) == [
        {"subtask": 0, "value": {"f0": "until", "f1": 19}}
    ]
    rules = snapshot.broadcast_state("applies", "rules").collect()
    assert {row["key"]: row["value"] for row in rules} == {1: "rule 1", 2: "rule 2"}
    positions = {row["name"]: row["position"] for row in snapshot.source_positions().collect()}
    assert positions["Source: numbers"] == "19"
    assert snapshot.source_positions("numbers").first()["position"] == 19
    metadata = snapshot.metadata().first()
    assert (metadata["checkpoint_id"], metadata["job_name"], metadata["operators"]) == (2, "test", 36)
    kinds = {(row["operator"], row["state"]): row["kind"] for row in snapshot.states().collect()}
    assert kinds["KEYED PROCESS", "mean"] == "aggregating"
    assert kinds["Map", "union"] == "union list"
    assert snapshot.operators().where("name = 'Interval Join'").first()["layout"] == "an interval join"
    assert snapshot.watermarks().where("name = 'KEYED PROCESS'").first()["watermark_ms"] == 78999


def test_state_with_a_time_to_live_shows_when_it_was_last_accessed(spark, fresh):
    snapshot = state.read(fresh)
    assert by_key(snapshot.keyed_state("expires"))[0]["last"] == 18
    timed = by_key(snapshot.keyed_state("expires", access_times=True))[0]
    assert timed["last"] == {"last_access_ms": START_MS + 50 * MINUTE_MS, "value": 18}
    assert timed["seen"][0] == {"last_access_ms": START_MS, "value": 0}


@pytest.mark.parametrize(
    "origin",
    [*(pytest.param(origin, marks=pytest.mark.long) for origin in ARCHIVES[:-1]), ARCHIVES[-1], None],
    ids=origin_name,
)
def test_state_that_is_read_and_written_again_restores_as_if_nothing_had_been(spark, origin, tmp_path, request):
    """Every table goes through Spark and back; a job continues from the new savepoint alone."""
    path = path_of(origin, tmp_path, request)
    snapshot = state.read(path)
    writer = snapshot.write
    manifest = load(locate(path).store, locate(path).path).manifest
    for operator in manifest.operators:
        if any(subtask.keyed for subtask in operator.subtasks):
            table = snapshot.keyed_state(operator.uid, access_times=True)
            if len(table.columns) > 2:
                writer.keyed_state(operator.uid, table)
        if any(subtask.timers for subtask in operator.subtasks):
            writer.timers(operator.uid, snapshot.timers(operator.uid))
    writer.list_state("lists", "split", snapshot.list_state("lists", "split"))
    writer.list_state("lists", "union", snapshot.list_state("lists", "union"))
    writer.broadcast_state("applies", "rules", snapshot.broadcast_state("applies", "rules"))
    new = writer.save(str(tmp_path / "new"))
    for old in Path(path).parent.rglob("*.state"):
        if tmp_path / "new" not in old.parents:
            old.unlink()
    output = tmp_path / "output"
    output.mkdir()
    assert continued(StoredCheckpoint.at(new), str(output)) == expected(ARCHIVES[-1])


def test_one_key_is_read_from_its_key_group_alone(spark, fresh):
    snapshot = state.read(fresh)
    one = snapshot.keyed_state("every kind", ["value"], key=1)
    assert plain(one.collect()) == [{"key_group": 1, "key": 1, "value": 70}]
    assert one.rdd.getNumPartitions() == 1
    assert snapshot.keyed_state("every kind", splits=100).rdd.getNumPartitions() == 4, "one per key group"
    assert snapshot.keyed_state("every kind", key="nobody").count() == 0


def test_a_value_of_its_own_type_may_be_shown_as_json(spark, fresh):
    union = state.read(fresh).list_state("lists", "union", untyped="json")
    assert union.first()["value"] == '["until",19]'


class Notes(KeyedProcessFunction):
    """Keeps something that only pickle can store."""

    def open(self, runtime_context):
        self.note = runtime_context.get_state(ValueStateDescriptor("note", None))

    def process_element(self, value, ctx):
        self.note.update(SimpleNamespace(number=value[1], touch=Touches(value[0])))
        yield value


class Touches:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "x")


def test_pickled_state_is_unpickled_only_if_the_user_asks_for_it(spark, tmp_path):
    trace = tmp_path / "unpickled"
    env = checkpointed(1).set_max_parallelism(8)
    pairs = env.from_collection([(str(trace), 7), ("never", 8)], PAIR).uid("pairs")
    noting = pairs.key_by(lambda pair: pair[0], Types.STRING()).process(Notes()).uid("notes")
    running = InProcessJob.of(noting, ManualClock(0), max_records=1)
    path = saved(running.checkpoint(), tmp_path)
    running.kill()
    shown = by_key(state.read(path).keyed_state("notes"))
    assert isinstance(shown[str(trace)]["note"], bytes | bytearray)
    assert not trace.exists()
    allowed = state.read(path, allow_pickle=True).keyed_state("notes")
    assert trace.exists(), "planning has looked at a value"
    assert allowed.dtypes[-1] == ("note", "string")


def test_plain_spark_sql_finds_the_format_unregistered(fresh, tmp_path):
    """A process of its own: in this one the format may have been registered."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from rekindle.common import Configuration\n"
        "from rekindle.spark.session import create_session, stop_session\n"
        "spark = create_session(Configuration.from_dict({'rekindle.master': 'local[1]'}))\n"
        "options = f\"path '{sys.argv[1]}', operator 'every kind', states 'value'\"\n"
        "spark.sql(f'CREATE TEMPORARY VIEW sums USING rekindle OPTIONS ({options})')\n"
        "print('sum', spark.sql('SELECT sum(value) AS s FROM sums WHERE key < 2').first().s)\n"
        "stop_session(spark)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        [sys.executable, program, fresh], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert "sum 133" in answer.stdout, answer.stderr


def test_a_checkpoint_is_found_by_its_jobs_folder_and_its_id(spark, fresh):
    job = str(Path(fresh).parents[1])
    assert state.read(job).checkpoint_id == 2
    assert state.read(job, checkpoint_id=2).path == "file://" + fresh
    with pytest.raises(CheckpointNotFoundError, match="no checkpoint 7 below"):
        state.read(job, checkpoint_id=7)


def test_names_that_are_not_there_are_told_with_those_that_are(spark, fresh):
    snapshot = state.read(fresh)
    with pytest.raises(IncompatibleStateError, match=r"no operator with the uid, id or name .nobody.: .*Interval Join"):
        snapshot.keyed_state("nobody")
    with pytest.raises(IncompatibleStateError, match="Several operators are named 'KEYED PROCESS'"):
        snapshot.keyed_state("KEYED PROCESS")
    with pytest.raises(IncompatibleStateError, match="no keyed state 'values': it has 'value'"):
        snapshot.keyed_state("every kind", ["values"])
    with pytest.raises(IncompatibleStateError, match="its operator state is 'split' \\(split\\), 'union' \\(union\\)"):
        snapshot.list_state("lists", "nothing")
    with pytest.raises(ConfigurationError, match="untyped is inferred or json"):
        snapshot.keyed_state("every kind", untyped="xml")
    with pytest.raises(Exception, match="has no option 'operater'"):
        spark.read.format("rekindle").option("operater", "x").load(fresh).collect()


# -- comparing ---------------------------------------------------------------------------------------------------------


class Counts(KeyedProcessFunction):
    """Counts per key, and keeps the last values in a map; a negative number removes its key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.STRING(), Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] < 0:
            self.count.clear()
            self.seen.clear()
            return
        self.count.update((self.count.value() or 0) + 1)
        self.seen.put(f"n{value[1]}", value[1])
        yield ctx.get_current_key(), self.count.value(), sorted(self.seen.items())


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def counting(records, uid="counts", **settings):
    env = checkpointed(1, **settings).set_max_parallelism(8)
    pairs = env.from_collection(records, PAIR).uid("pairs")
    return pairs.key_by(lambda pair: pair[0], Types.STRING()).process(Counts()).uid(uid)


def test_two_checkpoints_are_compared_key_by_key(spark, tmp_path):
    records = [("stays", 1), ("goes", 2), ("grows", 3), ("comes", 4), ("grows", 5), ("goes", -1)]
    running = InProcessJob.of(counting(records), ManualClock(0), max_records=3)
    first, second = running.checkpoint(), running.checkpoint()
    before, after = (state.read(saved(each, tmp_path)) for each in (first, second))
    changes = {row["key"]: plain(row) for row in before.compare(after, "counts").collect()}
    assert {key: row["change"] for key, row in changes.items()} == {
        "goes": "removed",
        "grows": "changed",
        "comes": "added",
    }
    assert changes["grows"]["states"] == ["count", "seen"]
    assert changes["grows"]["before"] == {"count": 1, "seen": {"n3": 3}}
    assert changes["grows"]["after"] == {"count": 2, "seen": {"n3": 3, "n5": 5}}
    assert changes["comes"]["before"] is None
    assert changes["goes"]["after"] is None
    without_spark, _ = changes_of(before._snapshot, after._snapshot, "counts", None, None)
    assert {each["key"]: each for each in without_spark} == changes
    assert before.compare(before, "counts").count() == 0
    columns = ("name", "added", "removed", "changed")
    assert [tuple(row[column] for column in columns) for row in before.compare(after).collect()] == [
        ("KEYED PROCESS", 1, 1, 1)
    ]
    emptied = state.read(after.write.remove("counts").save(str(tmp_path / "emptied")))
    assert [row["removed"] for row in after.compare(emptied).collect()] == [3]
    assert [row["added"] for row in emptied.compare(after).collect()] == [3]
    assert emptied.compare(emptied).count() == 0
    running.kill()


# -- writing -----------------------------------------------------------------------------------------------------------


def results_from(path, records, **changes):
    """What a job gives that goes on from a savepoint, all of `records` being new."""
    return InProcessJob.of(counting(records, **changes), ManualClock(0), restore=StoredCheckpoint.at(path)).run()


IGNORE = {"execution.state-recovery.ignore-unclaimed-state": "true"}


def a_savepoint(tmp_path, records=(("a", 1), ("b", 2), ("a", 3))):
    """A savepoint after all records, whose source begins anew: its state is left out."""
    running = InProcessJob.of(counting([*records, ("never", 9)]), ManualClock(0), max_records=len(records))
    taken = running.checkpoint(savepoint=True)
    path = saved(taken, tmp_path)
    running.kill()
    return path


def test_one_state_is_changed_and_the_others_stay(spark, tmp_path):
    path = a_savepoint(tmp_path)
    before = (Path(path) / "_metadata").read_bytes()
    snapshot = state.read(path)
    counts = snapshot.keyed_state("counts", ["count"])
    corrected = counts.selectExpr("key", "if(key = 'a', 40, count) AS count")
    new = snapshot.write.remove("pairs").keyed_state("counts", corrected).save(str(tmp_path / "new"))
    assert (Path(path) / "_metadata").read_bytes() == before
    assert results_from(new, [("a", 5), ("b", 6)]) == [
        ("a", 41, [("n1", 1), ("n3", 3), ("n5", 5)]),
        ("b", 2, [("n2", 2), ("n6", 6)]),
    ]


def test_keys_are_added_and_removed_by_rows(spark, tmp_path):
    snapshot = state.read(a_savepoint(tmp_path))
    columns = "key string, count bigint, seen map<string,bigint>"
    rows = spark.createDataFrame([("b", 7, {"x": 1}), ("new", 3, None)], columns)
    new = snapshot.write.remove("pairs").keyed_state("counts", rows).save(str(tmp_path / "new"))
    assert results_from(new, [("a", 1), ("b", 2), ("new", 3)]) == [
        ("a", 1, [("n1", 1)]),
        ("b", 8, [("n2", 2), ("x", 1)]),
        ("new", 4, [("n3", 3)]),
    ]


@pytest.mark.parametrize("key_type", [Types.STRING(), None], ids=str)
def test_a_job_begins_with_state_from_a_dataframe(spark, tmp_path, key_type):
    """The type of a plain key may be left out, also where the program declares it."""
    columns = "word string, count bigint, seen map<string,bigint>"
    rows = spark.createDataFrame([("a", 10, {"old": 1}), ("b", 20, None)], columns)
    states = [ValueStateDescriptor("count", Types.LONG()), MapStateDescriptor("seen", Types.STRING(), Types.LONG())]
    writer = state.new_savepoint(max_parallelism=8)
    writer.keyed_state("counts", rows, states, key="word", key_type=key_type, parallelism=3)
    new = writer.save(str(tmp_path / "bootstrap"))
    assert results_from(new, [("a", 1), ("b", 2), ("c", 3)]) == [
        ("a", 11, [("n1", 1), ("old", 1)]),
        ("b", 21, [("n2", 2)]),
        ("c", 1, [("n3", 3)]),
    ]


def test_another_maximum_parallelism_than_the_programs_is_refused_by_the_engine(spark, tmp_path):
    rows = spark.createDataFrame([("a", 10)], "key string, count long")
    states = [ValueStateDescriptor("count", Types.LONG())]
    new = state.new_savepoint(16).keyed_state("counts", rows, states).save(str(tmp_path / "bootstrap"))
    with pytest.raises(IncompatibleStateError, match="set_max_parallelism\\(16\\)"):
        results_from(new, [("a", 1)])


def test_an_operator_gets_another_uid(spark, tmp_path):
    snapshot = state.read(a_savepoint(tmp_path))
    new = snapshot.write.remove("pairs").rename("counts", "tallies").save(str(tmp_path / "new"))
    assert results_from(new, [("b", 6)], uid="tallies") == [("b", 2, [("n2", 2), ("n6", 6)])]
    with pytest.raises(IncompatibleStateError, match="which the program has no more"):
        results_from(new, [("b", 6)])


class Remembers(MapFunction, CheckpointedFunction):
    """Gives what was restored."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.STRING()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.LONG()))

    def snapshot_state(self, context):
        """Nothing changes."""

    def map(self, value):
        return value, list(self.split.get()), list(self.union.get())


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Rules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        return ()


def test_operator_state_begins_with_rows(spark, tmp_path):
    words = spark.createDataFrame([("x",), ("y",), ("z",)], "value string")
    numbers = spark.createDataFrame([(5,), (6,)], "value bigint")
    rules = spark.createDataFrame([("limit", 3)], "key string, value bigint")
    writer = state.new_savepoint(8)
    writer.list_state("remembers", ListStateDescriptor("split", Types.STRING()), words)
    writer.list_state("remembers", ListStateDescriptor("union", Types.LONG()), numbers, union=True)
    writer.broadcast_state("rules", RULES, rules)
    new = StoredCheckpoint.at(writer.save(str(tmp_path / "new")))
    env = checkpointed(2).set_max_parallelism(8)
    pairs = env.from_collection([("a", 1), ("b", 2)], PAIR).uid("pairs").set_parallelism(1)
    remembered = pairs.rebalance().map(Remembers()).uid("remembers")
    nothing = env.from_collection(["none"], Types.STRING()).uid("nothing").broadcast(RULES)
    ruled = pairs.key_by(lambda pair: pair[0], Types.STRING()).connect(nothing).process(Rules()).uid("rules")
    found = InProcessJob.of(remembered.union(ruled), ManualClock(0), restore=new).run()
    assert sorted(each for each in found if len(each) == 2) == [("a", [("limit", 3)]), ("b", [("limit", 3)])]
    lists = [each for each in found if len(each) == 3]
    assert all(sorted(union) == [5, 6] for _, _, union in lists), "every subtask has all of a union list"
    assert sorted(word for _, split, _ in lists for word in split) == ["x", "y", "z"], (
        "each has its share of a split list"
    )


class Expires(KeyedProcessFunction):
    def open(self, runtime_context):
        last = ValueStateDescriptor("last", Types.LONG())
        last.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.last = runtime_context.get_state(last)

    def process_element(self, value, ctx):
        yield ctx.get_current_key(), self.last.value()


def expiring(records, **settings):
    env = checkpointed(1, **settings).set_max_parallelism(8)
    pairs = env.from_collection(records, PAIR).uid("pairs")
    return pairs.key_by(lambda pair: pair[0], Types.STRING()).process(Expires()).uid("expires")


def test_written_state_with_a_time_to_live_keeps_its_times_or_begins_now(spark, tmp_path):
    last = ValueStateDescriptor("last", Types.LONG())
    last.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    rows = spark.createDataFrame(
        [("old", (START_MS, 1)), ("young", (START_MS + 50 * MINUTE_MS, 2))],
        "key string, last struct<last_access_ms: bigint, value: bigint>",
    )
    new = state.new_savepoint(8).keyed_state("expires", rows, [last]).save(str(tmp_path / "timed"))
    clock = ManualClock(START_MS + 70 * MINUTE_MS)
    job = InProcessJob.of(expiring([("old", 1), ("young", 1)]), clock, restore=StoredCheckpoint.at(new))
    assert job.run() == [("old", None), ("young", 2)]
    plain_rows = rows.selectExpr("key", "last.value AS last")
    now = state.new_savepoint(8).keyed_state("expires", plain_rows, [last]).save(str(tmp_path / "now"))
    times = state.read(now).keyed_state("expires", access_times=True)
    assert times.where(f"last.last_access_ms > {START_MS}").count() == 2


class Rings(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return ()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp


def test_timers_begin_with_rows(spark, tmp_path):
    rows = spark.createDataFrame(
        [("a", "event", 5000), ("b", "processing", 100)], "key string, domain string, time_ms bigint"
    )
    new = state.new_savepoint(8).timers("rings", rows, key_type=Types.STRING()).save(str(tmp_path / "new"))
    env = checkpointed(1).set_max_parallelism(8)
    pairs = env.from_collection([("c", 1)], PAIR).uid("pairs")
    ringing = pairs.key_by(lambda pair: pair[0], Types.STRING()).process(Rings()).uid("rings")
    found = InProcessJob.of(ringing, ManualClock(1000), restore=StoredCheckpoint.at(new)).run()
    assert sorted(found) == [("a", "EVENT_TIME", 5000), ("b", "PROCESSING_TIME", 100)]


def test_what_does_not_fit_is_refused_and_leaves_nothing(spark, tmp_path):
    snapshot = state.read(a_savepoint(tmp_path))
    twice = spark.createDataFrame([("a", 1), ("a", 2)], "key string, count bigint")
    with pytest.raises(Exception, match="The key 'a' is in the DataFrame more than once"):
        snapshot.write.keyed_state("counts", twice).save(str(tmp_path / "new"))
    assert list(tmp_path.rglob("new/*")) == []
    text = spark.createDataFrame([("a", "many")], "key string, count string")
    with pytest.raises(Exception, match="row of key 'a' cannot be written"):
        snapshot.write.keyed_state("counts", text).save(str(tmp_path / "new"))
    with pytest.raises(IncompatibleStateError, match="column 'extra' is no state of operator"):
        snapshot.write.keyed_state("counts", twice.selectExpr("key", "count", "1 AS extra"))
    with pytest.raises(IncompatibleStateError, match="lacks the column 'key'"):
        snapshot.write.keyed_state("counts", twice.select("count"))
    with pytest.raises(CheckpointError, match="keeps it"):
        snapshot.write.keyed_state("counts", twice, parallelism=7)
    with pytest.raises(CheckpointError, match="name a new folder"):
        snapshot.write.save(snapshot.path)
    with pytest.raises(IncompatibleStateError, match="no operator with the uid"):
        snapshot.write.remove("nobody")


def writes_twice(df, plan, builder, target, kept):
    """As if Spark had run a task twice."""
    open_store(target.url).put(f"{target.folder}/1-99-op-0.state", b"of the try that did not count")
    return write_rows(df, plan, builder, target, kept)


def test_files_of_tasks_that_spark_ran_twice_are_removed(spark, tmp_path, monkeypatch):
    snapshot = state.read(a_savepoint(tmp_path))
    monkeypatch.setattr(savepoint_builder, "write_rows", writes_twice)
    new = snapshot.write.keyed_state("counts", snapshot.keyed_state("counts")).save(str(tmp_path / "new"))
    assert not list(Path(tmp_path, "new").glob("*-99-*"))
    assert verify_checkpoint(new) == []


def test_a_savepoint_that_cannot_be_completed_leaves_nothing(spark, tmp_path, monkeypatch):
    snapshot = state.read(a_savepoint(tmp_path))
    monkeypatch.setattr(savepoint_builder, "write_rows", writes_twice)

    def fail(*_):
        raise StoreError("no space left")

    monkeypatch.setattr(savepoint_builder, "put_metadata", fail)
    writer = snapshot.write.keyed_state("counts", snapshot.keyed_state("counts"))
    with pytest.raises(StoreError, match="no space left"):
        writer.save(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_flinks_class_names_do_the_same(spark, tmp_path):
    reader = SavepointReader.read(spark, a_savepoint(tmp_path))
    assert by_key(reader.read_keyed_state(OperatorIdentifier.for_uid("counts"), "count"))["a"]["count"] == 2
    rows = spark.createDataFrame([("a", 10)], "word string, count bigint")
    transformation = (
        OperatorTransformation.bootstrap_with(rows)
        .key_by("word", Types.STRING())
        .transform(ValueStateDescriptor("count", Types.LONG()))
    )
    writer = SavepointWriter.new_savepoint(spark, 8).with_operator(OperatorIdentifier.for_uid("counts"), transformation)
    new = writer.write(str(tmp_path / "new"))
    assert results_from(new, [("a", 1)]) == [("a", 11, [("n1", 1)])]
    changed = SavepointWriter.from_existing_savepoint(spark, new).change_operator_identifier("counts", "tallies")
    renamed = changed.write(str(tmp_path / "renamed"))
    assert results_from(renamed, [("a", 1)], uid="tallies") == [("a", 11, [("n1", 1)])]
    emptied = SavepointWriter.from_existing_savepoint(spark, renamed).remove_operator("tallies")
    assert state.read(emptied.write(str(tmp_path / "empty"))).operators().count() == 0


# -- special places and keys -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Customer:
    country: str
    number: int


class Visits(KeyedProcessFunction):
    def open(self, runtime_context):
        self.visits = runtime_context.get_state(ValueStateDescriptor("visits", Types.LONG()))

    def process_element(self, value, ctx):
        self.visits.update((self.visits.value() or 0) + 1)
        yield ctx.get_current_key(), self.visits.value()


def visiting(records):
    env = checkpointed(1).set_max_parallelism(8)
    pairs = env.from_collection(records, PAIR).uid("pairs")
    return pairs.key_by(lambda pair: Customer(*pair), Customer).process(Visits()).uid("visits")


def test_keys_of_a_class_keep_their_key_group_through_its_column(spark, tmp_path):
    running = InProcessJob.of(visiting([("fr", 1), ("de", 2), ("fr", 1), ("never", 0)]), ManualClock(0), max_records=3)
    path = saved(running.checkpoint(savepoint=True), tmp_path)
    running.kill()
    snapshot = state.read(path)
    visits = snapshot.keyed_state("visits")
    assert dict(visits.dtypes)["key"] == "struct<country:string,number:bigint>"
    more = visits.selectExpr("key_group", "key", "visits + 10 AS visits")
    new = snapshot.write.remove("pairs").keyed_state("visits", more).save(str(tmp_path / "new"))
    restored = InProcessJob.of(visiting([("fr", 1), ("de", 2)]), ManualClock(0), restore=StoredCheckpoint.at(new))
    assert restored.run() == [(Customer("fr", 1), 13), (Customer("de", 2), 12)]
    with pytest.raises(Exception, match="keep the column key_group"):
        snapshot.write.keyed_state("visits", more.drop("key_group")).save(str(tmp_path / "other"))


def test_an_operator_without_keyed_state_is_an_empty_table(spark, fresh):
    snapshot = state.read(fresh)
    assert snapshot.keyed_state("timers").collect() == []
    assert snapshot.keyed_state("lists").count() == 0
    assert snapshot.timers("lists").count() == 0


@pytest.mark.parametrize("archive", IN_FLIGHT, ids=lambda archive: archive.parent.name)
def test_checkpoints_with_records_in_flight_are_read_and_kept_by_a_new_savepoint(spark, archive, tmp_path):
    snapshot = state.read(unpacked(archive, tmp_path))
    in_flight = [row for row in snapshot.operators().collect() if row["in_flight"]]
    assert in_flight
    for operator in snapshot.operators().where("keyed").collect():
        assert snapshot.keyed_state(operator["operator_id"]).columns[:2] == ["key_group", "key"]
    new = snapshot.write.save(str(tmp_path / "new"))
    job = InProcessJob.of(in_flight_program(2), CLOCK, restore=StoredCheckpoint.at(new))
    assert sorted(in_flight_interrupted().results + job.run()) == IN_FLIGHT_EXPECTED


def test_state_on_an_object_store_is_read_and_written_and_no_secret_is_in_the_plan(spark, fresh, s3):
    url = f"{s3.new_bucket()}/state-tables"
    configuration = Configuration.from_dict(s3.settings())
    options = store_options(configuration)
    copied = copy_checkpoint(fresh, f"{url}/copied", options)
    snapshot = state.read(copied, configuration=configuration)
    table = snapshot.keyed_state("every kind", ["value"])
    assert {row["key"]: row["value"] for row in table.collect()} == {0: 63, 1: 70, 2: 57}
    assert SECRET not in table._jdf.queryExecution().toString()
    new = snapshot.write.keyed_state("every kind", table.selectExpr("key", "value + 1 AS value")).save(f"{url}/new")
    again = state.read(new, configuration=configuration).keyed_state("every kind")
    assert again.agg({"value": "sum"}).first()[0] == 63 + 70 + 57 + 3
    assert verify_checkpoint(new, options) == []
    assert {entry.folder for entry in list_checkpoints(url, options)} == {"copied", "new"}
