"""A module beside the program: a class whose objects travel as records, and a function class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rekindle.datastream import MapFunction

PRICES_CENTS = {"nail": 5, "hammer": 900, "saw": 1200}


@dataclass
class Priced:
    """An order with its price."""

    customer: str
    cents: int
    order: Any


class LookUp(MapFunction):
    """Orders to priced orders."""

    def open(self, runtime_context: Any) -> None:
        self.prices = dict(PRICES_CENTS)

    def map(self, value: Any) -> Priced:
        return Priced(value.customer, self.prices[value.item] * value.quantity, value)
