"""`TypeInformation`, the base of all types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rekindle.common.java_names import RefusesJavaNames
from rekindle.errors import TypeMismatchError
from rekindle.serde.type_schema import TypeSchema

Converter = Callable[[Any], Any]


class TypeInformation(RefusesJavaNames, ABC):
    """The type of a stream's elements or of a state's values.

    Types that describe the same values are equal:

    >>> from rekindle.common.typeinfo import Types
    >>> Types.LIST(Types.INT()) == Types.LIST(Types.INT())
    True
    >>> Types.TUPLE([Types.STRING(), Types.INT()])
    Tuple<String, Integer>
    """

    @staticmethod
    def of(hint: Any) -> TypeInformation:
        """The type for a class or a type hint; a type hint does what Flink's TypeHint does in Java.

        >>> TypeInformation.of(dict[str, list[int]])
        Map<String, List<Long>>
        """
        return coerce(hint)

    @abstractmethod
    def python_type(self) -> Any | None:
        """The typing object that msgspec decodes to, every field nullable; None when values can only be pickled."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A stable, canonical string of the type: types with the same fingerprint read each other's bytes."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def __str__(self) -> str:
        """PyFlink's text of the type, where PyFlink has the type."""
        return repr(self)

    def schema(self) -> TypeSchema:
        """The schema that is written beside stored values; a type that has none is known by its fingerprint.

        >>> from rekindle.common.typeinfo import Types
        >>> Types.MAP(Types.STRING(), Types.LONG()).schema()
        Map<String?, Long?>
        """
        return TypeSchema("Other", self.fingerprint())

    def shaper(self) -> Converter | None:
        """The conversion that gives rows in a value the names of their type, as functions see them; None: no rows.

        Dicts, tuples and lists in place of a row become rows. So rows from an exchange, a chain and state are alike.
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
        """The conversion of `shaper`, for a value or a part of one, without its error message."""
        return None

    def fitter(self, wrap: bool = False) -> Converter | None:
        """The conversion that makes numbers in a value fit their declared types; None: no such types.

        A number beyond the range of a BYTE, SHORT or INT is refused, or wrapped as PyFlink does; a FLOAT is rounded to
        32 bits.

        >>> from rekindle.common.typeinfo import Types
        >>> Types.TUPLE([Types.STRING(), Types.SHORT()]).fitter()(("a", 40000))
        Traceback (most recent call last):
        rekindle.errors.TypeMismatchError: ('a', 40000) does not fit its declared type Tuple<String, Short>: ...
        """
        fit = self._fit(wrap)
        if fit is None:
            return None

        def fitted(value: Any) -> Any:
            try:
                return fit(value)
            except (TypeMismatchError, TypeError, ValueError, AttributeError) as error:
                raise TypeMismatchError(f"{value!r} does not fit its declared type {self!r}: {error}.") from None

        return fitted

    def _fit(self, wrap: bool) -> Converter | None:
        """The conversion of `fitter`, for a value or a part of one, without its error message."""
        return None

    def to_wire(self) -> Converter | None:
        """The conversion from a value to the form that msgspec encodes; None when that is the value itself."""
        return None

    def from_wire(self) -> Converter | None:
        """The conversion from msgspec's decoded form to the value; None when that is the value itself."""
        return None

    def exact_class(self) -> type | None:
        """The exact class that values must have to be restored unchanged; None when any fitting value is."""
        return None

    def pickle_reason(self) -> str | None:
        """The reason why values of this type are pickled, as text; None when they are not."""
        return None

    def describe(self) -> str:
        """The type and the encoding of its values, as text.

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
        """Convert a Python object to the plain value that other systems use for it."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Convert a plain value of `to_internal_type` to the Python object."""
        return obj

    def _identity(self) -> Any:
        """The value by which types of one class are compared."""
        return self.fingerprint()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity()))


def coerce(hint: Any) -> TypeInformation:
    """`infer_type_info`, for modules that inference itself imports."""
    from rekindle.common.type_system.inference import infer_type_info

    return infer_type_info(hint)


def first_pickle_reason(types: list[TypeInformation]) -> str | None:
    """The reason why a composite of `types` is pickled: that of the first type that is."""
    return next((reason for reason in (t.pickle_reason() for t in types) if reason is not None), None)


def nullable_schema(type_info: TypeInformation) -> TypeSchema:
    """The schema of a part of this type, which may be None."""
    return replace(type_info.schema(), nullable=True)


def nullable(type_info: TypeInformation) -> Any:
    """The typing object that msgspec decodes a field of this type to."""
    return type_info.python_type() | None  # type: ignore[operator]
