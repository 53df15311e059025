"""The settings of a job: one frozen value, and the engine reads each of its fields."""

from __future__ import annotations

import ast
import logging
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rekindle
from rekindle import config
from rekindle.common import Configuration, configuration
from rekindle.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    RocksDBStateBackend,
    StreamExecutionEnvironment,
)
from rekindle.errors import ConfigurationError, GraphError
from rekindle.graph import settings as graph_settings
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan
from rekindle.graph.settings import JobSettings, LocalRecoverySettings
from tests.support.environments import environment

SOURCES = Path(rekindle.__file__).parent
#: Files that fill the settings or only drive the engine in tests: a setting that no other file reads does nothing.
NOT_READERS = (SOURCES / "graph" / "settings.py", SOURCES / "testing")


#: The groups of settings, and the names under which parts of the engine hold them.
GROUPS = {each.name: each.type for each in fields(JobSettings) if each.type in vars(graph_settings)}
HELD_AS = ("policy", "limits", "backend")


def settings_of_all_groups() -> list[str]:
    """Every setting, those of a group without the group's name."""
    alone = [each.name for each in fields(JobSettings) if each.name not in GROUPS]
    return alone + [name for kind in GROUPS.values() for name in _fields(getattr(graph_settings, kind))]


def _fields(kind: type) -> list[str]:
    return [each.name for each in (fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind))]


def read_somewhere() -> set[str]:
    """The names `x` of all `settings.x`, `settings.epochs.x` and the like in the engine's code."""
    engine = (path for path in SOURCES.rglob("*.py") if not any(path.is_relative_to(other) for other in NOT_READERS))
    return {name for path in engine for name in _reads(ast.parse(path.read_text()))}


def _reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.lstrip("_") in {"settings", *GROUPS, *HELD_AS}:
                yield node.attr


def unread(names: Iterable[str]) -> list[str]:
    """The names that no part of the engine reads; a field that a read property uses counts as read."""
    read = read_somewhere()
    settings = ast.parse(NOT_READERS[0].read_text())
    for node in ast.walk(settings):
        if isinstance(node, ast.FunctionDef) and node.name in read:
            read |= {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    return sorted(set(names) - read)


def test_no_setting_is_there_that_nobody_reads():
    assert unread(settings_of_all_groups()) == []
    assert unread(GROUPS) == []


def test_a_setting_that_nobody_reads_is_found():
    assert unread(["chunk_records", "a_setting_that_nobody_reads"]) == ["a_setting_that_nobody_reads"]


def test_settings_are_frozen_and_travel_to_the_slots():
    settings = JobSettings.of(Configuration.from_dict({"execution.checkpointing.interval": "3 s"}))
    with pytest.raises(FrozenInstanceError):
        settings.exchange.chunk_records = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_every_number_says_what_it_counts():
    units = ("_ms", "_bytes", "records", "_retries", "_concurrent", "failures", "_retained")
    kinds = [JobSettings, *(getattr(graph_settings, kind) for kind in GROUPS.values())]
    numbers = [each.name for kind in kinds if is_dataclass(kind) for each in fields(kind) if each.type == "int"]
    assert len(numbers) > 15
    assert [name for name in numbers if not name.endswith(units)] == []


# -- a setting is read or refused -------------------------------------------------------------------------------------

#: Files in which users set an option and read it back: that alone is no effect, unless the engine's settings call them.
THE_API = ("common/execution_config.py", "datastream/checkpoint_config.py", "datastream/environment_settings.py")


def unread_options() -> list[str]:
    """Names of options in `rekindle.config` that no part of the engine names, itself or through a method of the API."""
    names = {name for name, value in vars(config).items() if isinstance(value, config.ConfigOption)}
    api = [SOURCES / path for path in THE_API]
    engine = [path for path in SOURCES.rglob("*.py") if path not in (*api, SOURCES / "config.py")]
    read = {name for path in engine for name in _options_in(ast.parse(path.read_text()))}
    asked = {node.attr for node in ast.walk(ast.parse(NOT_READERS[0].read_text())) if isinstance(node, ast.Attribute)}
    for path in api:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name in asked:
                read |= _options_in(node)
    return sorted(names - read)


def _options_in(tree: ast.AST) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "config"
    }


def test_no_option_is_accepted_that_nobody_reads():
    assert unread_options() == []


def plan_of(env: StreamExecutionEnvironment) -> JobPlan:
    env.from_sequence(1, 9).print()
    return build_plan(env._program("settings"))


ROCKSDB: dict[str, Any] = {"state.backend.type": "rocksdb"}
ROCKSDB_BY_THE_OLD_KEY: dict[str, Any] = {"state.backend": "rocksdb"}


