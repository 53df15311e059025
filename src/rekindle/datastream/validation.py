"""Checks of the arguments of the API when it is called. Error messages name the operator and the right argument."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from rekindle.common.typeinfo import TypeInformation, infer_type_info
from rekindle.datastream.functions.function import Function
from rekindle.errors import GraphError, RekindleError, TypeMismatchError

_LOG = logging.getLogger("rekindle")

#: The method that takes each kind of function, for error messages.
_METHOD_OF = {
    "MapFunction": "map()",
    "FlatMapFunction": "flat_map()",
    "FilterFunction": "filter()",
    "ReduceFunction": "key_by(...).reduce()",
    "AggregateFunction": "window(...).aggregate() or an AggregatingStateDescriptor",
    "WindowFunction": "window(...).apply()",
    "ProcessWindowFunction": "window(...).process()",
    "AllWindowFunction": "window_all(...).apply()",
    "ProcessAllWindowFunction": "window_all(...).process()",
    "KeySelector": "key_by()",
    "Partitioner": "partition_custom()",
    "ProcessFunction": "process() on a stream that is not keyed",
    "KeyedProcessFunction": "key_by(...).process()",
    "CoMapFunction": "connect(...).map()",
    "CoFlatMapFunction": "connect(...).flat_map()",
    "CoProcessFunction": "connect(...).process()",
    "KeyedCoProcessFunction": "connect(...).key_by(...).process()",
    "BroadcastProcessFunction": "connect(broadcast_stream).process() on a stream that is not keyed",
    "KeyedBroadcastProcessFunction": "key_by(...).connect(broadcast_stream).process()",
    "AsyncFunction": "AsyncDataStream.unordered_wait()",
    "ProcessJoinFunction": "key_by(...).interval_join(...).between(...).process()",
    "JoinFunction": "join(...).where(...).equal_to(...).window(...).apply()",
    "FlatJoinFunction": "join(...).where(...).equal_to(...).window(...).apply()",
    "CoGroupFunction": "co_group(...).where(...).equal_to(...).window(...).apply()",
    "SourceFunction": "add_source()",
    "SinkFunction": "add_sink()",
}

#: The methods of a `Sink`: name, number of arguments, whether it is required.
_SINK_METHODS = (
    ("create_writer", 1, True),
    ("restore_writer", 2, False),
    ("create_committer", 1, False),
    ("get_committable_serializer", 0, False),
    ("get_writer_state_serializer", 0, False),
)


def describe(function: Any) -> str:
    """Return the name of a function, class or value for an error message.

    >>> describe(len), describe(3), describe(int)
    ("'len'", '3', "class 'int'")
    """
    if isinstance(function, type):
        return f"class '{function.__name__}'"
    if isinstance(function, Function):
        return f"{function_kind(function)} '{type(function).__name__}'"
    name = getattr(function, "__name__", None)
    return f"'{name}'" if isinstance(name, str) else repr(function)


def function_kind(function: Function) -> str:
    """Return the name of the API class that a function extends.

    >>> from rekindle.datastream.functions import PrintSinkFunction
    >>> function_kind(PrintSinkFunction())
    'SinkFunction'
    """
    return next((base.__name__ for base in type(function).__mro__ if base.__name__ in _METHOD_OF), "Function")


def check_function(
    where: str,
    function: Any,
    accepted: type[Function] | tuple[type[Function], ...],
    methods: dict[str, int],
    callable_arity: int | None = None,
    single_valued: bool = False,
) -> None:
    """Refuse a function that is neither one of `accepted` nor a callable of `callable_arity` arguments (if given).

    `methods` has the methods that will be called, with their numbers of arguments. If `single_valued`, they must not
    be generators, because their results would be generator objects.
    """
    kinds = accepted if isinstance(accepted, tuple) else (accepted,)
    wanted = " or ".join(f"a {kind.__name__}" for kind in kinds)
    if isinstance(function, kinds):
        for method, arity in methods.items():
            bound = getattr(function, method)
            check_arity(f"{where}: {type(function).__name__}.{method}", bound, arity)
            if single_valued:
                check_single_valued(f"{where}: {type(function).__name__}.{method}", bound)
        return
    if isinstance(function, Function):
        hint = _METHOD_OF.get(function_kind(function))
        use = f"; a {function_kind(function)} belongs in {hint}" if hint else ""
        raise GraphError(f"{where} takes {wanted}, not the {describe(function)}{use}.")
    if callable(getattr(function, "create_writer", None)):
        raise GraphError(f"{where} takes {wanted}, not {describe(function)}; a Sink belongs in sink_to().")
    if callable_arity is None:
        if isinstance(function, type) and issubclass(function, kinds):
            raise GraphError(f"{where} takes an instance, not the {describe(function)}: write {function.__name__}().")
        raise GraphError(f"{where} takes {wanted}, not {describe(function)}.")
    check_callable(where, function, callable_arity, wanted)
    if single_valued:
        check_single_valued(where, function)


def check_callable(where: str, function: Any, arity: int, wanted: str) -> None:
    """Refuse a value that cannot be called with `arity` arguments."""
    if isinstance(function, type) and issubclass(function, Function):
        raise GraphError(f"{where} takes an instance, not the {describe(function)}: write {function.__name__}().")
    if not callable(function):
        raise GraphError(f"{where} takes {wanted} or a callable, not {describe(function)}.")
    check_arity(f"{where}: {describe(function)}", function, arity)


def check_arity(where: str, function: Any, arity: int) -> None:
    """Refuse a callable that does not take `arity` positional arguments. Builtins without a signature are accepted."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*([None] * arity))
    except TypeError as error:
        noun = "argument" if arity == 1 else "arguments"
        raise GraphError(f"{where} is called with {arity} {noun}, but its signature is {signature}.") from error


