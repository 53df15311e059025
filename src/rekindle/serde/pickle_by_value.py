"""Pickling of the user's program by value: functions, and classes that the other side cannot import.

cloudpickle does this, except for two things that typed programs need: msgspec leaves a cache on the classes that it
has seen, and the cache cannot be pickled; and a `msgspec.Struct` loses its fields. Annotations that are strings are
resolved here, because the module that they refer to may not exist on the other side.
"""

from __future__ import annotations

import inspect
import io
import typing
from typing import Any

import cloudpickle
import msgspec
from cloudpickle import cloudpickle as tracker

#: Length of the tuple that cloudpickle returns for a class pickled by value: (make, arguments, state, -, -, set state).
_BY_VALUE = 6


def cloud_dumps(obj: Any) -> bytes:
    """Pickle `obj` with its functions and classes by value; `pickle.loads` reads the result.

    >>> import pickle
    >>> pickle.loads(cloud_dumps(lambda x: x + 1))(1)
    2
    """
    with io.BytesIO() as file:
        _ByValuePickler(file, protocol=5).dump(obj)
        return file.getvalue()


class _ByValuePickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if not isinstance(obj, type) or not isinstance(reduced, tuple) or len(reduced) != _BY_VALUE:
            return reduced
        if issubclass(obj, msgspec.Struct) and obj is not msgspec.Struct:
            return _reduce_struct(obj)
        attributes = reduced[2][0]
        attributes.pop("__msgspec_cache__", None)
        if "__annotations__" in attributes:
            attributes["__annotations__"] = _resolved_annotations(obj)
        return reduced


def _resolved_annotations(cls: type) -> dict[str, Any]:
    own = inspect.get_annotations(cls)
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:  # names that exist only for type checkers: code that needs them raises its own error
        return own
    return {name: hints.get(name, value) for name, value in own.items()}


def _reduce_struct(cls: type[msgspec.Struct]) -> tuple[Any, ...]:
    own = inspect.get_annotations(cls)
    infos = [info for info in msgspec.structs.fields(cls) if info.name in own]
    parameters = inspect.signature(cls).parameters
    config = cls.__struct_config__
    options = {name: getattr(config, name) for name in _STRUCT_OPTIONS}
    options["rename"] = {info.name: info.encode_name for info in infos if info.name != info.encode_name} or None
    options["kw_only"] = any(parameters[info.name].kind is inspect.Parameter.KEYWORD_ONLY for info in infos)
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in _STRUCT_MACHINERY and name not in cls.__struct_fields__
    }
    identity = tracker._get_or_create_tracker_id(cls)
    defaults = [(info.name, _default_of(info)) for info in infos]
    arguments = (identity, cls.__name__, cls.__qualname__, cls.__module__, cls.__bases__, defaults, namespace, options)
    # The annotations are state, set after the class exists: they may refer to it.
    return _make_struct, arguments, _resolved_annotations(cls), None, None, _set_annotations


def _default_of(info: msgspec.structs.FieldInfo) -> dict[str, Any] | None:
    if info.default is not msgspec.NODEFAULT:
        return {"default": info.default}
    if info.default_factory is not msgspec.NODEFAULT:
        return {"default_factory": info.default_factory}
    return None


def _make_struct(
    identity: str,
    name: str,
    qualname: str,
    module: str,
    bases: tuple[type, ...],
    fields: list[tuple[str, dict[str, Any] | None]],
    namespace: dict[str, Any],
    options: dict[str, Any],
) -> type:
    definitions: list[Any] = [
        (field, Any) if default is None else (field, Any, msgspec.field(**default)) for field, default in fields
    ]
    namespace = {**namespace, "__qualname__": qualname}
    cls = msgspec.defstruct(name, definitions, bases=bases, namespace=namespace, module=module, **options)
    made: type = tracker._lookup_class_or_track(identity, cls)
    return made


def _set_annotations(cls: type, annotations: dict[str, Any]) -> None:
    cls.__annotations__ = annotations


_STRUCT_OPTIONS = (
    "tag",
    "tag_field",
    "omit_defaults",
    "forbid_unknown_fields",
    "frozen",
    "eq",
    "order",
    "repr_omit_defaults",
    "array_like",
    "gc",
    "weakref",
    "dict",
    "cache_hash",
)
#: Names that `defstruct` creates itself; everything else in a Struct's namespace is the user's.
_STRUCT_MACHINERY = frozenset(
    {"__annotations__", "__dict__", "__module__", "__msgspec_cache__", "__qualname__", "__slots__", "__weakref__"}
)
