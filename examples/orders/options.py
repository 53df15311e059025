"""Makes a command-line option of every setting."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser, kind: type, title: str, **defaults: Any) -> None:
    """One option per field of a dataclass of settings; `defaults` replace those of the fields.

    >>> from examples.orders.settings import Settings
    >>> parser = argparse.ArgumentParser()
    >>> add_options(parser, Settings, "settings", parallelism=3)
    >>> chosen(Settings, parser.parse_args(["--batch-size", "50", "--no-retain-checkpoints"])).batch_size
    50
    """
    group = parser.add_argument_group(title)
    hints = get_type_hints(kind)
    for each in fields(kind):
        _add_option(group, each, hints[each.name], defaults.get(each.name, each.default))


def chosen(kind: Callable[..., T], arguments: argparse.Namespace) -> T:
    """The settings that were given."""
    return kind(**{each.name: getattr(arguments, each.name) for each in fields(kind)})  # type: ignore[arg-type]


def _add_option(group: Any, each: Field[Any], hint: Any, default: Any) -> None:
    flag, text = f"--{each.name.replace('_', '-')}", each.metadata["help"].replace("%", "%%")
    explanation = f"{text} (default: {'none' if default is None else default})"
    if hint is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=explanation)
        return
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    optional = len(get_args(hint)) > len(kinds)
    parse = _or_none(kinds[0]) if optional else kinds[0]
    group.add_argument(flag, type=parse, default=default, metavar=kinds[0].__name__.upper(), help=explanation)


def _or_none(kind: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        return None if text == "none" else kind(text)

    parse.__name__ = kind.__name__  # argparse names it in errors
    return parse