def check_single_valued(where: str, function: Any, instead: str = "flat_map()") -> None:
    """Refuse generators and coroutines, where a function must return one value."""
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise GraphError(f"{where} uses `yield`, but one value is expected of it: return it, or use {instead}.")
    if inspect.iscoroutinefunction(target):
        raise GraphError(f"{where} is `async`, but a plain function is expected here.")


def check_sink(where: str, sink: Any) -> None:
    """Refuse a value without the methods of a `Sink`."""
    if isinstance(sink, Function) and not callable(getattr(sink, "create_writer", None)):
        hint = _METHOD_OF.get(function_kind(sink))
        use = f"; a {function_kind(sink)} belongs in {hint}" if hint else ""
        raise GraphError(f"{where} takes a Sink, not the {describe(sink)}{use}.")
    if isinstance(sink, type) and callable(getattr(sink, "create_writer", None)):
        raise GraphError(f"{where} takes an instance, not the {describe(sink)}: write {sink.__name__}().")
    for method, arity, required in _SINK_METHODS:
        bound = getattr(sink, method, None)
        if callable(bound):
            check_arity(f"{where}: {type(sink).__name__}.{method}", bound, arity)
        elif required:
            raise GraphError(f"{where} takes a Sink, which has create_writer(context), not {describe(sink)}.")


def declared_type(where: str, hint: Any) -> TypeInformation | None:
    """Return the type information of a type hint, or None (undeclared) for None."""
    if hint is None:
        return None
    try:
        return infer_type_info(hint)
    except RekindleError as error:
        raise TypeMismatchError(f"{where}: {error}") from error
    except (TypeError, ValueError) as error:
        raise TypeMismatchError(f"{where}: {hint!r} is not a type: {error}.") from error


def check_name(where: str, name: Any) -> str:
    """Refuse anything but a non-empty string. Returns the name."""
    if not isinstance(name, str) or not name:
        raise GraphError(f"{where} takes a non-empty string, not {name!r}.")
    return name


def check_parallelism(where: str, parallelism: Any) -> int:
    """Refuse anything but a whole number of 1 or more. Returns the parallelism.

    >>> check_parallelism("Map", 2)
    2
    """
    if not isinstance(parallelism, int) or isinstance(parallelism, bool) or parallelism < 1:
        raise GraphError(f"{where}: the parallelism must be a whole number of 1 or more, not {parallelism!r}.")
    return parallelism


#: Flink's upper limit: key groups are counted in 15 bits.
MAX_PARALLELISM_LIMIT = 1 << 15


def check_max_parallelism(where: str, max_parallelism: Any) -> int:
    """Refuse anything but a whole number from 1 to 32768. Returns the maximum parallelism."""
    valid = isinstance(max_parallelism, int) and not isinstance(max_parallelism, bool)
    if not valid or not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise GraphError(
            f"{where}: the maximum parallelism must be between 1 and {MAX_PARALLELISM_LIMIT}, not {max_parallelism!r}."
        )
    return int(max_parallelism)


def warn_no_effect(method: str, instead: str) -> None:
    """Log that a method of Flink's changes nothing here, and what holds instead."""
    _LOG.warning("%s has no effect in Rekindle: %s.", method, instead)
