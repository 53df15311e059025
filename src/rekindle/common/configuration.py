"""`Configuration`: settings by Flink's keys, checked when they are set."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

from rekindle.common.flink_keys import closest_first_word, closest_keys, is_flink_key
from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.secret_settings import is_reference, resolved, shown
from rekindle.config import OPTIONS, PREFIX_OPTIONS, ConfigOption
from rekindle.config_parsers import in_millis, parse_bool, parse_float, parse_int, parse_list, parse_string
from rekindle.errors import ConfigurationError, JavaOnlyError

__all__ = ["Configuration"]

T = TypeVar("T")

_log = logging.getLogger("rekindle")
_own_keys = frozenset(OPTIONS)
#: Flink keys without meaning here for which this process has logged the warning.
_warned: set[str] = set()


class Configuration(RefusesJavaNames):
    """Settings by key. The error for a key that looks like a mistyped one of Flink's or Rekindle's names similar keys.

    A key with a prefix of its own is kept for the program, which reads it here or in functions with
    `get_job_parameter`. The value of a secret setting may be `env:NAME` or `file:PATH`: then the secret is looked up
    each time the setting is read, and nothing else in here holds or shows it.

    >>> configuration = Configuration.from_dict({"parallelism.default": "2"})
    >>> configuration.get_integer("parallelism.default", 1)
    2
    >>> configuration.set_string("paralelism.default", "2")
    Traceback (most recent call last):
    rekindle.errors.ConfigurationError: Flink knows no configuration key 'paralelism.default'. Did you mean \
