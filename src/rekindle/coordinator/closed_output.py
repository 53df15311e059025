"""Tells the jobs of this process that nobody reads its stdout or stderr any more: they end, as in every other program.

Lines are written on many threads, by the log, by the progress line and for slots. An error of theirs would end a thread
that cleans up, or be lost in the log's own handler: so it is told here, and the job masters listen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Gets the name of the stream and the error; called on any thread, must not block.
Listener = Callable[[str, Exception], None]
_lock = threading.Lock()
_listeners: list[Listener] = []


def is_closed(error: BaseException) -> bool:
    """Whether the error of a write means that the stream takes nothing any more; a full disk may have room again.

    >>> is_closed(BrokenPipeError()), is_closed(ValueError("I/O operation on closed file.")), is_closed(OSError())
    (True, True, False)
    """
    return isinstance(error, BrokenPipeError) or (isinstance(error, ValueError) and "closed file" in str(error))


def tell(stream: str, error: Exception) -> None:
    """Tell everyone who listens that a stream is closed."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(stream, error)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Inside the block the listener is told, perhaps several times.

    >>> heard = []
    >>> with heard_by(lambda stream, error: heard.append(stream)):
    ...     tell("stderr", BrokenPipeError())
    >>> tell("stderr", BrokenPipeError())
    >>> heard
    ['stderr']
    """
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)