@pytest.mark.parametrize(
    "env",
    [
        lambda: environment(**ROCKSDB),
        lambda: environment(**ROCKSDB_BY_THE_OLD_KEY),
        lambda: environment().set_state_backend(EmbeddedRocksDBStateBackend()),
    ],
)
def test_rocksdb_is_chosen_and_refused_without_its_package_when_the_job_is_built(env, monkeypatch):
    assert plan_of(env()).settings.state_backend.is_rocksdb
    monkeypatch.setattr("rekindle.graph.settings.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"rocksdict.*pip install.*state\.backend\.type: hashmap"):
        plan_of(env())


def test_a_backend_sets_its_directories_and_whether_checkpoints_are_incremental():
    backend = RocksDBStateBackend("file:///checkpoints", enable_incremental_checkpointing=False)
    backend.set_db_storage_paths("/fast", "/faster")
    settings = plan_of(environment().set_state_backend(backend)).settings
    assert settings.state_backend.local_directories == ("/fast", "/faster")
    assert not settings.checkpoints.incremental


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, LocalRecoverySettings(False, False)),
        ({"execution.state-recovery.from-local": "true"}, LocalRecoverySettings(True, True)),
        (
            {"state.backend.local-recovery": "true", "taskmanager.state.local.root-dirs": "/a,/b", "io.tmp.dirs": "/c"},
            LocalRecoverySettings(True, True, ("/a", "/b")),
        ),
        (
            {"execution.checkpointing.local-backup.enabled": "true", "io.tmp.dirs": "/c"},
            LocalRecoverySettings(False, True, ("/c",)),
        ),
        (
            {
                "execution.state-recovery.from-local": "true",
                "execution.checkpointing.local-backup.enabled": "false",
                "execution.checkpointing.local-backup.dirs": "/d",
            },
            LocalRecoverySettings(True, False, ("/d",)),
        ),
    ],
)
def test_local_recovery_has_flinks_keys(keys: dict[str, str], expected: LocalRecoverySettings):
    settings = JobSettings.of(Configuration.from_dict({"execution.checkpointing.interval": "3 s", **keys}))
    assert settings.local_recovery == expected
    assert settings.keeps_local_copies == expected.keeps


def test_without_checkpoints_there_are_no_local_copies():
    assert not JobSettings.of(Configuration.from_dict({"state.backend.local-recovery": "true"})).keeps_local_copies


def test_rocksdb_uses_the_temporary_directories_unless_it_has_its_own():
    one, two = {"io.tmp.dirs": "/a;/b"}, {"io.tmp.dirs": "/a", "state.backend.rocksdb.localdir": "/c"}
    found = [JobSettings.of(Configuration.from_dict(keys)).state_backend.local_directories for keys in (one, two)]
    assert found == [("/a", "/b"), ("/c",)]


def test_the_largest_state_in_the_drivers_memory_is_a_setting():
    env = environment()
    assert plan_of(env).settings.checkpoints.max_memory_bytes == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=100))
    assert plan_of(env).settings.checkpoints.max_memory_bytes == 100


@pytest.mark.parametrize("mode", CheckpointingMode)
def test_at_least_once_is_told_what_it_gives(caplog, mode):
    with caplog.at_level(logging.INFO, logger="rekindle.graph"):
        plan_of(environment().enable_checkpointing(1000, mode))
    told = [message for message in caplog.messages if "AT_LEAST_ONCE" in message]
    assert told == (
        ["Job 'settings' asks for AT_LEAST_ONCE: checkpoints are consistent cuts here, so its state is exactly once."]
        if mode is CheckpointingMode.AT_LEAST_ONCE
        else []
    )


def test_undeclared_types_are_refused_where_generic_types_are_disabled():
    env = environment()
    env.get_config().disable_generic_types()
    env.from_sequence(1, 9).map(str).name("text").key_by(len).reduce(max)
    with pytest.raises(GraphError, match="text"):
        build_plan(env._program("settings"))


def test_a_setting_of_flinks_without_a_meaning_here_is_named_in_a_warning(caplog, monkeypatch):
    monkeypatch.setattr(configuration, "_warned", set())  # a process warns once for each key
    environment().get_config().set_task_cancellation_interval(20)
    environment().enable_changelog_state_backend(True)
    FileSystemCheckpointStorage("file:///checkpoints")
    assert "write_buffer_size" not in caplog.text
    FileSystemCheckpointStorage("file:///checkpoints", file_state_size_threshold=0)
    assert "file_state_size_threshold and write_buffer_size have no effect in Rekindle" in caplog.text
    assert "'task.cancellation.interval' has no meaning in Rekindle" in caplog.text
    assert "enable_changelog_state_backend() has no effect in Rekindle" in caplog.text
    environment().from_sequence(1, 9).map(str).set_buffer_timeout(5)
    assert "DataStream.set_buffer_timeout() has no effect in Rekindle" in caplog.text
