"""The hash of key bytes, and the key groups that it gives."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from rekindle.errors import InvalidKeyError
from rekindle.key_groups import key_group_range, subtask_for_key_group
from rekindle.runtime import key_hash as key_groups
from rekindle.runtime.key_hash import KeyRouter, key_group, router_entries


@pytest.mark.parametrize("max_parallelism", [1, 7, 128, 200, 32768])
@pytest.mark.parametrize("parallelism", [1, 2, 3, 7, 128])
def test_ranges_cover_every_key_group_once_and_agree_with_the_owner(max_parallelism: int, parallelism: int) -> None:
    if parallelism > max_parallelism:
        return
    ranges = [key_group_range(max_parallelism, parallelism, subtask) for subtask in range(parallelism)]
    assert [group for owned in ranges for group in owned] == list(range(max_parallelism))
    for subtask, owned in enumerate(ranges):
        assert {subtask_for_key_group(group, max_parallelism, parallelism) for group in owned} == {subtask}
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


def test_equal_keys_have_equal_groups() -> None:
    for number in (0, 1, -5, 2**40, -(2**63), 2**63 - 1, 2**63, 2**64, -(2**80)):
        as_decimal = key_group(Decimal(number), 32768)
        assert as_decimal == key_group(number, 32768)
        if float(number) == number:
            assert key_group(float(number), 32768) == as_decimal
    assert key_group(True, 32768) == key_group(1, 32768)


def test_lone_surrogates_are_no_obstacle() -> None:
    assert 0 <= key_group("\ud800", 128) < 128


@pytest.mark.parametrize("shape", ["{}", "user-{}", "order_{}_x", "{:08d}"])
def test_texts_spread(shape: str) -> None:
    counts = Counter(key_group(shape.format(i), 128) for i in range(12_800))
    assert len(counts) == 128
    assert max(counts.values()) < 200


@pytest.mark.parametrize("step", [1, 2, 128, 1000, 2**32])
def test_ints_spread(step: int) -> None:
    counts = Counter(key_group(i * step, 128) for i in range(12_800))
    assert len(counts) == 128
    assert max(counts.values()) < 200


def test_router_remembers_and_is_bounded() -> None:
    router = KeyRouter(128, range(4), most_entries=100)
    for key in range(1000):
        assert router[key] == subtask_for_key_group(key_group(key, 128), 128, 4)
        assert len(router) <= 100


def test_a_router_that_seldom_knows_a_key_becomes_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_groups, "_FEW_ENTRIES", 10)
    useful, useless = KeyRouter(128, range(4), most_entries=100), KeyRouter(128, range(4), most_entries=100)
    for key in range(1000):
        useful.note_lookups(2)
        useless.note_lookups(1)
        assert useful[key] == useful[key] == useless[key]
    assert len(useful) > 10 >= len(useless)


@pytest.mark.parametrize("most_bytes", [1 << 20, 8 << 20, 64 << 20])
def test_a_router_fits_into_its_memory(most_bytes: int) -> None:
    entries = router_entries(most_bytes)
    tracemalloc.start()
    router = KeyRouter(128, range(4), entries)
    for number in range(entries):
        router[f"customer {number}"]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(router) == entries
    assert size < 1.2 * most_bytes


@pytest.mark.parametrize("key", [float("nan"), 1j])
def test_router_refuses_what_is_no_key(key: Any) -> None:
    with pytest.raises(InvalidKeyError):
        KeyRouter(128, range(2))[key]
