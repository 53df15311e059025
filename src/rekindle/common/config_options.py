"""Builders for typed configuration options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rekindle.config import ConfigOption
from rekindle.config_parsers import parse_bool, parse_float, parse_int, parse_string

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


class ConfigOptions:
    """Builds options: `key`, then a type, then a default.

    >>> option = ConfigOptions.key("parallelism.default").int_type().default_value(4)
    >>> option.key, option.default
    ('parallelism.default', 4)
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Starts an option with this key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """An option that has a key; its type comes next."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """true or false."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_string)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option that has a key and a type; its default comes next."""

        def __init__(self, key: str, parse: Callable[[Any], T]) -> None:
            self._key = key
            self._parse = parse

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option with `value` as its default."""
            return ConfigOption(self._key, self._parse, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """The option with None as its default."""
            return ConfigOption[T | None](self._key, self._parse, None)
