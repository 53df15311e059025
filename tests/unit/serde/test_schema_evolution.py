"""The rules of evolution: what a value that was stored under one type becomes under another, and what is refused."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from rekindle.common import Row, RowKind, Types, aliases
from rekindle.common.typeinfo import LocalTimeTypeInfo, infer_type_info
from rekindle.datastream.streams.tagged_union import TaggedUnion, TaggedUnionTypeInfo
from rekindle.errors import TypeMismatchError
from rekindle.serde import value_codec_for
from rekindle.serde.column_migration import column_migration
from rekindle.serde.schema_changes import SchemaChangeError
from rekindle.serde.type_schema import decode_schema, encode_schema


def stored(old: Any, values: list[Any]) -> tuple[Any, bytes]:
    """Schema and bytes as a checkpoint has them."""
    codec = value_codec_for(infer_type_info(old), allow_pickle=True)
    return decode_schema(encode_schema(codec.schema)), codec.encode_all(values)


def evolved(old: Any, new: Any, *values: Any) -> list[Any]:
    """Values stored under the old type, read under the new one."""
    schema, data = stored(old, [*values, None])
    codec = value_codec_for(infer_type_info(new), allow_pickle=True)
    migrate = column_migration(schema, codec, allow_pickle=True)
    *found, nothing = codec.decode_all(data if migrate is None else migrate(data))
    assert nothing is None
    return found


def keeps_bytes(old: Any, new: Any) -> bool:
    schema, _ = stored(old, [])
    return column_migration(schema, value_codec_for(infer_type_info(new))) is None


def refusal(old: Any, new: Any) -> str:
    with pytest.raises(SchemaChangeError) as raised:
        column_migration(stored(old, [])[0], value_codec_for(infer_type_info(new)))
    return str(raised.value)


# -- the versions of the classes: each namespace has a class of the same name ------------------------------------------


class V1:
    @dataclass
    class Order:
        id: int
        price: int
        note: str

    class Point(NamedTuple):
        x: int
        y: int

    class Shape(msgspec.Struct, array_like=True):
        name: str
        sides: int

    class Circle(msgspec.Struct, tag="circle"):
        radius: int

    class Square(msgspec.Struct, tag="square"):
        side: int

    class Sparse(msgspec.Struct, omit_defaults=True):
        a: int = 1
        b: int = 2

    class Options(TypedDict):
        depth: int

    class Maybe(TypedDict, total=False):
        depth: int

    class Colour(enum.Enum):
        RED = "r"
        BLUE = "b"

    @dataclass
    class Node:
        value: int
        next: V1.Node | None = None

    class Tree(msgspec.Struct, array_like=True):
        value: int
        children: list[V1.Tree] = []

    @dataclass
    class Basket:
        orders: list[V1.Order]
        by_name: dict[str, V1.Order]


class V2:
    @dataclass
    class Order:
        price: float
        id: int
        tags: list[str] = field(default_factory=list)
        currency: str = "EUR"

    class Point(NamedTuple):
        z: int = 9
        y: int = 0
        x: float = 0.0
        w: int = 8

    class Shape(msgspec.Struct, array_like=True):
        name: str
        sides: int
        colour: str = "none"

    class Circle(msgspec.Struct, tag="circle"):
        radius: int
        label: str = "?"

    class Square(msgspec.Struct, tag="square"):
        side: int

    class Sparse(msgspec.Struct, omit_defaults=True):
        a: int = 100
        b: int = 2

    class Options(TypedDict):
        depth: int | None

    class Maybe(TypedDict):
        depth: int

    class Colour(enum.Enum):
        RED = "r"
        BLUE = "b"
        GREEN = "g"

    @dataclass
    class Node:
        value: float
        next: V2.Node | None = None
        label: str = "new"

    class Tree(msgspec.Struct, array_like=True):
        children: list[V2.Tree] = []
        value: float = 0.0

    @dataclass
    class Basket:
        orders: list[V2.Order]
        by_name: dict[str, V2.Order]


for version in (V1, V2):
    for each in vars(version).values():
        if isinstance(each, type):
            each.__qualname__ = each.__name__


class TestNumbers:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (Types.BYTE(), Types.SHORT()),
            (Types.INT(), Types.LONG()),
            (Types.INT(), int),
            (Types.LONG(), Types.BIG_INT()),
            (Types.FLOAT(), Types.DOUBLE()),
        ],
    )
    def test_become_wider_with_the_same_bytes(self, old, new):
        assert keeps_bytes(old, new)
        assert evolved(old, new, 7) == [7]

    @pytest.mark.parametrize("old", [Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()])
    @pytest.mark.parametrize("new", [Types.FLOAT(), Types.DOUBLE()])
    def test_ints_become_floats(self, old, new):
        (found,) = evolved(old, new, 2**53)
        assert (found, type(found)) == (float(2**53), float)

    def test_an_int_that_a_float_cannot_hold_is_refused(self):
        with pytest.raises(ValueError, match=f"{2**53 + 1} cannot become a float without a loss"):
            evolved(Types.LONG(), Types.DOUBLE(), 2**53 + 1)

    def test_ints_become_decimals(self):
        assert evolved(Types.LONG(), Types.BIG_DEC(), 5) == [Decimal(5)]
        assert evolved(Types.BIG_INT(), Types.BIG_DEC(), 2**80) == [Decimal(2**80)]

    @pytest.mark.parametrize(
        ("old", "new"),
        [(Types.LONG(), Types.INT()), (Types.DOUBLE(), Types.LONG()), (Types.DOUBLE(), Types.FLOAT())],
    )
    def test_do_not_become_narrower(self, old, new):
        assert refusal(old, new) == (
            f"each value was saved as {old}, but the program declares {new}: numbers can only become wider."
        )

    @pytest.mark.parametrize(
        ("old", "new"), [(str, int), (int, str), (bool, int), (bytes, str), (Types.BIG_DEC(), float), (int, list[int])]
    )
    def test_other_types_do_not_become_numbers_or_texts(self, old, new):
        assert "declare the former type" in refusal(old, new)


class TestPlainTypes:
    def test_other_names_of_one_type_are_alike(self):
        assert keeps_bytes(dt.date, LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE))
        assert keeps_bytes(Types.CHAR(), Types.STRING())
        assert keeps_bytes(list[str], Types.OBJECT_ARRAY(Types.STRING()))

    def test_the_parts_of_lists_maps_and_tuples_evolve(self):
        assert evolved(Types.LIST(Types.INT()), Types.LIST(Types.DOUBLE()), [1, None]) == [[1.0, None]]
        assert evolved(dict[str, int], dict[str, float], {"a": 1}) == [{"a": 1.0}]
        assert evolved(dict[int, str], dict[float, str], {1: "a"}) == [{1.0: "a"}]
        assert evolved(tuple[int, str], tuple[float, str], (1, "a")) == [(1.0, "a")]
        union = evolved(TaggedUnionTypeInfo(int, str), TaggedUnionTypeInfo(float, str), TaggedUnion(True, 1, None))
        assert union == [TaggedUnion(True, 1.0, None)]

    def test_refusals_name_the_part(self):
        assert refusal(list[dict[str, int]], list[dict[str, str]]).startswith("field '[]{value}' was saved as Long")
        assert refusal(tuple[int, int], tuple[int, str]).startswith("field '[1]' was saved as Long")
        assert "a tuple keeps its length" in refusal(tuple[int, int], tuple[int, int, int])
        assert "declare the former type" in refusal(list[int], set[int])

    def test_enums_may_get_members_and_not_lose_them(self):
        assert evolved(V1.Colour, V2.Colour, V1.Colour.BLUE) == [V2.Colour.BLUE]
        assert "no GREEN any more" in refusal(V2.Colour, V1.Colour)

    def test_literals_may_get_values_and_become_plain(self):
        assert evolved(Literal["a"], Literal["a", "b"], "a") == ["a"]
        assert evolved(Literal["a"], str, "a") == ["a"]
        assert "no b any more" in refusal(Literal["a", "b"], Literal["a"])
        assert "declare the former type" in refusal(Literal["a"], int)

    def test_unions_may_get_alternatives(self):
        assert evolved(int, int | str, 1) == [1]
        assert evolved(int | str, int | str | list[int], "x", 1) == ["x", 1]
        assert "declare the former type" in refusal(int | str, int)

    def test_structs_in_a_union_evolve_by_their_tag(self):
        found = evolved(V1.Circle | V1.Square, V2.Circle | V2.Square, V1.Circle(2), V1.Square(3))
        assert found == [V2.Circle(2, "?"), V2.Square(3)]


class TestRecords:
    def test_fields_are_added_removed_widened_and_moved(self):
        assert evolved(V1.Order, V2.Order, V1.Order(1, 5, "x")) == [V2.Order(5.0, 1, [], "EUR")]

    def test_each_value_gets_a_default_of_its_own(self):
        one, two = evolved(V1.Order, V2.Order, V1.Order(1, 5, "x"), V1.Order(2, 5, "x"))
        assert one.tags is not two.tags

    def test_a_new_field_needs_a_default(self):
        assert refusal(V2.Order, V1.Order).startswith("field 'price' was saved as Double")

        @dataclass
        class Order:
            id: int
            price: int
            note: str
            more: int

        assert refusal(V1.Order, Order) == (
            "each value was saved as Dataclass<Order>, but the program declares Dataclass<Order>: it has a new field "
            "'more' of Long without a default, so give it one."
        )

    def test_a_field_may_become_optional_and_not_the_other_way_round(self):
        assert evolved(V1.Options, V2.Options, {"depth": 1}) == [{"depth": 1}]
        assert refusal(V2.Options, V1.Options) == (
            "field 'depth' was saved as Long?, but the program declares Long: None may be among its values, so keep it "
            "optional."
        )

    def test_a_key_that_may_be_missing_stays_so(self):
        assert "may be missing" in refusal(V1.Maybe, V2.Maybe)
        assert evolved(V2.Maybe, V1.Maybe, {"depth": 1}) == [{"depth": 1}]

    def test_fields_by_position_are_found_by_name(self):
        assert evolved(V1.Point, V2.Point, V1.Point(1, 2)) == [V2.Point(9, 2, 1.0, 8)]
        assert evolved(V1.Shape, V2.Shape, V1.Shape("a", 3)) == [V2.Shape("a", 3, "none")]
        assert keeps_bytes(V1.Shape, V2.Shape)
        assert evolved(V2.Shape, V1.Shape, V2.Shape("a", 3, "red")) == [V1.Shape("a", 3)]

    def test_a_field_that_was_left_out_had_the_old_default(self):
        assert evolved(V1.Sparse, V2.Sparse, V1.Sparse(), V1.Sparse(a=100)) == [V2.Sparse(a=1), V2.Sparse(a=100)]

    def test_a_class_may_become_one_of_another_kind(self):
        class Order(msgspec.Struct, array_like=True):
            id: int
            note: str

        assert evolved(V1.Order, Order, V1.Order(1, 5, "x")) == [Order(1, "x")]

    def test_records_inside_others_evolve(self):
        old = V1.Basket([V1.Order(1, 5, "x")], {"a": V1.Order(2, 6, "y")})
        assert evolved(V1.Basket, V2.Basket, old) == [V2.Basket([V2.Order(5.0, 1)], {"a": V2.Order(6.0, 2)})]
        assert refusal(V2.Basket, V1.Basket).startswith("field 'orders[].price' was saved as Double")

    def test_a_class_inside_itself_evolves_at_every_depth(self):
        old = V1.Node(1, V1.Node(2, V1.Node(3)))
        assert evolved(V1.Node, V2.Node, old) == [V2.Node(1.0, V2.Node(2.0, V2.Node(3.0)))]
        assert keeps_bytes(V1.Node, V1.Node)
        tree = V1.Tree(1, [V1.Tree(2, [V1.Tree(3)])])
        assert evolved(V1.Tree, V2.Tree, tree) == [V2.Tree([V2.Tree([V2.Tree([], 3.0)], 2.0)], 1.0)]

    def test_renamed_classes_and_fields_need_an_alias(self):
        @dataclass
        class Purchase:
            id: int
            amount: int
            note: str = ""

        assert 'mark it with @aliases("Order")' in refusal(V1.Order, Purchase)
        renamed = aliases("Order", amount=("cost", "price"))(Purchase)
        assert evolved(V1.Order, renamed, V1.Order(1, 5, "x")) == [Purchase(1, 5, "x")]

    def test_every_kind_of_class_can_have_aliases(self):
        @aliases("Order", cost="price")
        class AsStruct(msgspec.Struct):
            cost: int

        @aliases("Order", cost="price")
        class AsTuple(NamedTuple):
            cost: int

        @aliases("Order", cost="price")
        class AsDict(TypedDict):
            cost: int

        order = V1.Order(1, 5, "x")
        assert evolved(V1.Order, AsStruct, order) == [AsStruct(5)]
        assert evolved(V1.Order, AsTuple, order) == [AsTuple(5)]
        assert evolved(V1.Order, AsDict, order) == [{"cost": 5}]

    def test_an_enum_can_have_an_alias(self):
        @aliases("Colour")
        class Hue(enum.Enum):
            RED = "r"
            BLUE = "b"

        assert evolved(V1.Colour, Hue, V1.Colour.RED) == [Hue.RED]

    def test_an_alias_of_a_field_that_is_not_there_is_refused(self):
        with pytest.raises(TypeMismatchError, match="Order has no field 'cost'"):
            aliases(cost="price")(V1.Order)

    def test_the_same_class_in_another_module_is_the_same(self):
        moved = type(
            "Order", (), {"__annotations__": {"id": int, "price": int, "note": str}, "__module__": "elsewhere"}
        )
        assert keeps_bytes(V1.Order, dataclass(moved))


class TestRows:
    OLD = Types.ROW_NAMED(["id", "price"], [Types.LONG(), Types.INT()])

    def test_fields_are_added_removed_widened_and_moved(self):
        new = Types.ROW_NAMED(["price", "note"], [Types.DOUBLE(), Types.STRING()])
        assert evolved(self.OLD, new, Row(id=1, price=5)) == [Row(price=5.0, note=None)]

    def test_fields_are_renamed_with_an_alias(self):
        new = Types.ROW_NAMED(["id", "amount"], [Types.LONG(), Types.INT()])
        assert evolved(self.OLD, new, Row(id=1, price=5)) == [Row(id=1, amount=None)]
        renamed = new.with_aliases(amount="price")
        assert evolved(self.OLD, renamed, Row(id=1, price=5)) == [Row(id=1, amount=5)]
        with pytest.raises(TypeMismatchError, match="no field 'cost'"):
            new.with_aliases(cost="price")

    def test_names_may_come_and_go_if_the_positions_stay(self):
        unnamed = Types.ROW([Types.LONG(), Types.LONG()])
        assert evolved(self.OLD, unnamed, Row(id=1, price=5)) == [Row(f0=1, f1=5)]
        assert evolved(unnamed, Types.ROW_NAMED(["a", "b"], [int, int]), Row(1, 5)) == [Row(a=1, b=5)]
        assert "only rows with field names" in refusal(unnamed, Types.ROW([int]))

    def test_the_kind_of_a_row_stays(self):
        row = Row(id=1, price=5)
        row.set_row_kind(RowKind.DELETE)
        (found,) = evolved(self.OLD, Types.ROW_NAMED(["price"], [Types.LONG()]), row)
        assert found.get_row_kind() is RowKind.DELETE

    def test_refusals_name_the_field(self):
        new = Types.ROW_NAMED(["id", "price"], [Types.LONG(), Types.STRING()])
        assert refusal(self.OLD, new).startswith(
            "field 'price' was saved as Integer?, but the program declares String?"
        )


class TestUntypedValues:
    def test_get_a_type_if_they_fit(self):
        assert evolved(None, int, 5) == [5]
        assert evolved(None, tuple[int, str], (1, "a")) == [(1, "a")]
        assert evolved(None, V1.Order, V1.Order(1, 2, "x")) == [V1.Order(1, 2, "x")]
        with pytest.raises(TypeMismatchError, match="'x' does not fit"):
            evolved(None, int, "x")

    def test_are_not_unpickled_where_pickle_is_not_allowed(self):
        schema, data = stored(None, [V1.Order(1, 2, "x")])
        migrate = column_migration(schema, value_codec_for(infer_type_info(V1.Order)))
        with pytest.raises(Exception, match="pickle"):
            migrate(data)

    def test_plain_values_may_lose_their_type(self):
        assert evolved(int, None, 5) == [5]
        assert "declare the type that it was saved with" in refusal(V1.Order, None)
