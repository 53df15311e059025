"""A call that may take minutes, on a thread of its own, so that its caller can stop waiting and leave it behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T], name: str) -> Future[T]:
    """Start a call; the future has its result or its error.

    >>> in_background(lambda: 6 * 7, "count").result()
    42
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
