"""The HBase sink's fenced mode against a model of HBase's cells: replays, late and doubled calls change nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.datastream.connectors.hbase import Delete, Mutation, Put
from rekindle.datastream.connectors.hbase.cell_timestamps import base_of, flush_timestamps
from rekindle.datastream.connectors.hbase.row_buffer import RowBuffer, RowChange
from tests.support.hbase_histories import HBaseModel, expected_rows, play, random_mutations

NOW_MS = 1_790_000_000_000


@given(st.integers(0, 2**32))
def test_readers_see_what_an_undisturbed_run_writes(seed: int) -> None:
    chance, hbase = random.Random(seed), HBaseModel()
    mutations = random_mutations(chance)
    play(mutations, hbase, chance, NOW_MS)
    assert hbase.rows() == expected_rows(mutations)


@given(st.integers(0, 2**32))
def test_a_later_run_with_other_records_wins_whatever_arrives_late(seed: int) -> None:
    """The second run has another checkpoint directory; its claim is one millisecond later than the first run's last."""
    chance, hbase = random.Random(seed), HBaseModel()
    first, second = random_mutations(chance), random_mutations(chance)
    whole_rows: list[Mutation] = [Delete(row) for row in {each.row for each in first}]
    play(first, hbase, chance, NOW_MS)
    play([*whole_rows, *second], hbase, chance, NOW_MS + 10_000)
    assert hbase.rows() == expected_rows(second)


def _fails(second_claim_ms: int = NOW_MS + 10_000) -> bool:
    for seed in range(200):
        chance, hbase = random.Random(seed), HBaseModel()
        first, second = random_mutations(chance), random_mutations(chance)
        play(first, hbase, chance, NOW_MS)
        play(second, hbase, chance, second_claim_ms)
        if hbase.rows() != expected_rows([*first, *second]):
            return True
    return False


def test_the_histories_hold_with_all_rules() -> None:
    assert not _fails()


def test_without_coalescing_rows_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep_puts(self: RowChange, columns: Any) -> None:
        self.deletes_row |= columns is None
        self.deleted_columns.update(dict.fromkeys(columns or ()))

    monkeypatch.setattr(RowChange, "delete", keep_puts)
    assert _fails()


def test_with_a_base_that_starts_anew_with_another_directory_later_writes_are_hidden() -> None:
    assert _fails(second_claim_ms=NOW_MS)


def test_a_base_is_above_all_flushes_of_an_earlier_claim() -> None:
    last = flush_timestamps(base_of(NOW_MS), 2**19 - 1)
    assert last[1] < flush_timestamps(base_of(NOW_MS + 1), 0)[0]
    assert base_of(NOW_MS + 1) < 2**63


@pytest.mark.parametrize(
    ("mutations", "deletes_row", "deleted", "puts"),
    [
        ([Put(b"r", {b"f:a": b"1"}), Delete(b"r")], True, [], {}),
        ([Put(b"r", {b"f:a": b"1"}), Delete(b"r"), Put(b"r", {b"f:b": b"2"})], True, [], {b"f:b": b"2"}),
        ([Delete(b"r"), Delete(b"r", [b"f:a"])], True, [], {}),
        ([Put(b"r", {b"f:a": b"1", b"f:b": b"1"}), Delete(b"r", [b"f:a"])], False, [b"f:a"], {b"f:b": b"1"}),
        ([Put(b"r", {b"f:a": b"1", b"g:b": b"1"}), Delete(b"r", [b"f"])], False, [b"f"], {b"g:b": b"1"}),
        ([Put(b"r", {b"f:a": b"1", b"f:": b"1"}), Delete(b"r", [b"f:"])], False, [b"f:"], {b"f:a": b"1"}),
        ([Put(b"r", {b"f:a": b"1"}), Put(b"r", {b"f:a": b"2"})], False, [], {b"f:a": b"2"}),
    ],
)
def test_mutations_of_a_row_are_coalesced(
    mutations: list[Mutation], deletes_row: bool, deleted: list[bytes], puts: dict[bytes, bytes]
) -> None:
    buffer = RowBuffer()
    for mutation in mutations:
        buffer.add(mutation, "t", None)
    change = buffer.changes[None]["t"][b"r"]
    assert (change.deletes_row, list(change.deleted_columns), change.puts) == (deletes_row, deleted, puts)
    assert len(buffer) == len(mutations)
    assert buffer.size_bytes > 0


def test_timestamps_and_tables_are_apart() -> None:
    buffer = RowBuffer()
    for timestamp, table in ((5, None), (5, "other"), (6, None)):
        buffer.add(Put(b"r", {b"f:a": b"%d" % timestamp}, table=table), "t", timestamp)
    assert {at: sorted(tables) for at, tables in buffer.changes.items()} == {5: ["other", "t"], 6: ["t"]}
