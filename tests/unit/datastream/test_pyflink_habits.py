"""Small habits of PyFlink that programs rely on: list keys, keyed collecting, its sentences, its special methods."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from rekindle.common import Configuration, Row, Time, Types, WatermarkStrategy
from rekindle.common.serialization import RowFieldExtractorSchema
from rekindle.common.typeinfo import TypeHint, TypeInformation
from rekindle.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.slot_sharing_group import MemorySize
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
)
from rekindle.errors import ConfigurationError, GraphError, InvalidKeyError, TypeMismatchError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


class ByBoth(KeySelector):
    def get_key(self, value):
        return [value[0], [value[1]]]


@pytest.mark.parametrize("selector", [lambda pair: [pair[0], [pair[1]]], ByBoth()])
def test_a_list_is_a_key(selector) -> None:
    pairs = environment().from_collection([("a", 1), ("a", 1), ("b", 1)])
    counted = pairs.map(lambda pair: (*pair, 1)).key_by(selector).reduce(lambda x, y: (x[0], x[1], x[2] + y[2]))
    assert sorted(InProcessJob.of(counted).run()) == [("a", 1, 1), ("a", 1, 2), ("b", 1, 1)]


class ByTags(KeySelector):
    def get_key(self, value):
        return value["tags"]


def tags_of(record):
    return record["tags"]


@pytest.mark.parametrize(
    "selector", [lambda record: record["tags"], lambda record: tags_of(record), tags_of, itemgetter("tags"), ByTags()]
)
@pytest.mark.parametrize("others", [[], [{"tags": None, "n": 5}, {"tags": ("a", ("b",)), "n": 7}]])
def test_a_list_that_the_record_holds_is_a_key_without_a_declared_type(selector, others) -> None:
    class Sums(KeyedProcessFunction):
        def open(self, runtime_context):
            self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

        def process_element(self, value, ctx):
            self.sum.update((self.sum.value() or 0) + value["n"])
            yield ctx.get_current_key(), self.sum.value()

    records = [*others, {"tags": ["a", ["b"]], "n": 1}, {"tags": ["c"], "n": 2}, {"tags": ["a", ["b"]], "n": 4}]
    results = InProcessJob.of(environment().from_collection(records).key_by(selector).process(Sums())).run()
    last = dict(results)
    assert last[("c",)] == 2
    assert last[("a", ("b",))] == (12 if others else 5)
    assert len(results) == len(records)


def timed(records: list[Any]) -> DataStream:
    """Triples of key, number and event time."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda triple, _: triple[2])
    return environment().from_collection(records).assign_timestamps_and_watermarks(strategy)


def add(x: Any, y: Any) -> Any:
    return x[0], x[1] + y[1], y[2]


