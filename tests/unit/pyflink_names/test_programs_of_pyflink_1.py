"""Names that PyFlink programs use beside the API of 2.3: each is imported, and a small program runs with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import pytest

from rekindle import pyflink_names
from rekindle.errors import GraphError, JavaOnlyError, TypeMismatchError
from rekindle.testing import InProcessJob
from tests.support.environments import environment


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    pyflink_names.install()
    yield
    pyflink_names.uninstall()


def test_type_variables_of_functions_and_windows() -> None:
    from pyflink.datastream.functions import IN, IN1, IN2, KEY, OUT, W2, KeyedProcessFunction, W
    from pyflink.datastream.window import KEY as WINDOW_KEY
    from pyflink.datastream.window import T, TimeWindow

    class Mine(KeyedProcessFunction, Generic[KEY, IN, OUT]):  # type: ignore[misc]  # checkers do not find pyflink
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield value + 1

    assert {each.__name__ for each in (IN1, IN2, W, W2, T, WINDOW_KEY)} == {"IN1", "IN2", "W", "W2", "T", "KEY"}
    assert TimeWindow(0, 1).max_timestamp() == 0
    env = environment()
    assert InProcessJob.of(env.from_collection([1, 2]).key_by(lambda x: x).process(Mine())).run() == [2, 3]


def test_time_of_windows_is_there_and_makes_a_window() -> None:
    from pyflink.datastream.window import Time, TumblingEventTimeWindows

    assert TumblingEventTimeWindows.of(Time.seconds(1)).assign_windows(1500, 1500, None)[0].start == 1000


def test_event_time_as_the_characteristic_is_said_to_be_gone(caplog: pytest.LogCaptureFixture) -> None:
    from pyflink.datastream import TimeCharacteristic
    from pyflink.datastream.time_characteristic import TimeCharacteristic as Same

    assert Same is TimeCharacteristic
    env = environment()
    with caplog.at_level(logging.WARNING):
        env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    assert "gone since Flink 2.0" in caplog.text
    assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_config().get_auto_watermark_interval() == 0
    with pytest.raises(GraphError, match="ingestion time is gone"):
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    assert InProcessJob.of(env.from_collection([1])).run() == [1]


def test_read_text_file_reads_lines(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("to\nbe\n")
    stream = environment().read_text_file(str(tmp_path / "words.txt"))
    assert InProcessJob.of(stream.map(str.upper)).run() == ["TO", "BE"]


def test_schemas_of_formats_are_found_where_they_were(caplog: pytest.LogCaptureFixture) -> None:
    from pyflink.common import Types

    with caplog.at_level(logging.WARNING):
        from pyflink.common.serialization import JsonRowDeserializationSchema, JsonRowSerializationSchema
    assert "pyflink.datastream.formats.json.JsonRowSerializationSchema" in caplog.text
    row_type = Types.ROW_NAMED(["a"], [Types.INT()])
    read = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    write = JsonRowSerializationSchema.builder().with_type_info(row_type).build()
    assert write.serialize(read.deserialize(b'{"a": 1}')) == b'{"a":1}'


def test_checkpoints_are_kept_by_the_earlier_name() -> None:
    from pyflink.datastream import ExternalizedCheckpointCleanup

    checkpoints = environment().get_checkpoint_config()
    checkpoints.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    kept = ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION
    assert checkpoints.get_externalized_checkpoint_cleanup() is kept


def test_the_package_has_a_file() -> None:
    import pyflink

    assert os.path.isdir(os.path.dirname(os.path.abspath(pyflink.__file__)))


def test_a_map_state_is_its_internal_state() -> None:
    from pyflink.common import Types
    from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
    from pyflink.datastream.state import MapStateDescriptor

    class Count(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.counts = runtime_context.get_map_state(MapStateDescriptor("n", Types.STRING(), Types.LONG()))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            inner = self.counts.get_internal_state()
            inner.put(value, (inner.get(value) or 0) + 1)
            yield self.counts.get(value)

    stream = environment().from_collection(["a", "a"]).key_by(lambda x: x).process(Count())
    assert InProcessJob.of(stream).run() == [1, 2]


@dataclass
class Order:
    item: str
    amount: int


def test_objects_with_fields_stand_for_rows() -> None:
    from pyflink.common import Row, Types

    row_type = Types.ROW_NAMED(["item", "amount"], [Types.STRING(), Types.INT()])
    stream = environment().from_collection([1]).map(lambda n: Order("tea", n), output_type=row_type)
    assert InProcessJob.of(stream.map(lambda row: (type(row) is Row, row["item"], row.amount))).run() == [
        (True, "tea", 1)
    ]
    with pytest.raises(TypeMismatchError, match="object with such fields"):
        row_type.to_internal_type(object())


def test_unknown_properties_of_kafka_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    from pyflink.common.serialization import SimpleStringSchema
    from pyflink.datastream.connectors.kafka import FlinkKafkaConsumer

    with caplog.at_level(logging.WARNING, "rekindle.kafka"):
        FlinkKafkaConsumer("orders", SimpleStringSchema(), {"bootstrap.servers": "x:1", "group_id": "g"})
    assert "Kafka has no property 'group_id', it has no effect: did you mean 'group.id'?" in caplog.text


def test_the_configuration_of_the_environment_is_reached_as_java_programs_reach_it() -> None:
    from pyflink.common import Configuration
    from pyflink.util.java_utils import get_j_env_configuration

    env = environment()
    view = Configuration(j_configuration=get_j_env_configuration(env._j_stream_execution_environment))
    view.set_integer("parallelism.default", 3)
    assert env.get_parallelism() == 3
    assert Configuration(j_configuration=env._j_stream_execution_environment.getConfiguration()) == view
    with pytest.raises(JavaOnlyError, match=r"_j_stream_execution_environment.addSource"):
        _ = env._j_stream_execution_environment.addSource
    with pytest.raises(JavaOnlyError, match="j_configuration"):
        Configuration(j_configuration=object())


def test_a_table_environment_has_a_local_time_zone() -> None:
    from pyflink.table import StreamTableEnvironment

    config = StreamTableEnvironment.create(environment()).get_config()
    config.set_local_timezone("Asia/Shanghai")
    assert config.get_local_timezone() == "Asia/Shanghai"
    with pytest.raises(GraphError, match="no time zone 'Mars/Olympus'"):
        config.set_local_timezone("Mars/Olympus")
