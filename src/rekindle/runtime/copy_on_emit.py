"""Isolation of emitted records: user code that changes an object after emitting it must not change the record.

As in Flink, a record that can change is copied when a function emits it, unless object reuse is enabled. Records of
declared immutable types need no check, others are checked, and only mutable ones are copied.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from rekindle.common.typeinfo import RowTypeInfo, TypeInformation
from rekindle.datastream.output_tag import OutputTag
from rekindle.runtime.immutability import ATOMS, is_immutable, type_is_immutable

Isolate = Callable[[Any], Any]


def isolate(value: Any) -> Any:
    """Return the value itself if it is immutable, else a copy.

    >>> shared = {"n": 1}
    >>> emitted = isolate(("key", shared))
    >>> shared["n"] = 2
    >>> emitted
    ('key', {'n': 1})
    """
    kind = type(value)
    if kind in ATOMS or (kind is tuple and ATOMS.issuperset(map(type, value))) or is_immutable(value):
        return value
    try:
        return pickle.loads(pickle.dumps(value, 5))
    except Exception:
        return _deep_copy(value)


def _deep_copy(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return value  # it can be neither copied nor sent: it never leaves this chain


def isolator(type_info: TypeInformation | None, object_reuse: bool, wrap_numbers: bool | None = None) -> Isolate | None:
    """Return the function that isolates records of a type; None if they need no isolation.

    The function also gives rows the field names of their type, and makes numbers fit their types unless `wrap_numbers`
    is None.
    """
    isolate_only = _isolator(type_info, object_reuse)
    fit = None if type_info is None or wrap_numbers is None else type_info.fitter(wrap_numbers)
    if fit is None or isolate_only is None:
        return fit or isolate_only
    return lambda value: fit(isolate_only(value))


def _isolator(type_info: TypeInformation | None, object_reuse: bool) -> Isolate | None:
    shape = None if type_info is None else type_info.shaper()
    if shape is None:
        return None if object_reuse or type_is_immutable(type_info) else isolate
    if object_reuse or _is_new_when_shaped(type_info):
        return shape
    return lambda value: shape(isolate(value))


def _is_new_when_shaped(type_info: TypeInformation | None) -> bool:
    return isinstance(type_info, RowTypeInfo) and all(map(type_is_immutable, type_info.get_field_types()))


def mixed_isolator(main: Isolate | None, sides: Mapping[str, Isolate | None]) -> Isolate | None:
    """Return the function that isolates results of a process function: `(tag, value)` pairs by their side output."""
    if not any((main, *sides.values())) or not sides:
        return main

    def isolate_mixed(emitted: Any) -> Any:
        if type(emitted) is not tuple or len(emitted) != 2 or type(emitted[0]) is not OutputTag:
            return emitted if main is None else main(emitted)
        tag, value = emitted
        side = sides.get(tag.tag_id)
        return emitted if side is None else (tag, side(value))

    return isolate_mixed
