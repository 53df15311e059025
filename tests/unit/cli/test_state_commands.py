"""`rekindle state`: what a checkpoint remembers, read in this process."""

from __future__ import annotations

import pytest

from rekindle.snapshots.find_snapshot import find_snapshot
from tests.unit.cli.conftest import rekindle
from tests.unit.cli.made_checkpoints import Made, make_checkpoints

TOTALS = {"ada": 10, "ben": 2, "4711": 4, "eve": 5}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_checkpoints(tmp_path_factory.mktemp("made"))


def test_operators_and_states_are_shown(made):
    shown = rekindle("state", "show", made.second)
    assert shown.code == 0
    assert "checkpoint 2 of job 'test'" in shown.out
    document = rekindle("state", "show", made.second, "--json").document
    states = {each["state"]: each["kind"] for each in document["states"] if each["operator"] == "totals"}
    assert states == {"total": "value", "kinds": "map"}


def test_keyed_state_is_a_row_per_key(made):
    document = rekindle("state", "query", made.second, "totals", "--json").document
    assert {row["key"]: row["total"] for row in document["rows"]} == TOTALS
    assert {row["key"]: row["kinds"] for row in document["rows"]}["ada"] == {"odd": 3, "even": 6}
    assert document["more"] is False
    table = rekindle("state", "query", made.second, "totals", "--state", "total")
    assert "eve" in table.out
    assert "kinds" not in table.out


def test_one_key_also_if_its_text_looks_like_a_number(made):
    for key, total in TOTALS.items():
        (row,) = rekindle("state", "query", made.savepoint, "totals", "--key", key, "--json").document["rows"]
        assert (row["key"], row["total"]) == (key, total)
    missing = rekindle("state", "query", made.second, "totals", "--key", "zoe", "--json")
    assert (missing.code, missing.out) == (3, "")
    assert missing.errors == "Operator 'totals' has no state for the key zoe.\n"


def test_more_rows_than_the_limit_are_told_of(made):
    few = rekindle("state", "query", made.second, "totals", "--limit", 2)
    assert "There are more than 2 rows: --limit 0 shows all." in few.errors
    document = rekindle("state", "query", made.second, "totals", "--limit", 2, "--json").document
    assert (len(document["rows"]), document["more"]) == (2, True)
    assert len(rekindle("state", "query", made.second, "totals", "--limit", 0, "--json").document["rows"]) == 4


def test_other_tables(made):
    timers = rekindle("state", "query", made.second, "totals", "--table", "timers", "--json").document["rows"]
    assert {(row["key"], row["domain"], row["time_ms"]) for row in timers} == {
        (key, "processing", 10**15) for key in TOTALS
    }
    operators = rekindle("state", "query", made.second, "--json").document["rows"]
    assert "totals" in {row["name"] for row in operators}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("totals", "--table", "nothing"), 2, "There is no table 'nothing'"),
        (("totals", "--table", "timers", "--key", "ada"), 2, "--key chooses a row of keyed state"),
        (("total",), 3, "no operator with the uid, id or name 'total'"),
        (("totals", "--state", "sum"), 3, "has no keyed state 'sum'"),
        (("--table", "timers"), 2, "is about one operator"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(made, arguments, code, sentence):
    ended = rekindle("state", "query", made.second, *arguments, "--json")
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.errors
    assert ended.errors.count("\n") == 1


def test_the_difference_of_two_checkpoints_in_numbers_and_keys(made):
    (counts,) = rekindle("state", "diff", made.first, made.second, "--json").document["operators"]
    assert {name: counts[name] for name in ("name", "added", "removed", "changed")} == {
        "name": "totals",
        "added": 1,
        "removed": 0,
        "changed": 1,
    }
    document = rekindle("state", "diff", made.first, made.second, "totals", "--json").document
    changes = {each["key"]: each for each in document["changes"]}
    assert changes["eve"] == {
        "change": "added",
        "key": "eve",
        "states": ["total", "kinds"],
        "before": None,
        "after": {"total": 5, "kinds": {"odd": 5}},
    }
    assert (changes["ada"]["before"]["total"], changes["ada"]["after"]["total"]) == (4, 10)
    assert changes.keys() == {"ada", "eve"}
    backwards = rekindle("state", "diff", made.second, made.first, "totals", "--state", "total", "--json").document
    assert {each["key"]: each["change"] for each in backwards["changes"]} == {"ada": "changed", "eve": "removed"}
    assert "1 added, 1 changed." in rekindle("state", "diff", made.first, made.second, "totals").errors


def test_equal_state_has_no_difference(made):
    same = rekindle("state", "diff", made.second, made.savepoint, "totals")
    assert (same.code, same.out) == (0, "The keyed state of operator 'totals' is the same.\n")


def test_checkpoints_with_other_numbers_of_key_groups_are_compared_all_the_same(made):
    from dataclasses import replace

    import msgspec

    from rekindle.cli.state_questions import changes_of

    old, new = find_snapshot(made.first), find_snapshot(made.second)
    operators = [msgspec.structs.replace(each, max_parallelism=16) for each in new.manifest.operators]
    other = replace(new, manifest=msgspec.structs.replace(new.manifest, operators=operators))
    found, more = changes_of(old, other, "totals", None, None)
    assert ({each["key"]: each["change"] for each in found}, more) == ({"ada": "changed", "eve": "added"}, False)
