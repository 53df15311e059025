"""`TaggedUnion`: elements of two streams in one stream, each tagged with its stream and of its declared type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rekindle.common.type_system.type_information import Converter, first_pickle_reason, nullable, nullable_schema
from rekindle.common.typeinfo import TypeInformation, infer_type_info
from rekindle.datastream.functions import KeySelector
from rekindle.errors import TypeMismatchError
from rekindle.serde import register_value_type
from rekindle.serde.type_schema import TypeSchema


class TaggedUnion(NamedTuple):
    """An element of the first or second stream of a join. Triggers, evictors and assigners of joins see these.

    >>> element = TaggedUnion.two("b")
    >>> element.is_one(), element.is_two(), element.get_one(), element.get_two()
    (False, True, None, 'b')
    """

    of_one: bool
    first: Any
    second: Any

    @staticmethod
    def one(element: Any) -> TaggedUnion:
        """Tag an element of the first stream."""
        return TaggedUnion(True, element, None)

    @staticmethod
    def two(element: Any) -> TaggedUnion:
        """Tag an element of the second stream."""
        return TaggedUnion(False, None, element)

    def is_one(self) -> bool:
        """Return whether the element is of the first stream."""
        return self.of_one

    def is_two(self) -> bool:
        """Return whether the element is of the second stream."""
        return not self.of_one

    def get_one(self) -> Any:
        """Return the element of the first stream, or None if it is of the second."""
        return self.first

    def get_two(self) -> Any:
        """Return the element of the second stream, or None if it is of the first."""
        return self.second


register_value_type("TaggedUnion", TaggedUnion, tuple, lambda parts: TaggedUnion(*parts))


class TaggedUnionTypeInfo(TypeInformation):
    """The type of tagged elements of two streams that have these types.

    >>> TaggedUnionTypeInfo(str, int)
    TaggedUnion<String, Long>
    """

    def __init__(self, one: Any, two: Any) -> None:
        self._parts = [infer_type_info(one), infer_type_info(two)]

    def pickle_reason(self) -> str | None:
        return first_pickle_reason(self._parts)

    def python_type(self) -> Any | None:
        if self.pickle_reason() is not None:
            return None
        one, two = map(nullable, self._parts)
        return tuple[bool, one, two]  # type: ignore[valid-type]

    def to_wire(self) -> Converter | None:
        one, two = map(_writer, self._parts)
        if one is None and two is None:
            return None
        of_one, of_two = one or _identity, two or _identity
        return lambda union: (True, of_one(union[1]), None) if union[0] else (False, None, of_two(union[2]))

    def from_wire(self) -> Converter:
        one, two = (part.from_wire() for part in self._parts)
        if one is None and two is None:
            return partial(tuple.__new__, TaggedUnion)
        of_one, of_two = one or _identity, two or _identity
        return lambda wired: (
            TaggedUnion(True, of_one(wired[1]), None) if wired[0] else TaggedUnion(False, None, of_two(wired[2]))
        )

    def schema(self) -> TypeSchema:
        if self.pickle_reason() is not None:
            return TypeSchema("Tagged")
        return TypeSchema("TaggedUnion", parts=tuple(map(nullable_schema, self._parts)))

    def fingerprint(self) -> str:
        return f"TaggedUnion<{','.join(part.fingerprint() for part in self._parts)}>"

    def __repr__(self) -> str:
        return f"TaggedUnion<{', '.join(map(repr, self._parts))}>"


def _identity(value: Any) -> Any:
    return value


def _writer(part: TypeInformation) -> Converter | None:
    """Return a part's converter. Like a stream of that type, it refuses values of any other class."""
    convert, exact = part.to_wire(), part.exact_class()
    if exact is None:
        return convert
    inner = convert or _identity

    def write(value: Any) -> Any:
        if value is not None and type(value) is not exact:
            raise TypeMismatchError(f"{value!r} is no {exact.__name__}, the declared type of its stream")
        return inner(value)

    return write


def union_type(one: TypeInformation | None, two: TypeInformation | None) -> TypeInformation | None:
    """Return the type of the tagged elements of both streams, or None if either type is undeclared."""
    return None if one is None or two is None else TaggedUnionTypeInfo(one, two)


class UnionKeySelector(KeySelector):
    """Selects the key of a tagged element with the key selector of its stream."""

    def __init__(self, one: Any, two: Any) -> None:
        self._one = _as_callable(one)
        self._two = _as_callable(two)

    def get_key(self, value: Any) -> Any:
        """Return the element's key."""
        return self._one(value[1]) if value[0] else self._two(value[2])


def _as_callable(selector: Any) -> Callable[[Any], Any]:
    return selector.get_key if isinstance(selector, KeySelector) else selector
