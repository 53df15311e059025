"""Former names of a class and of its fields, under which older checkpoints know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from rekindle.errors import TypeMismatchError

_ATTRIBUTE: Final = "__rekindle_aliases__"
_C = TypeVar("_C", bound=type[Any])


class Aliases(NamedTuple):
    """Former names of a class, and of its fields by their name today."""

    names: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = {}


def aliases(*former_names: str, **former_fields: str | tuple[str, ...]) -> Callable[[_C], _C]:
    """Mark a class as renamed, or fields of it, so that state that was saved under the former names is found.

    Put it above `@dataclass`. The names of classes are without their modules.

    >>> from dataclasses import dataclass
    >>> @aliases("Purchase", amount="price")
    ... @dataclass
    ... class Order:
    ...     id: int
    ...     amount: float
    >>> aliases_of(Order)
    Aliases(names=('Purchase',), fields={'amount': ('price',)})
    """
    fields = {name: (former,) if isinstance(former, str) else tuple(former) for name, former in former_fields.items()}

    def mark(cls: _C) -> _C:
        known = field_names(cls)
        unknown = [name for name in fields if name not in known]
        if unknown:
            raise TypeMismatchError(
                f"@aliases: {cls.__name__} has no field {unknown[0]!r}: write new_name='former_name', and put @aliases "
                "above @dataclass."
            )
        setattr(cls, _ATTRIBUTE, Aliases(tuple(former_names), fields))
        return cls

    return mark


def aliases_of(cls: type) -> Aliases:
    """The former names that a class declares itself; those of a base class are not its own."""
    found: Aliases = vars(cls).get(_ATTRIBUTE, Aliases())
    return found


def field_names(cls: type) -> set[str]:
    """The names of the fields of a class, those of its bases included."""
    return {name for each in cls.__mro__ for name in getattr(each, "__annotations__", ())}
