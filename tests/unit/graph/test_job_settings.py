"""The settings of a job: one frozen value, every part of which somebody reads."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import rekindle
from rekindle.common import Configuration
from rekindle.graph.settings import JobSettings

SOURCES = Path(rekindle.__file__).parent
#: Who fills the settings, and who only drives the engine in tests: a setting that nobody else reads does nothing.
NOT_READERS = (SOURCES / "graph" / "settings.py", SOURCES / "testing")


def read_somewhere() -> set[str]:
    """The names `x` in every `settings.x`, `plan.settings.x` and the like of the engine."""
    engine = (path for path in SOURCES.rglob("*.py") if not any(path.is_relative_to(other) for other in NOT_READERS))
    return {name for path in engine for name in _reads(ast.parse(path.read_text()))}


def _reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name == "settings":
                yield node.attr


def unread(names: Iterable[str]) -> list[str]:
    """Those of the names that no part of the engine reads; a property of the settings reads for its readers."""
    read = read_somewhere()
    settings = ast.parse(NOT_READERS[0].read_text())
    for node in ast.walk(settings):
        if isinstance(node, ast.FunctionDef) and node.name in read:
            read |= {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    return sorted(set(names) - read)


def test_no_setting_is_there_that_nobody_reads():
    assert unread(each.name for each in fields(JobSettings)) == []


def test_a_setting_that_nobody_reads_is_found():
    assert unread(["chunk_records", "a_setting_that_nobody_reads"]) == ["a_setting_that_nobody_reads"]


def test_settings_are_frozen_and_travel_to_the_slots():
    settings = JobSettings.of(Configuration.from_dict({"execution.checkpointing.interval": "3 s"}))
    with pytest.raises(FrozenInstanceError):
        settings.chunk_records = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_every_number_says_what_it_counts():
    units = ("_ms", "_bytes", "_records", "_retries", "_concurrent", "_failures", "_retained")
    numbers = [each.name for each in fields(JobSettings) if each.type == "int"]
    assert [name for name in numbers if not name.endswith(units)] == []
