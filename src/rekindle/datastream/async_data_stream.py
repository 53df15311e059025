"""`AsyncDataStream`: applies async functions, which wait for external answers, to streams."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

from rekindle.common.time import Duration, Time, as_millis
from rekindle.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from rekindle.datastream.functions.async_function import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from rekindle.datastream.operator_details import AsyncWaitDetails
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError

__all__ = ["AsyncDataStream"]

_Timeout = Time | Duration | timedelta
_MODE = AsyncFunctionDescriptor.OutputMode


class AsyncDataStream:
    """Applies an `AsyncFunction` to a stream. At most `capacity` elements are in flight per subtask.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> class Ask(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [value + 1]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> asked = AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Ask(), Time.seconds(5), 10, int)
    >>> asked.get_type()
    Long
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: _Timeout,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Emit results as they arrive. Between two watermarks their order may change.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> class Ask(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [value + 1]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> AsyncDataStream.unordered_wait(env.from_collection([1]), Ask(), Time.seconds(5)).get_name()
        'async wait operator'
        """
        return _add(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, _MODE.UNORDERED)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: _Timeout,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Like `unordered_wait`, with retries by the strategy. The timeout limits all tries of an element together."""
        _check_retry(data_stream, timeout, async_retry_strategy)
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, _MODE.UNORDERED)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: _Timeout,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Emit results in the order of the elements. A slow element delays the elements after it."""
        return _add(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, _MODE.ORDERED)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: _Timeout,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Like `ordered_wait`, with retries by the strategy. The timeout limits all tries of an element together."""
        _check_retry(data_stream, timeout, async_retry_strategy)
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, _MODE.ORDERED)


def _add(
    data_stream: DataStream,
    async_function: AsyncFunction[Any, Any],
    timeout: _Timeout,
    strategy: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: Any,
    mode: AsyncFunctionDescriptor.OutputMode,
) -> DataStream:
    where = _where(data_stream)
    check_function(where, async_function, AsyncFunction, {"async_invoke": 1, "timeout": 1})
    invoke = async_function.async_invoke
    if not inspect.iscoroutinefunction(invoke):
        raise GraphError(f"{where}: {type(async_function).__name__}.async_invoke should be declared as `async def`.")
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise GraphError(f"{where}: the capacity must be a whole number of 1 or more, not {capacity!r}.")
    descriptor = AsyncFunctionDescriptor(async_function, _millis(where, timeout), capacity, strategy, mode)
    declared = data_stream._declared("async wait", output_type)
    operator = Transformation(
        OperatorKind.ASYNC_WAIT,
        "async wait operator",
        descriptor,
        inputs=(data_stream._upstreams,),
        output_type=declared,
        details=AsyncWaitDetails(data_stream._type_info),
    )
    env = data_stream.get_execution_environment()
    env._add(operator)
    return DataStream(env, (Upstream(operator),), declared, operator)


def _check_retry(data_stream: Any, timeout: _Timeout, strategy: Any) -> None:
    where = _where(data_stream)
    if not isinstance(strategy, AsyncRetryStrategy):
        raise GraphError(f"{where} takes an AsyncRetryStrategy, not {strategy!r}.")
    if strategy.get_retry_predicate() is None:
        raise GraphError(f"{where}: get_retry_predicate() of {type(strategy).__name__} returned None.")
    if strategy is not NO_RETRY_STRATEGY and _millis(where, timeout) <= 0:
        raise GraphError(f"{where}: with retries a timeout is needed; it limits all tries of an element together.")


def _millis(where: str, timeout: _Timeout) -> int:
    if not isinstance(timeout, Time | Duration | timedelta):
        raise GraphError(f"{where} takes a timeout such as Time.seconds(10), not {timeout!r}.")
    return max(0, as_millis(timeout))


def _where(data_stream: Any) -> str:
    if not isinstance(data_stream, DataStream):
        raise GraphError(f"AsyncDataStream takes a DataStream first, not {data_stream!r}.")
    names = ", ".join(f"'{upstream.transformation.name}'" for upstream in data_stream._upstreams)
    return f"AsyncDataStream after {names}"
