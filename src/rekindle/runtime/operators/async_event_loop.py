"""An asyncio loop on a thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_LOG = logging.getLogger(__name__)
#: How long to wait for user code that blocks the loop.
_JOIN_TIMEOUT_S = 5.0


class EventLoopThread:
    """Runs coroutines on its thread until `stop`; from then until `close` the loop runs the functions given to `call`.

    >>> loop = EventLoopThread("answers")
    >>> loop.call(lambda: asyncio.get_running_loop().is_running())
    True
    >>> loop.close()
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self._cancel_all()

    def _cancel_all(self) -> None:
        """Cancel all tasks of the loop and wait for them."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def post(self, callback: Callable[[], None]) -> None:
        """Schedule a callback on the loop's thread; after `stop` do nothing."""
        if not self._stopping:
            self.loop.call_soon_threadsafe(callback)

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function inside the running loop and return its result; a coroutine is awaited."""

        async def inside() -> Any:
            result = function()
            return await result if inspect.isawaitable(result) else result

        if self._stopping:
            self._join()
            return self.loop.run_until_complete(inside())
        future: Future[Any] = asyncio.run_coroutine_threadsafe(inside(), self.loop)
        return future.result()

    def stop(self) -> None:
        """Cancel all tasks and end the thread, without waiting. Safe from any thread."""
        if not self._stopping:
            self._stopping = True
            self.loop.call_soon_threadsafe(self.loop.stop)

    def close(self) -> None:
        """End the thread and release the loop's resources."""
        if self.loop.is_closed():
            return
        self.stop()
        self._join()
        self._cancel_all()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def _join(self) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(
                f"'{self._thread.name}' did not end within {_JOIN_TIMEOUT_S:.0f} s: "
                "something in it blocks instead of awaiting."
            )

    def __del__(self) -> None:
        # A killed job does not close its loop, but the loop's thread has ended.
        if not self.loop.is_closed() and not self.loop.is_running():
            self.loop.close()
