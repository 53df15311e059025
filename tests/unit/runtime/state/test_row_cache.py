"""The cache of rows in front of RocksDB: which rows leave, in which order, and how many at once."""

from __future__ import annotations

from rekindle.runtime.state.rocksdb.row_cache import RowCache
from tests.unit.runtime.state.fake_disk import Disk


def cache_of(rows: int) -> tuple[RowCache, Disk]:
    disk = Disk()
    cache = RowCache(disk, 0)
    cache.least_rows = rows // 2
    cache.note_sizes([b""], 1)
    return cache, disk


def test_after_a_prefetch_every_key_of_the_batch_is_in_front() -> None:
    cache, _ = cache_of(1000)
    for begin in range(0, 5000, 100):
        batch = [*range(50), *range(begin, begin + 200)]
        cache.prefetch(dict.fromkeys(batch))
        assert cache.front.keys() >= set(batch)
        assert len(cache) <= 1000


def pass_through(cache: RowCache, first: int, rows: int) -> None:
    for begin in range(first, first + rows, 250):
        cache.prefetch(list(range(begin, begin + 250)))


def test_rows_that_are_asked_for_again_stay_while_others_pass_through() -> None:
    cache, disk = cache_of(1000)
    often = list(range(100))
    cache.prefetch(often)
    pass_through(cache, 1000, 500)
    cache.prefetch(often)
    pass_through(cache, 2000, 3000)  # three times the cache
    cache.prefetch(often)
    assert [key for key in disk.read if key in often] == often


def test_a_held_row_stays_the_row_of_its_key_until_a_third_of_the_cache_was_asked_for() -> None:
    cache, _ = cache_of(900)
    for number in range(5 * 450 - 1):
        cache.load(number)
    held = cache.load("held")  # the last young row: it becomes old with the next one
    assert len(cache.front) == 450
    for number in range(10_000, 10_300):
        cache.load(number)
    assert cache.load("held") is held


def test_the_row_of_the_current_key_never_leaves() -> None:
    cache, disk = cache_of(10)
    disk.row = cache.load("current")
    for number in range(100):
        cache.load(number)
    assert cache.load("current") is disk.row
    assert "current" not in [key for left in disk.left for key in left]
    assert len(cache) <= 11


def test_few_rows_leave_at_once() -> None:
    cache, disk = cache_of(40_000)
    for begin in range(0, 200_000, 4000):
        cache.prefetch(list(range(begin, begin + 4000)))
    assert max(map(len, disk.left)) <= 4096
    assert sum(map(len, disk.left)) == 200_000 - len(cache)
