"""What every type says about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rekindle.errors import TypeMismatchError

Converter = Callable[[Any], Any]


class TypeInformation(ABC):
    """The type of a stream's elements or of a state's values.

    Types are compared by what they describe:

    >>> from rekindle.common.typeinfo import Types
    >>> Types.LIST(Types.INT()) == Types.LIST(Types.INT())
    True
    >>> Types.TUPLE([Types.STRING(), Types.INT()])
    Tuple<String, Integer>
    """

    @staticmethod
    def of(hint: Any) -> TypeInformation:
        """The type for a class or a type hint, which says what Java needs a TypeHint for.

        >>> TypeInformation.of(dict[str, list[int]])
        Map<String, List<Long>>
        """
        return coerce(hint)

    @abstractmethod
    def python_type(self) -> Any | None:
        """The typing object that msgspec decodes to, every field nullable; None when values can only be pickled."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A stable, canonical string of the type: two types with the same one read each other's bytes."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def shaper(self) -> Converter | None:
        """From what stands for a value of this type to the value that functions see, with its own rows; None: it is it.

        Rows have the names of their type, wherever they come from: an exchange, a chain, state.
        """
        shape = self._shape()
        if shape is None:
            return None

        def shaped(value: Any) -> Any:
            try:
                return shape(value)
            except (TypeMismatchError, TypeError, ValueError, AttributeError) as error:
                raise TypeMismatchError(f"{value!r} does not fit its declared type {self!r}: {error}.") from None

        return shaped

    def _shape(self) -> Converter | None:
        """What `shaper` does for a value of this type, or a part of one."""
        return None

    def to_wire(self) -> Converter | None:
        """From a value to what msgspec encodes; None when that is the value itself."""
        return None

    def from_wire(self) -> Converter | None:
        """From what msgspec decoded to the value; None when that is the value itself."""
        return None

    def exact_class(self) -> type | None:
        """The class that values must have to come back as they are; None when any fitting value will do."""
        return None

    def pickle_reason(self) -> str | None:
        """Why values of this type are pickled, in words; None when they are not."""
        return None

    def describe(self) -> str:
        """The type, and how its values travel.

        >>> from rekindle.common.typeinfo import Types
        >>> Types.STRING().describe()
        'String (msgpack)'
        """
        reason = self.pickle_reason()
        return f"{self!r} (msgpack)" if reason is None else f"{self!r} (pickled: {reason})"

    def need_conversion(self) -> bool:
        """Whether `to_internal_type` does anything."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """A Python object as the plain value that stands for it in other systems."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The Python object for such a plain value."""
        return obj

    def _identity(self) -> Any:
        """What makes two types of one class equal."""
        return self.fingerprint()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity()))


def coerce(hint: Any) -> TypeInformation:
    """`infer_type_info`, for the classes that inference itself is made of."""
    from rekindle.common.type_system.inference import infer_type_info

    return infer_type_info(hint)


def first_pickle_reason(types: list[TypeInformation]) -> str | None:
    """Why a composite of `types` is pickled: the first of them that is."""
    return next((reason for reason in (t.pickle_reason() for t in types) if reason is not None), None)


def nullable(type_info: TypeInformation) -> Any:
    """What msgspec decodes a field of this type to."""
    return type_info.python_type() | None  # type: ignore[operator]
