"""A program as a user writes it: classes and functions of its own, a module beside it, a file from elsewhere.

    python spending.py <master> <a file for add_python_file> [key=value ...]

Prints how much each customer spent, as lines of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from catalogue import LookUp, Priced

from rekindle.common import Configuration, Types
from rekindle.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor


@dataclass(frozen=True)
class Order:
    """A record of a class of `__main__`."""

    customer: str
    item: str
    quantity: int


@dataclass
class Basket:
    """The state value: objects of `__main__` inside an object of `__main__`."""

    orders: list[Order] = field(default_factory=list)
    cents: int = 0

    def add(self, priced: Priced) -> Basket:
        return Basket([*self.orders, priced.order], self.cents + priced.cents)


@dataclass(frozen=True)
class Spent:
    """The result, typed when it leaves."""

    customer: str
    items: list[str]
    cents_with_tax: int


class Collector(KeyedProcessFunction):
    """Keeps each customer's basket in pickled state and the orders in typed state."""

    def open(self, runtime_context: Any) -> None:
        self.basket = runtime_context.get_state(ValueStateDescriptor("basket", Types.PICKLED_BYTE_ARRAY()))
        self.orders = runtime_context.get_list_state(ListStateDescriptor("orders", Order))

    def process_element(self, value: Priced, ctx: Any) -> Iterator[Spent]:
        from taxes import with_tax  # only the slots have it

        assert type(value.order) is Order, "the class of a record is the class that this function sees"
        basket = (self.basket.value() or Basket()).add(value)
        self.basket.update(basket)
        self.orders.add(value.order)
        assert list(self.orders.get()) == basket.orders
        yield Spent(ctx.get_current_key(), [order.item for order in basket.orders], with_tax(basket.cents))


def is_large(order: Order) -> bool:
    return order.quantity >= minimum()


def minimum() -> int:
    return 2


ORDERS = [
    Order("ann", "nail", 100),
    Order("bob", "saw", 2),
    Order("ann", "hammer", 1),
    Order("ann", "saw", 3),
    Order("bob", "nail", 40),
    Order("cyd", "hammer", 2),
]


def spending(env: StreamExecutionEnvironment, element_type: Any) -> Any:
    """Three chains with an exchange before each: the sum that each customer has spent so far on large orders."""
    orders = env.from_collection(ORDERS, element_type).rebalance().filter(is_large)
    return orders.map(LookUp()).key_by(lambda priced: priced.customer, Types.STRING()).process(Collector(), Spent)


def main() -> None:
    settings = dict(argument.split("=", 1) for argument in sys.argv[3:])
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"master": sys.argv[1], "rekindle.progress": "off", **settings})
    )
    env.set_parallelism(2)
    env.add_python_file(sys.argv[2])
    # The one source's records travel typed, the other's pickled.
    both = (
        spending(env, Order)
        .map(lambda spent: ("typed", spent))
        .union(spending(env, None).map(lambda spent: ("untyped", spent)))
    )
    with both.execute_and_collect("orders of a program") as results:
        for kind, spent in results:
            print(json.dumps([kind, spent.customer, spent.items, spent.cents_with_tax]), flush=True)


if __name__ == "__main__":
    main()
