"""Makes command-line options of dataclasses of settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser, kind: type, title: str, **defaults: Any) -> None:
    """Add one option per field of a dataclass of settings; `defaults` replace those of the fields.

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
    """The settings with the values of the command line."""
    return kind(**{each.name: getattr(arguments, each.name) for each in fields(kind)})  # type: ignore[arg-type]


def _add_option(group: Any, each: Field[Any], hint: Any, default: Any) -> None:
    flag, text = f"--{each.name.replace('_', '-')}", each.metadata["help"].replace("%", "%%")
    explanation = f"{text} (default: {'none' if default is None else default})"
    if hint is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=explanation)
        return
    metavar = _kind_of(hint).__name__.upper()
    group.add_argument(flag, type=_parser(each, hint), default=default, metavar=metavar, help=explanation)


def parser_of(kind: type, name: str) -> Callable[[str], Any]:
    """The parser of one setting on the command line; argparse reports its errors.

    >>> from examples.orders.settings import Feed
    >>> parser_of(Feed, "rate")("2500")
    2500.0
    """
    (each,) = (each for each in fields(kind) if each.name == name)
    return _parser(each, get_type_hints(kind)[name])


def _kind_of(hint: Any) -> type:
    return next(kind for kind in get_args(hint) or (hint,) if kind is not type(None))


def _parser(each: Field[Any], hint: Any) -> Callable[[str], Any]:
    kind, least, most = _kind_of(hint), each.metadata["least"], each.metadata["most"]

    def parse(text: str) -> Any:
        if text == "none" and kind is not hint:
            return None
        value = kind(text)
        if least is not None and not value >= least:  # also refuses NaN
            raise argparse.ArgumentTypeError(f"{text} is too little, it must be {least:g} or more")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{text} is too much, it must be {most:g} or less")
        return value

    parse.__name__ = kind.__name__  # argparse names it in errors
    return parse
