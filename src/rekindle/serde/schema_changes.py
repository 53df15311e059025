"""The conversion from one schema to another, and the error that names the path where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from rekindle.serde.type_schema import TypeSchema

#: From a stored value, as msgpack carries it, to one of the new schema; None: the bytes stay as they are.
Conversion: TypeAlias = Callable[[Any], Any] | None


class SchemaChangeError(Exception):
    """There is no way from the stored type to the program's; the text is the second half of a sentence."""

    def __init__(self, path: str, old: TypeSchema, new: TypeSchema, advice: str) -> None:
        where = f"field '{path}'" if path else "each value"
        super().__init__(f"{where} was saved as {old}, but the program declares {new}: {advice}")


class Between(Protocol):
    """Resolves a part of a type: its conversion, or SchemaChangeError with the path to it."""

    def __call__(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion: ...


def field_path(path: str, name: str) -> str:
    """The path to a field of the type at `path`.

    >>> field_path("items[]", "price"), field_path("", "price")
    ('items[].price', 'price')
    """
    return f"{path}.{name}" if path else name


def check_class_name(old: TypeSchema, new: TypeSchema, path: str) -> None:
    """Refuse a class of another name, unless it says that this was its name."""
    if old.name != new.name and old.name not in new.aliases:
        raise SchemaChangeError(
            path,
            old,
            new,
            f'if the class was renamed, mark it with @aliases("{old.name}"), else give it another state.',
        )
