"""Finds the part of a function that cannot be pickled, and the path to it: attributes, closures, globals it uses."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from rekindle.errors import SerializationError
from rekindle.serde import cloud_dumps

_MAX_DEPTH = 20


def serialization_error(operator: str, value: Any, error: BaseException) -> SerializationError:
    """The error for an operator whose function cannot be serialized, with the path to the part that cannot."""
    path, cause = find_unpicklable(value, error)
    where = " -> ".join(path) if path else _describe(value)
    return SerializationError(
        f"Operator '{operator}': {where}: {_message(cause)}; create it in open(), or leave it out of the function."
    )


def find_unpicklable(value: Any, error: BaseException) -> tuple[list[str], BaseException]:
    """The path to the innermost part that cannot be pickled, and the error that pickling it raised."""
    path: list[str] = []
    seen: set[int] = set()
    while len(path) < _MAX_DEPTH:
        seen.add(id(value))
        for step, child in _children(value, first=not path):
            failure = None if id(child) in seen else _failure(child)
            if failure is not None:
                path.append(step)
                value, error = child, failure
                break
        else:
            break
    return path, error


def _failure(value: Any) -> BaseException | None:
    try:
        cloud_dumps(value)
    except Exception as error:
        return error
    return None


def _children(value: Any, first: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.MethodType):
        yield f"the object of method {value.__name__}()", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, functools.partial):
        yield "the function of a partial", value.func
        yield "the arguments of a partial", (*value.args, *value.keywords.values())
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"[{key!r}]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, type):
        yield from _of_class(value)
    elif not _refuses(value):
        for name, item in _attributes(value):
            yield (f"attribute self.{name}" if first else f".{name}"), item
        # A class that is pickled by value takes its attributes with it.
        yield f"class {type(value).__name__}", type(value)


def _refuses(value: Any) -> bool:
    """Whether the object itself, not a part of it, refuses to be pickled."""
    try:
        value.__reduce_ex__(5)
    except Exception:
        return True
    return False


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct):
        names: list[str] = list(value.__struct_fields__)
    else:
        slots = [slot for cls in type(value).__mro__ for slot in _slot_names(cls)]
        names = [*getattr(value, "__dict__", {}), *slots]
    for name in names:
        if hasattr(value, name):
            yield name, getattr(value, name)


def _slot_names(cls: type) -> list[str]:
    slots = cls.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable '{name}' of {_describe(function)}", cell.cell_contents
        except ValueError:  # a variable that was never set
            continue
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"global '{name}' used in {_describe(function)}", function.__globals__[name]
    for index, default in enumerate(function.__defaults__ or ()):
        yield f"default value {index} of {_describe(function)}", default
    for name, default in (function.__kwdefaults__ or {}).items():
        yield f"default value of '{name}' of {_describe(function)}", default
    for name, item in vars(function).items():
        yield f"attribute '{name}' of {_describe(function)}", item


def _of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for name, item in vars(cls).items():
        if isinstance(item, staticmethod | classmethod):
            item = item.__func__
        if isinstance(item, types.FunctionType):
            yield f"method {name}()", item
        elif not name.startswith("__"):
            yield f"class attribute '{name}'", item
    for base in cls.__bases__:
        yield f"base class {base.__name__}", base


def _global_names(code: types.CodeType) -> list[str]:
    """The global names that a function's code, and code nested in it, looks up."""
    nested = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [*code.co_names, *(name for each in nested for name in _global_names(each))]


def _describe(value: Callable[..., Any] | Any) -> str:
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return "a lambda" if name.endswith("<lambda>") else f"'{name}'"
    return f"a {type(value).__name__}"


def _message(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")