class FirstKeyAndSum(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, sum(element[1] for element in elements)


class CurrentKey(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield ctx.get_current_key(), value[1]

    process_element2 = process_element1


class Together(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1] + right[1]


#: A key that is no list among keys that are, so that each loop meets both.
TRIPLES = [("c", 8, 0), (["a"], 1, 0), (["a"], 2, 1), (["b"], 4, 2)]


@pytest.mark.parametrize(
    ("assigner", "function"),
    [
        (TumblingEventTimeWindows.of(Time.seconds(1)), "reduce"),
        (TumblingEventTimeWindows.of(Time.seconds(1)), "process"),
        (EventTimeSessionWindows.with_gap(Time.seconds(1)), "reduce"),
        (EventTimeSessionWindows.with_gap(Time.seconds(1)), "process"),
        (GlobalWindows.create(), "process"),
    ],
)
def test_lists_as_keys_of_windows(assigner: Any, function: str) -> None:
    windows = timed(TRIPLES).key_by(lambda triple: triple[0]).window(assigner)
    if isinstance(assigner, GlobalWindows):
        windows = windows.trigger(CountTrigger.of(2))
    result = windows.reduce(add) if function == "reduce" else windows.process(FirstKeyAndSum())
    found = [(record[0], record[1]) for record in InProcessJob.of(result).run()]
    if function == "reduce":
        assert sorted(found, key=str) == [("c", 8), (["a"], 3), (["b"], 4)]
    elif isinstance(assigner, GlobalWindows):
        assert found == [(("a",), 3)]
    else:
        assert sorted(found, key=str) == [("c", 8), (("a",), 3), (("b",), 4)]


def test_lists_as_keys_of_connected_and_joined_streams_and_of_plain_functions() -> None:
    left = timed(TRIPLES)
    pairs = left.connect(left).key_by(lambda triple: triple[0], lambda triple: triple[0])
    assert sorted(InProcessJob.of(pairs.process(CurrentKey())).run(), key=str) == sorted(
        [(("a",), 1), (("a",), 2), (("b",), 4), ("c", 8)] * 2, key=str
    )
    keyed = timed(TRIPLES).key_by(lambda triple: triple[0])
    joined = keyed.interval_join(keyed).between(Time.milliseconds(0), Time.milliseconds(0)).process(Together())
    assert sorted(InProcessJob.of(joined).run()) == [2, 4, 8, 16]
    assert sorted(InProcessJob.of(keyed.map(itemgetter(1))).run()) == [1, 2, 4, 8]
    assert sorted(record[1] for record in InProcessJob.of(keyed.reduce(add)).run()) == [1, 3, 4, 8]


def test_a_key_that_cannot_be_hashed_is_refused_in_a_sentence() -> None:
    records = environment().from_collection([({"a": 1}, 1)]).key_by(lambda pair: pair[0]).sum(1)
    with pytest.raises(OperatorFailure) as failure:
        InProcessJob.of(records).run()
    assert isinstance(failure.value.__cause__, InvalidKeyError)
    assert "A key must be hashable, for example a tuple instead of a dict" in str(failure.value.__cause__)


def test_a_list_key_of_a_declared_type_is_a_key() -> None:
    records = environment().from_collection([([1, 2], 1), ([1, 2], 2)])
    summed = records.key_by(lambda record: record[0], key_type=Types.LIST(Types.INT())).sum(1)
    assert [record[1] for record in InProcessJob.of(summed).run()] == [1, 3]


def test_collecting_a_keyed_stream_gives_keys_and_records() -> None:
    pairs = environment().from_collection([("a", 1), ("b", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    rows = InProcessJob.of(pairs.key_by(lambda pair: pair[0], Types.STRING())._with_keys()).run()
    assert rows == [Row(f0="a", f1=("a", 1)), Row(f0="b", f1=("b", 2))]


def test_refusals_begin_with_pyflinks_sentences() -> None:
    keyed = environment().from_collection([("a", 1)]).key_by(lambda pair: pair[0])
    for call, sentence in (
        (lambda: keyed.name("x"), r"Set name for KeyedStream is not supported\."),
        (lambda: keyed.set_parallelism(1), r"Set parallelism for KeyedStream is not supported\."),
        (lambda: keyed.cache(), r"Cache for KeyedStream is not supported\."),
        (lambda: keyed.shuffle(), r"Cannot override partitioning for KeyedStream\."),
        (lambda: keyed.partition_custom(lambda k, n: 0, lambda v: v), r"Cannot override partitioning for KeyedStream"),
    ):
        with pytest.raises(GraphError, match=sentence):
            call()
    with pytest.raises(TypeMismatchError, match=r"Only Tuple DataStreams can be projected\."):
        environment().from_collection([1], Types.INT()).project(0)
    with pytest.raises(ValueError, match="Field index must be non-negative"):
        RowFieldExtractorSchema(-1)


def test_a_projection_has_flinks_name_and_works_on_a_keyed_stream() -> None:
    pairs = environment().from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    projected = pairs.key_by(lambda pair: pair[0]).project(1)
    assert projected.get_name() == "Projection"
    assert InProcessJob.of(projected).run() == [(1,)]


def test_settings_of_ones_own_are_kept_and_readable_in_functions() -> None:
    class Region(MapFunction):
        def open(self, runtime_context):
            self.region = runtime_context.get_job_parameter("acme.region", "nowhere")
            self.unset = runtime_context.get_job_parameter("acme.unset", "nowhere")

        def map(self, value):
            return value, self.region, self.unset

    stream = environment(acme_region="eu").from_collection([1]).map(Region())
    assert InProcessJob.of(stream).run() == [(1, "eu", "nowhere")]


@pytest.mark.parametrize("key", ["parallelism.defualt", "state.backend.rocksdb.x", "taskmanagr.memory", "rekindle.x"])
def test_a_key_that_looks_mistyped_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"knows no configuration key '{key}'"):
        Configuration().set_string(key, "1")


def test_special_methods_are_pyflinks() -> None:
    assert MemorySize.of_mebi_bytes(1) <= MemorySize.of_mebi_bytes(1) <= MemorySize.of_mebi_bytes(2)
    assert str(MemorySize.of_mebi_bytes(100)) == "100 mb"
    assert str(HashMapStateBackend()) == "HashMapStateBackend"
    assert str(EmbeddedRocksDBStateBackend(True)) == (
        "EmbeddedRocksDBStateBackend{, localRocksDbDirectories=null, enableIncrementalCheckpointing=TRUE, "
        "numberOfTransferThreads=-1, writeBatchSize=-1}"
    )
    assert str(JobManagerCheckpointStorage()) == (
        "JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: 5242880)"
    )
    assert FileSystemCheckpointStorage("file:///c/").get_checkpoint_path() == "file:///c"
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("file:///var/db/", "/data", "file://var/db", "file:/c")  # Flink leaves out a host
    assert backend.get_db_storage_paths() == ["/var/db", "/data", "/db", "/c"]
    backend.set_options("org.example.MyOptions")  # has no effect, with a warning
    assert backend.get_options() == "org.example.MyOptions"
    for type_info, text in (
        (Types.ROW_NAMED(["a"], [Types.STRING()]), "RowTypeInfo(a: String)"),
        (Types.ROW([Types.INT()]), "RowTypeInfo(Integer)"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), "TupleTypeInfo(String, Integer)"),
        (Types.LIST(Types.MAP(Types.STRING(), Types.INT())), "ListTypeInfo<MapTypeInfo<String, Integer>>"),
        (Types.SQL_TIMESTAMP(), "TimestampTypeInfo"),
        (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
    ):
        assert str(type_info) == text


def test_type_hints_are_written_as_the_texts_write_them() -> None:
    assert TypeInformation.of(TypeHint[tuple[str, int]]) == Types.TUPLE([Types.STRING(), Types.LONG()])
    assert TypeInformation.of(TypeHint[str]()) == Types.STRING()
    assert TypeHint(list[float]).get_type_info() == Types.LIST(Types.DOUBLE())
