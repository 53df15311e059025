"""Which keys a stream touches: all alike (uniform), few of them most of the time (Zipf 1.0), or only a hot set."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from enum import StrEnum

#: Ranks are scattered over the keys, so that hot keys are no neighbours: a prime that divides no power of ten.
_SCATTER = 2_654_435_761
#: How many keys the hot set has.
HOT_KEYS = 20_000


class Access(StrEnum):
    """How often each key is touched."""

    UNIFORM = "uniform"
    ZIPF = "zipf"
    HOT = "hot"


def key_text(number: int) -> str:
    """A key as jobs have it.

    >>> key_text(7)
    'user-0000000007'
    """
    return f"user-{number:010d}"


def numbers(access: Access, keys: int, seed: int) -> Iterator[int]:
    """An endless sequence of key numbers below `keys`; the same seed gives the same sequence.

    >>> from itertools import islice
    >>> list(islice(numbers(Access.ZIPF, 1000, 1), 3)) == list(islice(numbers(Access.ZIPF, 1000, 1), 3))
    True
    """
    rank = _ranks(access, keys, random.Random(seed).random)
    while True:
        yield rank() * _SCATTER % keys


def _ranks(access: Access, keys: int, draw: Callable[[], float]) -> Callable[[], int]:
    if access is Access.UNIFORM:
        return lambda: int(draw() * keys)
    if access is Access.HOT:
        hot = min(HOT_KEYS, keys)
        return lambda: int(draw() * hot)
    # Of a Zipf distribution with exponent 1 the logarithm of the rank is uniform.
    return lambda: int((keys + 1) ** draw()) - 1