'parallelism.default'?
    >>> configuration.set_string("acme.region", "eu").own_settings()
    {'acme.region': 'eu'}
    """

    _values: dict[str, Any]

    def __init__(self, other: Configuration | None = None, j_configuration: Any = None) -> None:
        if j_configuration is not None:
            if not isinstance(j_configuration, Configuration):
                raise JavaOnlyError(
                    "Configuration(j_configuration=...)", "give it the one of get_j_env_configuration()"
                )
            # PyFlink's is a view: what is set here is set in the environment.
            self._values = j_configuration._values
        else:
            self._values = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration with these settings."""
        configuration = cls()
        for key, value in map.items():
            configuration._put(key, value)
        return configuration

    # -- by option ----------------------------------------------------------------------------------------------------

    def get(self, option: ConfigOption[T]) -> T:
        """The value of an option, or its default.

        >>> from rekindle import config
        >>> Configuration().get(config.EPOCH_CHUNK_RECORDS)
        4096
        """
        for key in (option.key, *option.deprecated_keys):
            if key in self._values:
                return _read(key, option, self._value(key))
        return option.default

    def get_millis(self, option: ConfigOption[timedelta]) -> int:
        """The value of a duration option in whole milliseconds.

        >>> from rekindle import config
        >>> Configuration().get_millis(config.BUFFER_TIMEOUT)
        100
        """
        return in_millis(self.get(option))

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Sets an option under its current key and removes older spellings of the key; None unsets the option."""
        for key in (option.key, *option.deprecated_keys):
            self._values.pop(key, None)
        return self if value is None else self._put(option.key, value)

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Whether an option was set, under any of its keys."""
        return any(key in self._values for key in (option.key, *option.deprecated_keys))

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The settings below a prefix, without it.

        >>> configuration = Configuration.from_dict({"rekindle.spark.conf.spark.ui.enabled": "false"})
        >>> configuration.with_prefix("rekindle.spark.conf.")
        {'spark.ui.enabled': 'false'}
        """
        return {
            key.removeprefix(prefix): parse_string(self._value(key)) for key in self._values if key.startswith(prefix)
        }

    def own_settings(self) -> dict[str, str]:
        """The settings with keys of the program's own, as text."""
        return {key: _text(self._value(key)) for key in self._values if _is_own(key)}

    def refers_to_secret(self, option: ConfigOption[Any]) -> bool:
        """Whether an option says only where its secret is.

        >>> from rekindle import config
        >>> Configuration.from_dict({"s3.secret-key": "env:KEY"}).refers_to_secret(config.S3_SECRET_KEY)
        True
        """
        keys = (key for key in (option.key, *option.deprecated_keys) if key in self._values)
        return any(is_reference(key, self._values[key]) for key in keys)

    # -- by key -------------------------------------------------------------------------------------------------------

    def get_string(self, key: str, default_value: str) -> str:
        """The value of a key as text."""
        return _text(self._value(key)) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Sets a key."""
        return self._put(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        """The value of a key as a whole number."""
        return _read(key, parse_int, self._values[key]) if key in self._values else default_value

    def set_integer(self, key: str, value: int) -> Configuration:
        """Sets a key."""
        return self._put(key, _read(key, parse_int, value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value of a key as true or false."""
        return _read(key, parse_bool, self._values[key]) if key in self._values else default_value

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Sets a key."""
        return self._put(key, _read(key, parse_bool, value))

    def get_float(self, key: str, default_value: float) -> float:
        """The value of a key as a number."""
        return _read(key, parse_float, self._values[key]) if key in self._values else float(default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Sets a key."""
        return self._put(key, _read(key, parse_float, value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The value of a key as bytes."""
        value = self._value(key) if key in self._values else default_value
        return bytearray(value.encode() if isinstance(value, str) else value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Sets a key."""
        return self._put(key, bytearray(value))

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """A list setting as a list.

        >>> Configuration.parse_list_value("[a.zip, b.zip]"), Configuration.parse_list_value("a.zip;b.zip")
        (['a.zip', 'b.zip'], ['a.zip', 'b.zip'])
        """
        return parse_list(value) if value else []

    # -- all settings -------------------------------------------------------------------------------------------------

    def key_set(self) -> builtins.set[str]:
        """The keys that are set."""
        return builtins.set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Copies all settings into a dict, each value with the type with which it was set; references stay so."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Copies all settings of another configuration, with `prefix` before their keys."""
        for key, value in other._values.items():
            self._put(f"{prefix or ''}{key}", value)
        return self

    def contains_key(self, key: str) -> bool:
        """Whether a key is set."""
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """All settings as text; references to secrets stay references."""
        return {key: _text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Unsets a key; False when it was not set."""
        return self._values.pop(key, None) is not None

    def keep(self, key: str, added: Sequence[str]) -> None:
        """Add to a list of Flink's that has no meaning here, without a warning.

        >>> configuration = Configuration()
        >>> configuration.keep("pipeline.jars", ["file:///a.jar"])
        >>> configuration.get_string("pipeline.jars", "")
        'file:///a.jar'
        """
        kept = self._values.get(key) or []
        self._values[key] = [*(parse_list(kept) if isinstance(kept, str) else kept), *added]

    def _value(self, key: str) -> Any:
        """The value of a key that is set; a secret is looked up."""
        return resolved(key, self._values[key])

    def _put(self, key: str, value: Any) -> Configuration:
        _check_key(key)
        if key in OPTIONS:
            _read(key, OPTIONS[key], value)
        self._values[key] = value
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __str__(self) -> str:
        """The settings as text, without the values of secret keys."""
        return "{" + ", ".join(f"{key}={shown(key, value)}" for key, value in self.to_dict().items()) + "}"

    __repr__ = __str__


def _check_key(key: str) -> None:
    """Accept a key with a meaning here or of the program's own, warn once about Flink's, refuse a mistyped one."""
    if key in OPTIONS or any(key.startswith(prefix) and key != prefix for prefix in PREFIX_OPTIONS):
        return
    if is_flink_key(key):
        if key not in _warned:
            _warned.add(key)
            _log.warning("The Flink setting %r has no meaning in Rekindle and is ignored.", key)
        return
    if not _is_own(key):
        raise ConfigurationError(_unknown(key))


def _is_known(key: str) -> bool:
    has_prefix = any(key.startswith(prefix) and key != prefix for prefix in PREFIX_OPTIONS)
    return key in OPTIONS or has_prefix or is_flink_key(key)


@lru_cache(maxsize=1024)
def _is_own(key: str) -> bool:
    """Whether a key is the program's own: unknown, and too far from every known key to be a mistyped one."""
    return not (_is_known(key) or key.startswith(("spark.", "rekindle.")) or closest_keys(key, _own_keys)) and not (
        "." in key and closest_first_word(key)
    )


def _unknown(key: str) -> str:
    if key.startswith("spark."):
        return f"Flink knows no configuration key {key!r}: for a setting of Spark write 'rekindle.spark.conf.{key}'."
    who = "Rekindle" if key.startswith("rekindle.") else "Flink"
    close = closest_keys(key, _own_keys)
    advice = (
        f"Did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"Its first word is like {closest_first_word(key) or 'rekindle'!r}; begin a key of your own with a word "
        "of your own."
    )
    return f"{who} knows no configuration key {key!r}. {advice}"


def _read(key: str, reader: ConfigOption[T] | Any, raw: Any) -> T:
    try:
        value: T = reader.read(raw) if isinstance(reader, ConfigOption) else reader(raw)
        return value
    except ValueError as error:
        raise ConfigurationError(f"The value of {key!r} cannot be used: {error}.") from None


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{parse_string(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ";".join(map(parse_string, value))
    if isinstance(value, timedelta):
        return f"{in_millis(value)} ms"
    return parse_string(value)
