"""Settings from the command line: a configuration file, over it `-D` options, over them options with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekindle.errors import ConfigurationError

if TYPE_CHECKING:
    from rekindle.checkpoint.store.options import StoreOptions
    from rekindle.common.configuration import Configuration


def configuration_of(
    file: str | None, pairs: Sequence[str] | None, named: Mapping[str, str | None] | None = None
) -> Configuration:
    """The settings of all sources; ConfigurationError says what cannot be used.

    >>> configuration_of(None, ["parallelism.default=2", "pipeline.name=a=b"], {"parallelism.default": "3"})
    {parallelism.default=3, pipeline.name=a=b}
    """
    from rekindle.common.configuration import Configuration

    settings = read_file(file) if file is not None else {}
    settings |= dict(_pair(text) for text in pairs or ())
    settings |= {key: value for key, value in (named or {}).items() if value is not None}
    return Configuration.from_dict(settings)


def store_options_of(file: str | None, pairs: Sequence[str] | None) -> StoreOptions:
    """The settings of object stores among them."""
    from rekindle.checkpoint.store.options import store_options

    return store_options(configuration_of(file, pairs))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"-D takes KEY=VALUE, for example -D parallelism.default=2, not '{text}'.")
    return key.strip(), value.strip()


def read_file(path: str) -> dict[str, str]:
    """The settings of a configuration file: Flink's YAML, with nested keys or with dots in them."""
    import yaml

    try:
        # Every scalar stays text, as Flink's own reader keeps it: `off` is no boolean, `1:30` no number.
        read = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigurationError(f"The configuration file '{path}' cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigurationError(f"The configuration file '{path}' is no YAML: {problem}.") from None
    if read is None or read == "":
        return {}
    if not isinstance(read, dict):
        raise ConfigurationError(f"The configuration file '{path}' has to consist of lines such as 'key: value'.")
    return dict(_flat(read, ""))


def _flat(nested: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in nested.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif isinstance(value, list):
            yield key, ";".join(map(str, value))
        elif value not in ("", "null", "~"):
            yield key, value
