"""Configuration: PyFlink's methods, and keys that are checked."""

from __future__ import annotations

import copy
import logging
from datetime import timedelta
from typing import Any

import pytest

from rekindle import config, config_parsers
from rekindle.common import ConfigOptions, Configuration, Duration
from rekindle.common import configuration as configuration_module
from rekindle.common.flink_keys import flink_keys, is_flink_key
from rekindle.errors import ConfigurationError


def test_getters_and_setters() -> None:
    conf = Configuration()
    conf.set_string("pipeline.name", "job").set_integer("parallelism.default", 2)
    conf.set_boolean("pipeline.object-reuse", True)
    conf.set_float("restart-strategy.exponential-delay.jitter-factor", 0.5)
    conf.set_bytearray("python.job-options.x", bytearray(b"\x01\x02"))
    assert conf.get_string("pipeline.name", "") == "job"
    assert conf.get_integer("parallelism.default", 0) == 2
    assert conf.get_boolean("pipeline.object-reuse", False) is True
    assert conf.get_float("restart-strategy.exponential-delay.jitter-factor", 0) == 0.5
    assert conf.get_bytearray("python.job-options.x", bytearray()) == bytearray(b"\x01\x02")


def test_defaults_of_getters() -> None:
    conf = Configuration()
    assert conf.get_string("pipeline.name", "d") == "d"
    assert conf.get_integer("parallelism.default", 7) == 7
    assert conf.get_boolean("pipeline.object-reuse", True) is True
    assert conf.get_float("heartbeat.timeout", 1) == 1.0
    assert conf.get_bytearray("pipeline.name", bytearray(b"x")) == bytearray(b"x")


def test_text_is_read_as_what_is_asked_for() -> None:
    conf = Configuration.from_dict({"parallelism.default": "4", "pipeline.object-reuse": "TRUE"})
    assert conf.get_integer("parallelism.default", 0) == 4
    assert conf.get_boolean("pipeline.object-reuse", False) is True
    with pytest.raises(
        ConfigurationError, match=r"'pipeline.object-reuse' cannot be used: 'TRUE' is not a whole number"
    ):
        conf.get_integer("pipeline.object-reuse", 0)


def test_to_dict_gives_text_and_add_all_to_dict_values() -> None:
    conf = Configuration().set_integer("parallelism.default", 1).set_boolean("pipeline.object-reuse", True)
    assert conf.to_dict() == {"parallelism.default": "1", "pipeline.object-reuse": "true"}
    target: dict[str, Any] = {}
    conf.add_all_to_dict(target)
    assert target == {"parallelism.default": 1, "pipeline.object-reuse": True}
    assert str(conf) == "{parallelism.default=1, pipeline.object-reuse=true}"


def test_copies_are_independent_and_equal() -> None:
    conf = Configuration().set_string("pipeline.name", "a")
    for other in (Configuration(conf), copy.deepcopy(conf)):
        assert other == conf
        assert hash(other) == hash(conf)
        other.set_string("pipeline.name", "b")
        assert other != conf


