"""The bank: accounts, replayable transfers, and the last balance of every account in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

ACCOUNTS = 100
OPENING_CENTS = 100_000
#: The sum of all balances whenever no transfer is half done.
TOTAL_CENTS = ACCOUNTS * OPENING_CENTS


@dataclass(frozen=True)
class Transfer:
    """A transfer of `cents` from one account to another."""

    number: int
    source: int
    target: int
    cents: int

    def entries(self) -> tuple[Entry, Entry]:
        """The debit and the credit.

        >>> [entry.cents for entry in Transfer(0, 3, 4, 250).entries()]
        [-250, 250]
        """
        return Entry(self.source, -self.cents), Entry(self.target, self.cents)


@dataclass(frozen=True)
class Entry:
    """One side of a transfer."""

    account: int
    cents: int


@dataclass(frozen=True)
class Balance:
    """The balance of an account, and its number of entries."""

    account: int
    cents: int
    entries: int

    @staticmethod
    def opening(account: int) -> Balance:
        """The balance before the first entry."""
        return Balance(account, OPENING_CENTS, 0)

    def after(self, entry: Entry) -> Balance:
        """The balance after one more entry.

        >>> Balance.opening(3).after(Entry(3, -250))
        Balance(account=3, cents=99750, entries=1)
        """
        return Balance(self.account, self.cents + entry.cents, self.entries + 1)


@dataclass(frozen=True)
class TransferGenerator:
    """Transfer number n of a seed: the same in every run and every process, so that a source can continue anywhere.

    >>> TransferGenerator(7)(12) == TransferGenerator(7)(12)
    True
    """

    seed: int

    def __call__(self, number: int) -> Transfer:
        draw = random.Random(self.seed * 1_000_003 + number)
        source = draw.randrange(ACCOUNTS)
        target = (source + draw.randrange(1, ACCOUNTS)) % ACCOUNTS
        return Transfer(number, source, target, draw.randrange(1, 10_000))


def expected_balances(seed: int, transfers: int) -> dict[int, Balance]:
    """The balance of every account after this number of transfers, each booked once.

    >>> sum(balance.cents for balance in expected_balances(7, 50).values()) == TOTAL_CENTS
    True
    """
    return booked(map(TransferGenerator(seed), range(transfers)))


def booked(transfers: Iterable[Transfer]) -> dict[int, Balance]:
    """The balance of every account after these transfers."""
    balances = {account: Balance.opening(account) for account in range(ACCOUNTS)}
    for transfer in transfers:
        for entry in transfer.entries():
            balances[entry.account] = balances[entry.account].after(entry)
    return balances
