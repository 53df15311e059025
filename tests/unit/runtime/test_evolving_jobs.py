"""Changed programs go on from the state of their former versions: every place where jobs keep state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import pytest

from rekindle.common import Row, Time, Types, TypeSerializer, WatermarkStrategy, aliases
from rekindle.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
)
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from rekindle.errors import GraphError
from rekindle.testing import assert_evolves

NUMBERS = list(range(1, 13))
ALL = sum(NUMBERS)


def named(name: str) -> Any:
    def rename(cls: type) -> type:
        cls.__qualname__ = cls.__name__ = name
        return cls

    return rename


@named("Order")
@dataclass
class Order1:
    amount: int
    note: str = "old"


@named("Order")
@dataclass
class Order2:
    currency: str = "EUR"
    amount: float = 0.0


@named("Order")
@dataclass
class Text:
    amount: str = ""


def plus(a: Any, b: Any) -> Any:
    return replace(a, amount=a.amount + b.amount)


def one_key(value: Any) -> int:
    return 0


# -- a function's own state --------------------------------------------------------------------------------------------


class Sum(KeyedProcessFunction):
    """Sums up in a value of some type; `make` makes the value of a sum, `of` takes the sum out of it."""

    def __init__(self, type_info: Any, make: Any, of: Any, serializer: Any = None) -> None:
        self.type_info, self.make, self.of, self.serializer = type_info, make, of, serializer

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("sum", self.type_info)
        if self.serializer is not None:
            descriptor.set_serializer(self.serializer)
        self.sum = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        held = self.sum.value()
        self.sum.update(self.make((0 if held is None else self.of(held)) + value))
        yield self.sum.value()


def sums(type_info: Any, make: Any = lambda n: n, of: Any = lambda n: n, serializer: Any = None) -> Any:
    def program(env):
        numbers = env.from_collection(NUMBERS, int)
        return numbers.key_by(one_key, int).process(Sum(type_info, make, of, serializer)).uid("sum")

    return program


def orders(cls: type) -> Any:
    return sums(cls, lambda n: cls(amount=n), lambda order: order.amount)


ROW = Types.ROW_NAMED(["amount"], [Types.INT()])
WIDER_ROW = Types.ROW_NAMED(["note", "amount"], [Types.STRING(), Types.DOUBLE()])


class TestAFunctionsOwnState:
    def test_a_class_evolves(self):
        assert assert_evolves(orders(Order1), orders(Order2))[-1] == Order2("EUR", ALL)

    def test_twice_and_back(self):
        assert assert_evolves(orders(Order1), orders(Order2), orders(Order2), epochs=1)[-1] == Order2("EUR", ALL)
        sentence = "State 'sum': field 'amount' was saved as Double, but the program declares Long: numbers can only"
        with pytest.raises(AssertionError, match=sentence):
            assert_evolves(orders(Order1), orders(Order2), orders(Order1))

    def test_rows_evolve(self):
        old = sums(ROW, lambda n: Row(amount=n), lambda row: row.amount)
        new = sums(WIDER_ROW, lambda n: Row(note="x", amount=n), lambda row: row.amount)
        assert assert_evolves(old, new)[-1] == Row(note="x", amount=float(ALL))

    def test_a_renamed_class_needs_an_alias(self):
        @aliases("Order", total="amount")
        @dataclass
        class Purchase:
            total: int

        new = sums(Purchase, lambda n: Purchase(total=n), lambda purchase: purchase.total)
        assert assert_evolves(orders(Order1), new)[-1] == Purchase(ALL)

    def test_the_refusal_names_operator_state_field_and_types(self):
        with pytest.raises(AssertionError) as refused:
            assert_evolves(orders(Order1), orders(Text))
        assert str(refused.value) == (
            "Operator 'KEYED PROCESS' of job 'test' cannot take its state: State 'sum': field 'amount' was saved as "
            "Long, but the program declares String: declare the former type, or give the new one another name."
        )

    def test_fields_that_are_dropped_are_told(self, caplog):
        """A field that was renamed without an alias is lost: the log says which."""
        assert_evolves(orders(Order1), orders(Order2))
        told = [record.getMessage() for record in caplog.records if "are dropped" in record.getMessage()]
        assert told
        for sentence in told:
            assert sentence.startswith("State 'sum': the values of its saved field 'note' are dropped")
            assert sentence.endswith("if it was renamed, say so with @aliases(new_name='note').")

    def test_the_state_of_a_rolling_reduce_evolves(self):
        def program(cls):
            return lambda env: (
                env.from_collection(NUMBERS, int)
                .map(lambda n: cls(amount=n), cls)
                .key_by(one_key, int)
                .reduce(plus)
                .uid("sum")
            )

        assert assert_evolves(program(Order1), program(Order2))[-1] == Order2("EUR", ALL)

    def test_an_added_state_begins_empty(self):
        class Two(Sum):
            def open(self, runtime_context):
                super().open(runtime_context)
                self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

            def process_element(self, value, ctx):
                self.count.update((self.count.value() or 0) + 1)
                (total,) = super().process_element(value, ctx)
                yield total, self.count.value()

        def counted(env):
            keyed = env.from_collection(NUMBERS, int).key_by(one_key, int)
            return keyed.process(Two(int, lambda n: n, lambda n: n)).uid("sum")

        found = assert_evolves(sums(Types.INT()), counted, parallelism=1, epochs=2)
        assert found[-1] == (ALL, len(NUMBERS) - 6)

    def test_pickled_values_follow_the_rules_of_pickle(self):
        """Nothing but pickle knows them: their class has to read its own former attributes."""
        program = sums(None, lambda n: {"amount": complex(n)}, lambda held: int(held["amount"].real))
        assert assert_evolves(program, program)[-1] == {"amount": complex(ALL)}


# -- serializers -------------------------------------------------------------------------------------------------------


class Cents(TypeSerializer[int]):
    """Version 1 writes digits."""

    def serialize(self, element, stream):
        stream.write(str(element).encode())

    def deserialize(self, stream):
        return int(stream.read())


@named("Cents")
class NewCents(Cents):
    """Version 2 writes hexadecimal digits, and reads version 1."""

    version = 2

    def serialize(self, element, stream):
        stream.write(b"x" + f"{element:x}".encode())

    def deserialize(self, stream: BytesIO):
        assert stream.read(1) == b"x"
        return int(stream.read(), 16)

    def deserialize_version(self, stream, version):
        assert version == 1
        return int(stream.read())


@named("Cents")
class Forgetful(Cents):
    version = 2


class Hundredths(NewCents):
    former_names = ("Cents",)


class Careless(Cents):
    """Leaves bytes unread."""

    former_names = ("Cents",)

    def deserialize(self, stream):
        return int(stream.read(1))


class Counted(KeyedBroadcastProcessFunction):
    """Keeps the last rule under the key 1."""

    def __init__(self, rules: MapStateDescriptor) -> None:
        self.rules = rules

    def process_element(self, value, ctx):
        yield ctx.get_broadcast_state(self.rules).get(1)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(self.rules).put(1, value)
        return ()


class TestSerializers:
    def test_write_the_state(self):
        assert assert_evolves(sums(int, serializer=Cents()), sums(int, serializer=Cents()))[-1] == ALL

    def test_values_without_a_type_need_no_pickle(self):
        def program(env):
            env.get_configuration().set_string("state.pickle", "refuse")
            keyed = env.from_collection(NUMBERS, int).key_by(one_key, int)
            return keyed.process(Sum(None, abs, abs, Cents()), int).uid("sum")

        assert assert_evolves(program, program)[-1] == ALL

    def test_broadcast_state_needs_no_pickle_either(self):
        def program(*serializers):
            def build(env):
                env.get_configuration().set_string("state.pickle", "refuse")
                descriptor = MapStateDescriptor("rules", None, None)
                for set_serializer in (descriptor.set_serializer, descriptor.set_key_serializer)[: len(serializers)]:
                    set_serializer(Cents())
                rules = env.from_collection([5], int).broadcast(descriptor)
                keyed = env.from_collection(NUMBERS, int).key_by(one_key, int)
                return keyed.connect(rules).process(Counted(descriptor), int).uid("ruled")

            return build

        with pytest.raises(GraphError, match="broadcast state 'rules'"):
            assert_evolves(program(Cents()), program(Cents()))
        both = program(Cents(), Cents())
        assert set(assert_evolves(both, both)) == {5}

    def test_a_newer_version_reads_the_older_one(self):
        old, new = sums(int, serializer=Cents()), sums(int, serializer=NewCents())
        assert assert_evolves(old, new, new, epochs=1)[-1] == ALL

    def test_a_renamed_one_says_so(self):
        assert assert_evolves(sums(int, serializer=Cents()), sums(int, serializer=Hundredths()))[-1] == ALL
        with pytest.raises(AssertionError, match=r"saved as Hundredths \(version 2\).*put its name into former_names"):
            assert_evolves(sums(int, serializer=Hundredths()), sums(int, serializer=Cents()))

    def test_a_version_that_nobody_reads_is_refused(self):
        sentence = r"was saved as Cents \(version 1\), but the program declares Cents \(version 2\): read the older"
        with pytest.raises(AssertionError, match=sentence):
            assert_evolves(sums(int, serializer=Cents()), sums(int, serializer=Forgetful()))
        with pytest.raises(AssertionError, match=r"saved as Cents \(version 2\), but the program declares"):
            assert_evolves(sums(int, serializer=NewCents()), sums(int, serializer=Cents()))

    def test_bytes_that_are_left_unread_are_told(self):
        with pytest.raises(AssertionError, match="Careless has read 1 of the 2 bytes of a value that its version 1"):
            assert_evolves(sums(int, serializer=Cents()), sums(int, serializer=Careless()))

    def test_state_gets_a_serializer_and_keeps_it(self):
        assert assert_evolves(sums(Types.INT()), sums(int, serializer=Cents()))[-1] == ALL
        with pytest.raises(AssertionError, match="only the serializer that wrote it can read it"):
            assert_evolves(sums(int, serializer=Cents()), sums(int))


# -- windows -----------------------------------------------------------------------------------------------------------


class Total(AggregateFunction):
    def __init__(self, cls: type) -> None:
        self.cls = cls

    def create_accumulator(self):
        return self.cls(amount=0)

    def add(self, value, accumulator):
        return replace(accumulator, amount=accumulator.amount + value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return plus(a, b)


class Elements(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield sorted(order.amount for order in elements)


BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1)
ASSIGNERS = [TumblingEventTimeWindows.of(Time.hours(1)), EventTimeSessionWindows.with_gap(Time.hours(1))]


def windowed(cls: Any, contents: str, assigner: Any) -> Any:
    def program(env):
        numbers = env.from_collection(NUMBERS, int).assign_timestamps_and_watermarks(BY_TIME)
        typed = numbers if contents == "aggregate" else numbers.map(lambda n: cls(amount=n), cls)
        windows = typed.key_by(one_key, int).window(assigner)
        if contents == "aggregate":
            return windows.aggregate(Total(cls), accumulator_type=cls, output_type=cls).uid("windows")
        return (windows.reduce(plus) if contents == "reduce" else windows.process(Elements())).uid("windows")

    return program


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=["tumbling", "sessions"])
@pytest.mark.parametrize("contents", ["reduce", "aggregate", "elements"])
class TestWindows:
    def test_their_contents_evolve(self, contents, assigner):
        found = assert_evolves(windowed(Order1, contents, assigner), windowed(Order2, contents, assigner))
        assert found == ([NUMBERS] if contents == "elements" else [Order2("EUR", ALL)])

    def test_refusals_name_the_field(self, contents, assigner):
        with pytest.raises(AssertionError, match=r"State '.*': field 'amount' was saved as Long"):
            assert_evolves(windowed(Order1, contents, assigner), windowed(Text, contents, assigner))


# -- operator state ----------------------------------------------------------------------------------------------------


class Remember(MapFunction, CheckpointedFunction):
    """Keeps all orders, in a split list or in a union list."""

    def __init__(self, cls: type, union: bool) -> None:
        self.cls, self.union = cls, union

    def map(self, value):
        self.seen.append(self.cls(amount=value))
        return len(self.seen), sum(order.amount for order in self.seen)

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        descriptor = ListStateDescriptor("seen", self.cls)
        self.state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self.seen = list(self.state.get())

    def snapshot_state(self, context):
        self.state.update(self.seen)


@pytest.mark.parametrize("union", [False, True])
def test_operator_state_evolves(union):
    def program(cls):
        return lambda env: env.from_collection(NUMBERS, int).map(Remember(cls, union)).uid("seen")

    assert assert_evolves(program(Order1), program(Order2), parallelism=1)[-1] == (len(NUMBERS), float(ALL))
    with pytest.raises(AssertionError, match=r"'Map'.*State 'seen': field 'amount' was saved as Long"):
        assert_evolves(program(Order1), program(Text), parallelism=1)


class Ruled(KeyedBroadcastProcessFunction):
    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.rules = MapStateDescriptor("rules", Types.STRING(), cls)

    def process_element(self, value, ctx):
        rule = ctx.get_broadcast_state(self.rules).get("last")
        yield None if rule is None else rule.amount

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(self.rules).put("last", self.cls(amount=value))
        return ()


def test_broadcast_state_evolves():
    def program(cls):
        def build(env):
            rules = env.from_collection([5], int).broadcast(MapStateDescriptor("rules", Types.STRING(), cls))
            return (
                env.from_collection(NUMBERS, int).key_by(one_key, int).connect(rules).process(Ruled(cls)).uid("ruled")
            )

        return build

    found = assert_evolves(program(Order1), program(Order2))
    assert set(map(repr, found)) == {"5.0"}
    with pytest.raises(AssertionError, match="State 'rules': field 'amount' was saved as Long"):
        assert_evolves(program(Order1), program(Text))


class Waiting(AsyncFunction):
    """Never answers, or at once."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers

    async def async_invoke(self, value):
        if not self.answers:
            await asyncio.Event().wait()
        return [value]


def test_elements_in_flight_of_async_calls_evolve():
    def program(cls, answers):
        def build(env):
            typed = env.from_collection(NUMBERS, int).map(lambda n: cls(amount=n), cls)
            return AsyncDataStream.unordered_wait(typed, Waiting(answers), Time.hours(1), 100, cls).uid("waits")

        return build

    found = assert_evolves(program(Order1, False), program(Order2, True))
    assert sorted(order.amount for order in found) == NUMBERS
    assert {type(order.amount) for order in found[:6]} == {float}
    with pytest.raises(AssertionError, match="The elements in flight: field 'amount' was saved as Long"):
        assert_evolves(program(Order1, False), program(Text, True))


# -- operators that are gone -------------------------------------------------------------------------------------------


def test_state_of_an_operator_that_is_gone_is_refused_unless_that_is_allowed():
    def without(env):
        return env.from_collection(NUMBERS, int).map(abs, int)

    with pytest.raises(AssertionError, match=r"'KEYED PROCESS'.*execution\.state-recovery\.ignore-unclaimed-state"):
        assert_evolves(sums(int), without)
    assert assert_evolves(sums(int), without, allow_non_restored_state=True)