def test_keys_can_be_listed_merged_and_removed() -> None:
    conf = Configuration().set_string("pipeline.name", "a")
    other = Configuration().add_all(conf)
    assert other.key_set() == {"pipeline.name"}
    assert other.contains_key("pipeline.name")
    assert other.remove_config("pipeline.name") is True
    assert other.remove_config("pipeline.name") is False
    own = Configuration().add_all(conf, "pipeline.global-job-parameters.")
    assert own.key_set() == {"pipeline.global-job-parameters.pipeline.name"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            "paralelism.default",
            "Flink knows no configuration key 'paralelism.default'. Did you mean 'parallelism.default'",
        ),
        ("execution.checkpointing.intervall", "'execution.checkpointing.interval'"),
        ("rekindle.epoch.max-record", "Rekindle knows no .* 'rekindle.epoch.max-records'"),
        ("spark.executor.memory", "write 'rekindle.spark.conf.spark.executor.memory'"),
        ("executon.of-our-own-team.name", "Its first word is like 'execution'"),
        ("rekindle.spark.conf.", "Rekindle knows no configuration key"),
    ],
)
def test_an_unknown_key_fails_by_name(key: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Configuration().set_string(key, "1")
    with pytest.raises(ConfigurationError, match=message):
        Configuration.from_dict({key: "1"})


def test_a_flink_key_without_meaning_warns_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_module, "_warned", set())
    with caplog.at_level(logging.WARNING, logger="rekindle"):
        Configuration().set_string("taskmanager.numberOfTaskSlots", "4")
        Configuration().set_string("taskmanager.numberOfTaskSlots", "5")
        Configuration().set_string("parallelism.default", "5")
    assert [record.getMessage() for record in caplog.records] == [
        "The Flink setting 'taskmanager.numberOfTaskSlots' has no meaning in Rekindle and is ignored."
    ]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parallelism.default", "two", "'two' is not a whole number"),
        ("execution.checkpointing.interval", "10 parsecs", "no amount of time"),
        ("rekindle.slot.memory-buffer", "64 apples", "no amount of memory"),
        ("execution.runtime-mode", "SOMETIMES", "none of STREAMING, BATCH, AUTOMATIC"),
        ("rekindle.epoch.max-records", "0", "smaller than 1"),
        ("pipeline.object-reuse", "yes", "neither true nor false"),
        ("pipeline.global-job-parameters", "a", "no map"),
    ],
)
def test_a_value_that_cannot_be_read_fails_when_it_is_set(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{key}' cannot be used: .*{message}"):
        Configuration().set_string(key, value)


def test_options_are_read_with_their_types_and_defaults() -> None:
    conf = Configuration.from_dict({"heartbeat.interval": "500 ms", "rekindle.slot.memory-buffer": "1gb"})
    assert conf.get(config.HEARTBEAT_INTERVAL) == timedelta(milliseconds=500)
    assert conf.get_millis(config.HEARTBEAT_INTERVAL) == 500
    assert conf.get(config.SLOT_MEMORY_BUFFER) == 2**30
    assert conf.get(config.EPOCH_MAX_RECORDS) == 4_000_000
    assert conf.get(config.CHECKPOINT_INTERVAL) is None
    assert conf.contains(config.HEARTBEAT_INTERVAL)
    assert not conf.contains(config.HEARTBEAT_TIMEOUT)


def test_deprecated_spellings_are_read_and_replaced() -> None:
    conf = Configuration.from_dict(
        {"state.checkpoints.dir": "/a", "restart-strategy": "fixeddelay", "master": "local[2]"}
    )
    assert conf.get(config.CHECKPOINT_DIRECTORY) == "/a"
    assert conf.get(config.RESTART_STRATEGY) == "fixed-delay"
    assert conf.get(config.MASTER) == "local[2]"
    conf.set(config.CHECKPOINT_DIRECTORY, "/b")
    assert conf.get(config.CHECKPOINT_DIRECTORY) == "/b"
    assert not conf.contains_key("state.checkpoints.dir")
    conf.set(config.CHECKPOINT_DIRECTORY, None)
    assert not conf.contains(config.CHECKPOINT_DIRECTORY)


def test_durations_can_be_set_as_objects_and_survive_as_text() -> None:
    conf = Configuration().set(config.CHECKPOINT_INTERVAL, timedelta(seconds=30))
    assert conf.to_dict() == {"execution.checkpointing.interval": "30000 ms"}
    assert Configuration.from_dict(conf.to_dict()).get(config.CHECKPOINT_INTERVAL) == timedelta(seconds=30)
    again = Configuration.from_dict({"execution.checkpointing.interval": Duration.of_minutes(2)})
    assert again.get(config.CHECKPOINT_INTERVAL) == timedelta(minutes=2)


def test_maps_survive_as_text() -> None:
    conf = Configuration().set(config.GLOBAL_JOB_PARAMETERS, {"a": "1", "b": "2"})
    assert Configuration.from_dict(conf.to_dict()).get(config.GLOBAL_JOB_PARAMETERS) == {"a": "1", "b": "2"}


def test_the_options_of_a_users_own() -> None:
    option = ConfigOptions.key("parallelism.default").int_type().default_value(3)
    assert Configuration().get(option) == 3
    assert Configuration.from_dict({"parallelism.default": "5"}).get(option) == 5
    nothing = ConfigOptions.key("pipeline.name").string_type().no_default_value()
    assert Configuration().get(nothing) is None
    assert Configuration().set(nothing, "x").get(nothing) == "x"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10 s", timedelta(seconds=10)),
        ("10s", timedelta(seconds=10)),
        ("500ms", timedelta(milliseconds=500)),
        ("1 min", timedelta(minutes=1)),
        ("2 h", timedelta(hours=2)),
        ("1 d", timedelta(days=1)),
        ("250", timedelta(milliseconds=250)),
        ("1.5 s", timedelta(milliseconds=1500)),
        ("PT10S", timedelta(seconds=10)),
        ("pt1h30m", timedelta(minutes=90)),
        ("P1DT2H", timedelta(hours=26)),
        ("3000 us", timedelta(milliseconds=3)),
    ],
)
def test_spellings_of_durations(text: str, amount: timedelta) -> None:
    assert config_parsers.parse_duration(text) == amount


@pytest.mark.parametrize("text", ["", "s", "-1 s", "P", "PT", "1 fortnight"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no amount of time"):
        config_parsers.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("64mb", 2**26), ("64 MB", 2**26), ("1g", 2**30), ("512k", 2**19), ("7", 7), ("7 bytes", 7)]
)
def test_spellings_of_sizes(text: str, size: int) -> None:
    assert config_parsers.parse_size(text) == size


def test_lists() -> None:
    for text in ("a;b", "[a, b]", "- a\n- b", "a,b", "['a', 'b']"):
        assert Configuration.parse_list_value(text) == ["a", "b"]
    assert Configuration.parse_list_value(None) == []


def test_every_option_is_known_documented_and_reads_its_own_default() -> None:
    for key, option in config.OPTIONS.items():
        assert is_flink_key(key) or key.startswith("rekindle.") or key in ("master", "state.pickle"), key
        assert option.description.endswith("."), key
        if option.default is not None:
            assert option.read(option.default) == option.default, key


@pytest.mark.parametrize(
    "key",
    [
        "taskmanager.memory.process.size",
        "jobmanager.rpc.address",
        "high-availability.zookeeper.quorum",
        "table.exec.mini-batch.enabled",
        "kubernetes.cluster-id",
        "python.fn-execution.bundle.size",
        "state.backend.rocksdb.memory.managed",
        "security.kerberos.login.keytab",
        "rest.port",
        "akka.ask.timeout",
        "metrics.reporter.prom.factory.class",
        "containerized.master.env.LD_LIBRARY_PATH",
        "s3.access-key",
        "state.backend.rocksdb.metrics.num-snapshots",
        "yarn.heap-cutoff-ratio",
        "cleanup-strategy",
    ],
)
def test_flink_keys_are_known(key: str) -> None:
    assert is_flink_key(key)


def test_keys_that_only_a_reporter_knows_without_its_name_are_the_programs_own() -> None:
    assert not {"factory.class", "scope.delimiter", "interval", "path"} & flink_keys()


def test_there_are_many_flink_keys_and_none_is_malformed() -> None:
    assert len(flink_keys()) > 1000
    assert not [key for key in flink_keys() if " " in key or key.endswith(".") or ".." in key]
