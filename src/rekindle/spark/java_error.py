"""The error of a failed job as PyFlink programs expect it: one that `except Py4JJavaError` catches."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from py4j.protocol import Py4JJavaError

from rekindle import pyflink_names


class JavaThrowable:
    """The text of `Py4JJavaError.java_exception`, which programs read."""

    def __init__(self, message: str) -> None:
        self._message = message

    def getMessage(self) -> str:
        """The message."""
        return self._message

    def toString(self) -> str:
        """The message behind Flink's name for the error of a job."""
        return f"org.apache.flink.runtime.client.JobExecutionException: {self._message}"

    getLocalizedMessage = getMessage
    __str__ = toString

    def getCause(self) -> None:
        """There is none: the message holds the whole story."""


def error_for_program() -> Callable[[BaseException], BaseException]:
    """The conversion of a job's error for this process: into a Py4JJavaError where PyFlink's names are installed."""
    return as_java_error if pyflink_names.is_installed() else _as_it_is


def _as_it_is(error: BaseException) -> BaseException:
    return error


def as_java_error(error: BaseException) -> BaseException:
    """The same error, of a class that is also a Py4JJavaError.

    >>> from rekindle.errors import JobExecutionError
    >>> raised = as_java_error(JobExecutionError("flat_map failed"))
    >>> isinstance(raised, Py4JJavaError), isinstance(raised, JobExecutionError), str(raised)
    (True, True, 'flat_map failed')
    """
    if not isinstance(error, Exception) or isinstance(error, Py4JJavaError):
        return error
    kind = _java_class_of(type(error))
    raised = kind.__new__(kind, *error.args)
    raised.__dict__.update(error.__dict__)
    raised.args = error.args
    message = str(error)
    raised.__dict__.update(errmsg=message, java_exception=JavaThrowable(message), exception_cmd="")
    raised.__cause__, raised.__context__ = error.__cause__, error.__context__
    raised.__suppress_context__ = error.__suppress_context__
    return raised


def _java_class_of(kind: type[Exception]) -> type[Exception]:
    """A class under the same name that is both this one and a Py4JJavaError, whose text needs no JVM."""
    names = {"__module__": kind.__module__, "__str__": kind.__str__}
    return cast(type[Exception], type(kind.__name__, (kind, Py4JJavaError), names))
