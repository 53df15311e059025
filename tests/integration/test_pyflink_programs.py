"""PyFlink programs, byte for byte unchanged, print what a real PyFlink printed.

PyFlink's examples come from its wheel, three longer programs from examples/pyflink. `make compat` recorded the output.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rekindle import pyflink_names
from rekindle.config import EPOCH_INITIAL_RECORDS, EPOCH_MAX_RECORDS
from tests.integration.kafka.kafka_reading import messages
from tests.support.kafka_topics import empty_topic
from tests.support.until_enough import run_until
from tools.compat.pyflink.environment import example_programs
from tools.compat.pyflink.programs import ENDLESS, PROGRAMS, RECORDED, in_any_order, plain, source_of
from tools.servers.kafka_access import KafkaAccess

#: The first program waits for the session, and for PyFlink's wheel.
DEADLINE_S = 600
#: An endless program has printed enough within seconds.
PRINTED_S = 300.0
#: A watermark follows each epoch: with short ones, as with the pauses in this program, late events are late.
SHORT_EPOCHS = {"own/web_sessions": 30}
#: State of these programs lives for a second of the clock: where a busy machine takes longer, they run again.
WITH_SHORT_LIVED_STATE = {"datastream/state_access", "datastream/event_time_timer"}
MOST_RUNS = 4


@pytest.fixture(scope="module")
def examples() -> Path:
    return example_programs()


@pytest.fixture(autouse=True)
def pyflink() -> Iterator[None]:
    pyflink_names.install()
    yield
    pyflink_names.uninstall()


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pyflink_program_prints_what_pyflink_prints(
    spark: object,
    examples: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All records in the first epoch, unless the program needs watermarks between them.
    records = SHORT_EPOCHS.get(name, 1000)
    for option in (EPOCH_INITIAL_RECORDS, EPOCH_MAX_RECORDS):
        monkeypatch.setitem(option.__dict__, "default", records)
    program = source_of(name, examples)
    monkeypatch.setattr(sys, "argv", [str(program)])
    expected = (RECORDED / f"{name}.txt").read_text().splitlines()
    printed: list[str] = []
    for _ in range(MOST_RUNS if name in WITH_SHORT_LIVED_STATE else 1):
        runpy.run_path(str(program), run_name="__main__")
        printed = PROGRAMS[name](capsys.readouterr().out.splitlines())
        if printed == expected:
            break
    assert printed == expected


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_pyflink_program_prints_in_pyflinks_form(
    spark: object, examples: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = ENDLESS[name]
    lines = run_until(
        source_of(name, examples), lambda lines: len(plain(lines)) >= compared.enough, PRINTED_S, monkeypatch
    )
    assert compared.form(plain(lines)) == (RECORDED / f"{name}.txt").read_text().splitlines()


WORDS = [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello")]
ROWS = [f"+I[{number},{word}]" for number, word in WORDS]
COUNTRIES = ['{"id": 1, "country": "USA"}', '{"id": 2, "country": "Canada"}', '{"id": 3, "country": "Germany"}']
#: By the format: the messages that the program writes, and what it prints when it reads them.
KAFKA_PROGRAMS = {
    "json": ([f'{{"f0":{number},"f1":"{word}"}}'.encode() for number, word in WORDS], ROWS),
    "csv": ([f"{number},{word}\n".encode() for number, word in WORDS], ROWS),
    "avro": ([bytes([2 * number, 2 * len(word)]) + word.encode() for number, word in WORDS], ROWS),
    "bytearray": ([text.encode() for text in COUNTRIES], COUNTRIES),
}
KAFKA_SAID = ["start writing data to kafka", "start reading data from kafka"]


@pytest.mark.parametrize("format", KAFKA_PROGRAMS)
def test_a_kafka_program_of_pyflink_reads_what_it_has_written(
    spark: object, examples: Path, kafka: KafkaAccess, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = empty_topic(kafka, f"test_{format}_topic")
    monkeypatch.setenv("REKINDLE_KAFKA_BROKERS", kafka.bootstrap_servers)
    program = examples / "datastream" / "connectors" / f"kafka_{format}_format.py"
    written, printed = KAFKA_PROGRAMS[format]
    expected = sorted([*KAFKA_SAID, *printed])
    lines = run_until(program, lambda lines: len(plain(lines)) >= len(expected), PRINTED_S, monkeypatch)
    assert in_any_order(lines) == expected
    assert sorted(message.value() or b"" for message in messages(kafka, topic)) == sorted(written)


def test_pyflinks_example_of_keys_in_kafka_writes_keys_and_values(
    spark: object,
    examples: Path,
    kafka: KafkaAccess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = empty_topic(kafka, "row-extractor-example")
    monkeypatch.setenv("REKINDLE_KAFKA_BROKERS", kafka.bootstrap_servers)
    program = examples / "datastream" / "connectors" / "kafka_row_field_extractor_example.py"
    runpy.run_path(str(program), run_name="__main__")
    found = [(message.key(), json.loads(message.value() or b"")["item"]) for message in messages(kafka, topic)]
    assert sorted(found) == [
        (b"user-001", "laptop"),
        (b"user-001", "mouse"),
        (b"user-002", "phone"),
        (b"user-003", "keyboard"),
    ]


FAILING = """
from py4j.protocol import Py4JJavaError
from pyflink.datastream import StreamExecutionEnvironment

def fail(value):
    from pyflink.common import Row  # in the slot as well, the name leads to Rekindle
    raise ValueError(f"no {Row(value)}")

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(fail).print()
try:
    env.execute()
except Py4JJavaError as error:
    caught = error
"""


@pytest.mark.timeout(DEADLINE_S)
def test_except_py4j_java_error_catches_what_a_job_raises(spark: object, tmp_path: Path) -> None:
    program = tmp_path / "failing.py"
    program.write_text(FAILING)
    caught = runpy.run_path(str(program), run_name="__main__")["caught"]
    assert "ValueError: no <Row(1)>" in str(caught)
    assert "ValueError: no <Row(1)>" in caught.java_exception.getMessage()
