"""Row behaves as PyFlink's does."""

from __future__ import annotations

import copy
import pickle

import pytest

from rekindle.common import Row, RowKind


def test_named_values_are_read_by_name_attribute_and_position() -> None:
    row = Row(name="Alice", age=11)
    assert (row.name, row["age"], row[0], row[-1], row[0:2]) == ("Alice", 11, "Alice", 11, ["Alice", 11])
    assert list(row) == ["Alice", 11]
    assert len(row) == 2


def test_named_fields_keep_the_order_in_which_they_were_given() -> None:
    assert repr(Row(b=1, a=2)) == "Row(b=1, a=2)"


def test_positional_values_have_no_names() -> None:
    row = Row(1, "x")
    assert repr(row) == "<Row(1, 'x')>"
    assert not hasattr(row, "_fields")
    with pytest.raises(KeyError):
        row["a"]
    with pytest.raises(AttributeError):
        _ = row.a
    with pytest.raises(TypeError):
        row.as_dict()


def test_a_row_of_names_is_a_template() -> None:
    person = Row("name", "age")
    assert person("Bob", 12) == Row(name="Bob", age=12)
    assert "name" in person
    with pytest.raises(ValueError, match="takes 2 values"):
        person("Bob", 12, 13)


def test_contains_looks_at_names_when_there_are_some_else_at_values() -> None:
    assert "a" in Row(a=1)
    assert 1 not in Row(a=1)
    assert 1 in Row(1, 2)


def test_equality_ignores_the_order_of_named_fields_and_the_hash_agrees() -> None:
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert hash(Row(a=1, b=2)) == hash(Row(b=2, a=1))
    assert Row(a=1) != Row(1)
    assert Row(1) != (1,)
    assert Row(a=1) != Row(b=1)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)


def test_names_that_are_positions_make_no_other_row() -> None:
    assert Row("a", 1) == Row(f0="a", f1=1) == Row(f1=1, f0="a")
    assert hash(Row("a", 1)) == hash(Row(f0="a", f1=1)) == hash(Row(f1=1, f0="a"))
    assert Row("a", 1) != Row(f1="a", f0=1)
    assert Row("a", 1) != Row(f0="a", f2=1)
    assert Row("a", 1) != Row(f0="a")
    assert Row(*range(12)) == Row(**{f"f{i}": i for i in range(12)})
    assert Row.of_kind(RowKind.DELETE, 1) != Row(f0=1)
    assert Row(Row(1), [Row(2)]) == Row(f0=Row(f0=1), f1=[Row(f0=2)])


def test_values_change_by_position_and_name_but_not_by_attribute() -> None:
    row = Row(a=1, b=2)
    row["a"] = 10
    row[1] = 20
    assert row == Row(a=10, b=20)
    with pytest.raises(AttributeError):
        row.a = 3  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="c"):
        row["c"] = 1
    with pytest.raises(KeyError):
        Row(1)["a"] = 1


def test_positional_and_named_values_do_not_mix() -> None:
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)


def test_as_dict_is_recursive_on_request() -> None:
    row = Row(key=1, value=Row(name="a"), rows=[Row(x=1)], by_name={"k": Row(y=2)})
    assert row.as_dict()["value"] == Row(name="a")
    assert row.as_dict(True) == {"key": 1, "value": {"name": "a"}, "rows": [{"x": 1}], "by_name": {"k": {"y": 2}}}


def test_fields_by_names() -> None:
    row = Row(a=1, b=2)
    assert row.get_fields_by_names(["b", "a"]) == [2, 1]
    assert Row(1, 2).get_fields_by_names(["x", "y"]) == [1, 2]
    with pytest.raises(ValueError, match="'c'"):
        row.get_fields_by_names(["c"])
    assert Row(f0=1, f1=2).get_fields_by_names(["f1", "f0"]) == [2, 1]
    assert Row(f0=1, f1=2).get_fields_by_names(["x", "y"]) == [1, 2]  # f0, f1 are positions, not names of its own
    with pytest.raises(ValueError, match="'x'"):
        Row(f0=1, f1=2).get_fields_by_names(["x"])


def test_names_can_be_given_later() -> None:
    row = Row(1, 2)
    row.set_field_names(["a", "b"])
    assert row == Row(a=1, b=2)


@pytest.mark.parametrize("row", [Row(), Row(1, None), Row(a=1, b=[Row(2)]), Row.of_kind(RowKind.UPDATE_AFTER, a=1)])
def test_pickling_and_copying_keep_everything(row: Row) -> None:
    for again in (pickle.loads(pickle.dumps(row, 5)), copy.copy(row), copy.deepcopy(row)):
        assert again == row
        assert again.get_row_kind() is row.get_row_kind()
        assert repr(again) == repr(row)


def test_a_copy_does_not_share_its_values() -> None:
    row = Row(a=1)
    again = copy.copy(row)
    again["a"] = 2
    assert row.a == 1


def test_row_kinds_print_as_flink_prints_them() -> None:
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
