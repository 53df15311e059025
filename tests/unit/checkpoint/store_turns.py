"""Two drivers on one store that act in a given order of turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rekindle.checkpoint.store.port import Data, FileEntry, Store


class Turns:
    """Lets drivers do one store call at a time, in a given order; calls beyond the order do not wait."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self._order = list(order)
        self._changed = threading.Condition()
        self._gone: set[str] = set()

    def take(self, driver: str, call: Callable[[], Any]) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: self._next() in (driver, None), timeout=20), "nobody's turn"
            if self._order:
                self._order.pop(0)
            try:
                return call()
            finally:
                self._changed.notify_all()

    def leave(self, driver: str) -> None:
        with self._changed:
            self._gone.add(driver)
            self._changed.notify_all()

    def _next(self) -> str | None:
        while self._order and self._order[0] in self._gone:
            self._order.pop(0)
        return self._order[0] if self._order else None


class TurnStore:
    """A driver's view of the store."""

    def __init__(self, store: Store, turns: Turns, driver: str) -> None:
        self.url, self.conditional = store.url, store.conditional
        self._store, self._turns, self._driver = store, turns, driver

    def put(self, path: str, data: Data) -> None:
        self._turns.take(self._driver, lambda: self._store.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return bool(self._turns.take(self._driver, lambda: self._store.put_if_absent(path, data)))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return bytes(self._turns.take(self._driver, lambda: self._store.read(path, offset, length)))

    def list(self, prefix: str = "") -> list[FileEntry]:
        entries: list[FileEntry] = self._turns.take(self._driver, lambda: self._store.list(prefix))
        return entries

    def delete(self, *paths: str) -> None:
        self._turns.take(self._driver, lambda: self._store.delete(*paths))


def run_together(turns: Turns, **drivers: Callable[[], Any]) -> dict[str, Any]:
    outcomes: dict[str, Any] = {}

    def run(name: str, drive: Callable[[], Any]) -> None:
        try:
            outcomes[name] = drive()
        except Exception as error:
            outcomes[name] = error
        finally:
            turns.leave(name)

    threads = [threading.Thread(target=run, args=item) for item in drivers.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(outcomes) == len(drivers)
    return outcomes
